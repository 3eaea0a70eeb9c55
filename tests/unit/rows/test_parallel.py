"""Work on all cores: results in order, items taken no faster than they are worked off, errors passed on."""

import threading
import time

import pytest

from radocraft.rows import _parallel
from radocraft.rows._parallel import in_parallel, in_turn


@pytest.fixture(params=[1, 3])
def cores(request, monkeypatch):
    monkeypatch.setattr(_parallel, "cores", lambda: request.param)
    return request.param


def test_results_come_in_order_whichever_is_ready_first(cores):
    def slow_first(at: int) -> int:
        time.sleep(0.02 if at == 0 else 0.0)
        return 10 * at

    heard: list[int] = []
    assert in_parallel(slow_first, 5, heard.append) == [0, 10, 20, 30, 40]
    assert heard == [1, 2, 3, 4, 5]
    assert list(in_turn(slow_first, range(5))) == [0, 10, 20, 30, 40]
    assert list(in_turn(slow_first, [])) == []


def test_items_are_taken_only_as_they_are_worked_off(cores):
    taken = 0

    def items():
        nonlocal taken
        while taken < 100:
            taken += 1
            yield taken

    results = in_turn(lambda item: item, items())
    for count in range(1, 20):
        assert next(results) == count
        assert taken <= count + 2 * cores
    results.close()
    assert taken < 100


def test_an_error_stops_the_work_and_is_passed_on(cores):
    started = []

    def fails(at: int) -> int:
        started.append(at)
        if at == 1:
            raise ZeroDivisionError("here")
        time.sleep(0.005)
        return at

    with pytest.raises(ZeroDivisionError, match="here"):
        in_parallel(fails, 200, lambda done: None)
    with pytest.raises(ZeroDivisionError, match="here"):
        list(in_turn(fails, range(200)))
    assert len(started) < 100


def test_no_thread_stays_behind(cores):
    before = threading.active_count()
    list(in_turn(lambda item: item, range(10)))
    in_parallel(lambda at: at, 10, lambda done: None)
    assert threading.active_count() == before
