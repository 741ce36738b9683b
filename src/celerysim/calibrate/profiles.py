"""Profiles of tasks from their own seconds: what the scenario file says about each name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from celerysim.calibrate.phases import Order, Phases, Runs, Spread
from celerysim.calibrate.shapes import Shape, fit_shape
from celerysim.calibrate.split import Split
from celerysim.history import Floats, History, Outcome

#: How often a task computes if no order is known: at most, less when its seconds differ widely.
MOST_TURNS = 5


class NameFit(NamedTuple):
    """What was fitted to one task name."""

    name: str
    tasks: int  #: tasks that were seen to run
    runtime_s: float  #: mean, as logged
    cpu_s: float | None  #: mean; None: not told from waiting
    io_s: float | None
    steps: list[dict[str, Any]]
    shape: Shape  #: of the seconds that differ from task to task


def read_runs(histories: Sequence[History], names: Sequence[str], limit: int | None = None) -> Runs:
    """The tasks that were seen to start and to succeed, log after log on one clock.

    ``limit``: the first so many of each log.
    """
    starts, ends, kinds = [], [], []
    clock = 0.0
    for history in histories:
        tasks = history.tasks
        seen = (tasks["outcome"] == Outcome.SUCCEEDED) & ~np.isnan(tasks["started"])
        tasks = tasks[seen & ~np.isnan(tasks["finished"])]
        tasks = tasks[np.argsort(tasks["started"], kind="stable")][:limit]
        places = np.array([names.index(name) for name in history.names], dtype=np.intp)
        starts.append(tasks["started"] + clock)
        ends.append(tasks["finished"] + clock)
        kinds.append(places[tasks["profile"]] if len(places) else np.empty(0, dtype=np.intp))
        clock += history.end - history.start + 1e4
    return Runs(np.concatenate(starts), np.concatenate(ends), np.concatenate(kinds))


def fit_profiles(runs: Runs, names: Sequence[str], split: Split) -> list[NameFit]:
    """What the scenario says about each name."""
    phases = split.phases(runs)
    fits = []
    for number, name in enumerate(names):
        mine = runs.names == number
        runtimes = runs.runtimes[mine]
        mean = float(runtimes.mean()) if len(runtimes) else 0.0
        if not split.identified:
            shape = fit_shape(runtimes)
            steps: list[dict[str, Any]] = [{"io_s": shape.seconds}]
            fits.append(NameFit(name, len(runtimes), mean, None, None, steps, shape))
            continue
        cpu_s, io_s = phases.cpu_s[mine], phases.io_s[mine]
        steps, shape = _steps(split, number, cpu_s, io_s)
        known = split.known(number, mean)
        fits.append(
            NameFit(
                name,
                len(runtimes),
                mean,
                float(cpu_s.mean()) if known else None,
                float(io_s.mean()) if known else None,
                steps,
                shape,
            )
        )
    return fits


def pieces(
    split: Split, runs: Runs, names: int, phases: Phases
) -> tuple[list[list[str]], list[list[float]]]:
    """For each name the kinds of its steps, and for each run the seconds of these steps."""
    if not split.identified:
        return [["io_s"]] * names, [[max(s, 0.0)] for s in runs.runtimes.tolist()]
    cpu_s = np.maximum(phases.cpu_s, 0.0)
    io_s = np.maximum(phases.io_s, 0.0)
    if split.in_turns:
        pairs = zip((cpu_s / MOST_TURNS).tolist(), (io_s / MOST_TURNS).tolist(), strict=True)
        return [["cpu_s", "io_s"] * MOST_TURNS] * names, [list(pair) * MOST_TURNS for pair in pairs]
    kinds = [
        ["cpu_s", "io_s"] if body.order is Order.CPU_FIRST else ["io_s", "cpu_s"]
        for body in split.bodies
    ]
    both = {"cpu_s": cpu_s.tolist(), "io_s": io_s.tolist()}
    seconds = [
        [both[kind][i] for kind in kinds[name]] for i, name in enumerate(runs.names.tolist())
    ]
    return kinds, seconds


def _steps(
    split: Split, number: int, cpu_s: Floats, io_s: Floats
) -> tuple[list[dict[str, Any]], Shape]:
    if split.in_turns:
        return _turns(split.shares[number], cpu_s, io_s)
    body = split.bodies[number]
    shape = fit_shape(cpu_s if body.spread is Spread.CPU else io_s)
    constant = round(body.constant_s, 6)
    if body.spread is Spread.CPU:
        step: dict[str, dict[str, Any]] = {
            "cpu_s": {"cpu_s": shape.seconds},
            "io_s": {"io_s": constant},
        }
    else:
        step = {"cpu_s": {"cpu_s": constant}, "io_s": {"io_s": shape.seconds}}
    order = ["cpu_s", "io_s"] if body.order is Order.CPU_FIRST else ["io_s", "cpu_s"]
    return [step[kind] for kind in order], shape


def _turns(share: float, cpu_s: Floats, io_s: Floats) -> tuple[list[dict[str, Any]], Shape]:
    """Computing and waiting in turns; the last stretch takes what differs from task to task."""
    varying = "cpu_s" if share > 0.5 else "io_s"
    alone = cpu_s + io_s
    mean, sd = float(alone.mean()), float(alone.std())
    longest = max(share, 1 - share) * mean
    turns = int(np.clip(longest / max(3 * sd, 1e-9), 1, MOST_TURNS))
    parts = {"cpu_s": share * mean / turns, "io_s": (1 - share) * mean / turns}
    shape = fit_shape(parts[varying] + alone - mean)
    constant = [{kind: round(seconds, 6)} for kind, seconds in parts.items() if seconds > 0]
    steps: list[dict[str, Any]] = [step for _ in range(turns) for step in constant]
    place = max(i for i, step in enumerate(steps) if varying in step)
    steps[place] = {varying: shape.seconds}
    return steps, shape
