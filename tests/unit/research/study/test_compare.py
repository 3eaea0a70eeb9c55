"""The verdicts on made-up results whose answers are known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.research.study.test_summary import record

from radocraft.research.study._claims import Verdict, errors_by_bins
from radocraft.research.study._compare import best_peers, compare
from radocraft.research.study._domains import DOMAINS

PAPER = {"intercept": False, "encoding": "ordinal-standard", "rado_score": "all-sums", "algorithms": "paper"}


def verdict(records: list[dict[str, Any]], words: str) -> Verdict:
    (found,) = [verdict for verdict in compare(records) if words in verdict.claim]
    return found


def drl(domain: str, error: float, **more: Any) -> dict[str, Any]:
    return record("drl", error, domain=domain, **{**PAPER, **more})


def test_a_claim_without_cells_is_left_open() -> None:
    assert all(verdict.holds is None for verdict in compare([record("zip", 0.1, **PAPER, setting="random", share=0.5)]))
    assert verdict([drl("page", 0.1)], "systematic on ionosphere").holds is None


def test_our_choices_do_not_count_for_the_papers_claims() -> None:
    assert verdict([record("drl", 0.1, domain="page")], "systematic on page").holds is None


@pytest.mark.parametrize(("wins", "holds"), [(8, True), (7, False)])
def test_systematic_means_four_in_five(wins: int, holds: bool) -> None:
    records = [drl("page", 0.19 if at < wins else 0.21, peers=at + 2) for at in range(10)]
    assert verdict(records, "systematic on page").holds is holds


def test_each_order_of_features_is_measured_for_itself() -> None:
    """Won in 10, 8 and 3 of 10 cells: 70 % on average, with a standard deviation of 36, and true of two orders."""
    records = [
        drl("page", 0.19 if p < won else 0.21, peers=p + 2, seed=o)
        for o, won in enumerate((10, 8, 3))
        for p in range(10)
    ]
    found = verdict(records, "systematic on page")
    assert (found.holds, found.holding, found.orders) == (False, 2, 3)
    assert "70 ± 36 % (30 to 100)" in found.ours
    assert "mean block" in found.best
    assert verdict(records[:20], "systematic on page").best == ""


def test_best_peers_stand_beside_the_commoner_label_and_the_papers() -> None:
    records = [
        record(name, error, domain="page", best_peer=best, seed=seed, peers=peers, **PAPER)
        for seed, peers, best in ((0, 2, 0.3), (0, 3, 0.2), (1, 2, 0.4), (1, 3, 0.5))
        for name, error in (("oracle", 0.25), ("majority", 0.102))
    ]
    (line,) = best_peers(records)
    assert (line.domain, line.paper, line.majority) == ("page", 0.21, pytest.approx(0.102))
    assert (line.least, line.spread) == (pytest.approx(0.3), pytest.approx(0.02**0.5))
    assert line.mean == pytest.approx(0.35)


def test_every_domain_needs_one_win_in_each() -> None:
    everywhere = [drl(name, 0.1) for name in DOMAINS]
    assert verdict(everywhere, "In every domain").holds is True
    assert verdict([*everywhere[1:], drl("wine", 0.25)], "In every domain").holds is False
    assert verdict(everywhere[1:], "In every domain").holds is None, "an order that was not run on all of them"


def test_more_than_twenty_points() -> None:
    assert verdict([drl("steelplates", 0.0, delta=-0.21)], "more than 20 points").holds is True
    assert verdict([drl("steelplates", 0.0, delta=-0.19)], "more than 20 points").holds is False


def test_dummy_gamma_on_mice() -> None:
    records = [drl("mice", 0.3), record("drl-identity", 0.2, domain="mice", **PAPER)]
    assert verdict(records, "On mice").holds is True
    assert verdict([drl("mice", 0.1), records[1]], "On mice").holds is False


def test_under_the_radar_on_sonar() -> None:
    level, worse = drl("sonar", 0.1, oracle_p=0.06), drl("sonar", 0.3, oracle_p=0.01, peers=3)
    assert verdict([level, worse], "not significantly worse").holds is True
    assert verdict([worse], "not significantly worse").holds is False


def test_bins_matter_little_up_to_two_points() -> None:
    def cells(by_bin: float, by_size: float) -> list[dict[str, Any]]:
        return [drl("ionosphere", 0.1 + by_bin * b + by_size * p, bins=b, peers=p) for b in (2, 4, 8) for p in (2, 3)]

    assert verdict(cells(0.003, 0.1), "number of bins").holds is True
    assert verdict(cells(0.004, 0.1), "number of bins").holds is False


def test_bins_are_compared_on_sizes_run_at_all_of_them() -> None:
    records = [drl("ionosphere", 0.1, bins=2), drl("ionosphere", 0.2, bins=4), drl("ionosphere", 0.9, bins=4, peers=5)]
    assert errors_by_bins(records, "drl") == {2: [0.1], 4: [0.2]}


def test_our_aims_are_judged_at_the_best_caution() -> None:
    records = [record("matching", error, caution=caution) for caution, error in ((0.0, 0.105), (1.0, 0.19))]
    won, near = [verdict for verdict in compare(records) if "every row at every peer" in verdict.claim]
    assert (won.holds, near.holds) == (True, True)
    assert "caution 0" in near.ours
    far = [record("matching", 0.115, caution=0.0)]
    assert [verdict.holds for verdict in compare(far) if "every row at every peer" in verdict.claim] == [True, False]
