"""Time and memory of a function alone, and caps on both."""

import time

import numpy as np
from measure import measure


def take_room(megabytes: int) -> int:
    return int(np.ones(megabytes * 131072).sum())


def keep_room(megabytes: int) -> int:
    held = np.ones(megabytes * 131072)
    time.sleep(30)
    return len(held)


def test_memory_is_that_of_the_function_alone() -> None:
    small, large = measure(take_room, 1), measure(take_room, 300)
    assert (small.result, large.result) == (131072, 300 * 131072)
    assert 250e6 < large.peak - small.peak < 400e6


def spend(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_first_call_on_something_small_does_not_count() -> None:
    assert measure(spend, 0.0, warm=(1.0,)).cpu < 0.5 <= measure(spend, 1.0, warm=(0.0,)).cpu


def test_what_exceeds_a_cap_did_not_finish() -> None:
    late = measure(time.sleep, 60, seconds=1.0)
    assert (late.finished, late.why) == (False, "stopped after 1 s")
    greedy = measure(keep_room, 1_500, memory=2**30)
    assert (greedy.finished, greedy.why) == (False, "stopped above 1.0 GiB")
