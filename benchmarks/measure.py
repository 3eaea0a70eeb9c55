"""Wall time, processor time and peak memory of a function, in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

_KILOBYTE = 1024
_PAUSE = 0.2


@dataclass(frozen=True)
class Cost:
    """What a run took; ``result`` is what it gave back, None if it did not finish."""

    finished: bool
    wall: float
    cpu: float
    peak: float
    result: Any = None
    why: str = ""


def measure(
    function: Callable[..., Any],
    *given: Any,
    warm: tuple[Any, ...] | None = None,
    seconds: float | None = None,
    memory: int | None = None,
) -> Cost:
    """Run ``function(*given)`` in a fresh process, under a cap of seconds and of bytes if given.

    With ``warm`` it is called with these first, on something small, which does
    not count: what a library imports or sets up when it is first used is
    nobody's work.

    Examples
    --------
    >>> measure(sum, [1, 2]).result
    3
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, function, given, warm))
    started = time.perf_counter()
    process.start()
    theirs.close()
    over = None
    cost = Cost(False, 0.0, 0.0, 0.0, why="the process died, for want of memory or otherwise")
    try:
        while over is None and not ours.poll(_PAUSE):
            over = _over(process.pid, time.perf_counter() - started, seconds, memory)
        cost = ours.recv() if over is None else Cost(False, time.perf_counter() - started, 0.0, 0.0, why=over)
    except EOFError:
        pass
    finally:
        process.kill()
        process.join()
        ours.close()
    return cost


def _run(
    answer: Connection, function: Callable[..., Any], given: tuple[Any, ...], warm: tuple[Any, ...] | None
) -> None:
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # engines draw progress bars into what should be the result
    if warm is not None:
        function(*warm)
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(*given)
    answer.send(Cost(True, time.perf_counter() - wall, time.process_time() - cpu, _peak(), result))


def _over(process: int | None, spent: float, seconds: float | None, memory: int | None) -> str | None:
    """Which cap is passed, if one is."""
    if seconds is not None and spent > seconds:
        return f"stopped after {seconds:.0f} s"
    if memory is not None and _resident(process) > memory:
        return f"stopped above {memory / 2**30:.1f} GiB"
    return None


def _resident(process: int | None) -> int:
    """Memory a process holds now, where the system tells (Linux); it may have ended meanwhile."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * resource.getpagesize()


def _peak() -> float:
    """The largest resident memory of this process; what ``getrusage`` tells may be its parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * _KILOBYTE
    raise RuntimeError("the kernel does not tell the peak memory of a process")


def median(costs: Sequence[Cost]) -> Cost:
    """The middle of each figure of some runs of the same thing."""
    wall, cpu, peak = (float(np.median([getattr(cost, name) for cost in costs])) for name in ("wall", "cpu", "peak"))
    return Cost(all(cost.finished for cost in costs), wall, cpu, peak, costs[0].result)


def growth(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The exponent k of cost = c size^k, fitted on logarithms.

    Examples
    --------
    >>> round(growth([1, 10, 100], [3, 30, 300]), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
