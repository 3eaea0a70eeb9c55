"""Work shared among cores by threads, because models and NumPy release the interpreter lock.

Each piece of work has its share of the cores to itself. Models that start a thread per core
of their own, all at once, wait for one another more than they work.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

Given = TypeVar("Given")
Result = TypeVar("Result")
_AHEAD = 2


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_parallel(
    work: Callable[[int], Result], times: int, advance: Callable[[int], Any], *, most: int | None = None
) -> list[Result]:
    """The results of ``work(0)``, ``work(1)`` and so on; ``advance`` hears how many are done.

    ``most`` is how many may be at work at once, if not one on each core; each has no more threads for that.
    """
    workers = max(1, min(cores(), times))
    limited = _limited(work, workers)
    out: dict[int, Result] = {}
    with ThreadPoolExecutor(min(workers, most or workers)) as pool:
        waiting = {pool.submit(limited, index): index for index in range(times)}
        try:
            for future in as_completed(waiting):
                out[waiting[future]] = future.result()
                advance(len(out))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [out[index] for index in range(times)]


def in_turn(work: Callable[[Given], Result], items: Iterable[Given]) -> Iterator[Result]:
    """The result for each item, in order; items are taken only as fast as they are worked off."""
    workers = cores()
    limited = _limited(work, workers)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(limited, item))
                if len(waiting) >= workers * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _limited(work: Callable[[Given], Result], workers: int) -> Callable[[Given], Result]:
    def limited(given: Given) -> Result:
        with threadpool_limits(max(1, cores() // workers)):
            return work(given)

    return limited
