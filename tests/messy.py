"""Two tables as real companies have them, made by lot: nothing is spelled alike, and much is no feature."""

import csv
import datetime
from pathlib import Path
from typing import Any

import numpy as np

REGIONS = ("north", "south", "east", "west")
FORMS = (str.upper, str.title, str.lower, lambda word: f" {word}")
_GONE = 0.04
DAY_ONE = datetime.date(1940, 1, 1)


def truth(rows: int, seed: int = 0) -> dict[str, Any]:
    """Customers as they are."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    region = rng.integers(0, 4, rows)
    income = np.round(np.exp(rng.normal(10.2, 0.5, rows)), 2)
    balance = np.round(rng.normal(2_000, 6_000, rows), 2)
    claims = rng.poisson(np.where(region == 1, 1.4, 0.5))
    premium = np.round(np.exp(rng.normal(6.5, 0.4, rows)) * (1 + 0.3 * claims), 2)
    married, smoker = rng.random(rows) < 0.5, rng.random(rows) < 0.3
    job = rng.integers(0, 500, rows)
    score = (
        -2.6
        - 0.00012 * balance
        + 0.75 * claims
        + 0.9 * smoker
        - 0.5 * married
        + 0.02 * (45 - age)
        + 0.5 * (region == 2)
        - 0.6 * (np.log(income) - 10.2)
        + 0.6 * ((job % 10) == 3)
    )
    bad = rng.random(rows) < 1 / (1 + np.exp(-score))
    born = [
        DAY_ONE + datetime.timedelta(int(days)) for days in (2025 - age - 1940) * 365.25 + rng.integers(0, 365, rows)
    ]
    return {
        "age": age, "region": region, "income": income, "balance": balance, "claims": claims, "premium": premium,
        "married": married, "smoker": smoker, "job": job, "bad": bad, "born": born,
        "postcode": rng.integers(0, 3000, rows),
        "since": [DAY_ONE + datetime.timedelta(int(days)) for days in rng.integers(25_000, 31_000, rows)],
    }  # fmt: skip


def german(value: float) -> str:
    """1.234,56."""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def tables(people: dict[str, Any], seed: int = 1) -> dict[str, tuple[dict[str, list[str]], dict[str, list[Any]]]]:
    """What stands in bank.csv and insurer.csv, and the same cells as a person would have cleaned them."""
    rng = np.random.default_rng(seed)
    rows = len(people["age"])

    def gaps(words: Any, values: Any, marks: tuple[str, ...]) -> tuple[list[str], list[Any]]:
        gone, mark = rng.random(rows) < _GONE, rng.integers(0, len(marks), rows)
        words = [marks[m] if g else word for word, g, m in zip(words, gone, mark, strict=True)]
        return words, [None if g else value for value, g in zip(values, gone, strict=True)]

    def same(words: list[str], values: Any = None) -> tuple[list[str], list[Any]]:
        return words, words if values is None else list(values)

    forms = rng.integers(0, 4, rows)
    region = [REGIONS[at] for at in people["region"]]
    texts = ("wants a call back", "moved last year, letters come back", "complained about the fees", "asks for a loan")
    told = {name: people[name].tolist() for name in ("age", "balance", "income", "premium", "claims", "bad")}
    married, smoker = people["married"].tolist(), people["smoker"].tolist()
    bank = {
        "Kundennummer": same([f"{at}" for at in rng.permutation(rows * 3)[:rows] + 100_000]),
        "Region": gaps([FORMS[f](word) for word, f in zip(region, forms, strict=True)], region, ("NA", "-")),
        "Age": gaps(map(str, told["age"]), told["age"], ("NA", "", "-")),
        "Date of birth": same([f"{day:%d.%m.%Y}" for day in people["born"]], people["born"]),
        "Balance": gaps(map(german, told["balance"]), told["balance"], ("NA", "-", "")),
        "Income": gaps(map(german, told["income"]), told["income"], ("NA", "-", "")),
        "Married": gaps(["NJ"[x] for x in married], married, ("-", "")),
        "Occupation": same([f"occupation {job}" for job in people["job"]]),
        "Postcode": same([f"{code:05}" for code in people["postcode"] + 1_000]),
        "Remarks": same([f"{texts[n % 4]} on day {n} of the file" for n in range(rows)]),
        "Currency": same(["EUR"] * rows),
        "Default": same([str(int(bad)) for bad in told["bad"]], told["bad"]),
    }
    insurer = {
        "id": same([f"C-{at:07}" for at in rng.permutation(rows)]),
        "region": gaps(region, region, ("", "NA")),
        "age_at_signing": gaps(map(str, told["age"]), told["age"], ("NA", "")),
        "birth_date": same([day.isoformat() for day in people["born"]], people["born"]),
        "premium": gaps([f"{x:,.2f}" for x in told["premium"]], told["premium"], ("NA", "-", "")),
        "claims": same([str(n) for n in told["claims"]], told["claims"]),
        "smoker": gaps([("nein", "ja")[x] for x in smoker], smoker, ("NA", "-")),
        "customer_since": same([day.isoformat() for day in people["since"]], people["since"]),
        "default": same([("no", "yes")[x] for x in told["bad"]], told["bad"]),
    }
    named = {"bank": bank, "insurer": insurer}
    return {
        peer: ({n: words for n, (words, _) in held.items()}, {n: values for n, (_, values) in held.items()})
        for peer, held in named.items()
    }


def write(folder: Path, peer: str, columns: dict[str, list[str]], order: Any = None) -> Path:
    """A peer's file, with its rows in an order of its own."""
    rows = list(zip(*columns.values(), strict=True))
    path = folder / f"{peer}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";" if peer == "bank" else ",")
        writer.writerow(columns)
        writer.writerows(rows if order is None else (rows[at] for at in order))
    return path
