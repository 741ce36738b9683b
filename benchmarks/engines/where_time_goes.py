"""Where the batch engine spends its time: by stage, and how much of it on the arrays' elements.

Covers: the puzzle with random steps and publishing, on the quick and on the exact way.
Scenario: all stages of many runs are timed. A stage's fixed cost, which is Python's and what numpy
  spends on each call, is what the same stage costs with a single run; the rest is numpy's loops.
Run: python benchmarks/engines/where_time_goes.py [--replications 10000]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from time import process_time

import numpy as np
from engines import SCENARIOS

from celerysim import Scenario
from celerysim.batch.agenda import Stage
from celerysim.batch.fleet import Fleet
from celerysim.batch.summary import SUMMARY_DTYPE, summarise
from celerysim.batch.workload import load

#: What the numbers of the stages are called.
NAMES: dict[int, str] = {
    value: name for name, value in vars(Stage).items() if isinstance(value, int)
}


class Timed:
    """Calls, lanes and seconds of each stage."""

    def __init__(self) -> None:
        self.calls: dict[int, int] = defaultdict(int)
        self.lanes: dict[int, int] = defaultdict(int)
        self.seconds: dict[int, float] = defaultdict(float)

    def run(self, scenario: Scenario, replications: int, ample: bool) -> dict[str, float]:
        """Run a fleet; returns the seconds of what is not a stage."""
        lanes = np.arange(replications)
        marks = [process_time()]
        content = load(scenario, lanes)
        marks.append(process_time())
        fleet = Fleet(replications, [scenario], content.sent.shape[1] + 1, ample=ample)
        fleet.begin(lanes, scenario, content, lanes)
        marks.append(process_time())
        for stage, handler in list(fleet._handlers.items()):
            fleet._handlers[stage] = self._timed(stage, handler)
        fleet.advance(replications)
        marks.append(process_time())
        summarise(fleet, lanes, np.zeros(replications, dtype=SUMMARY_DTYPE))
        marks.append(process_time())
        load_s, begin_s, advance_s, summary_s = np.diff(marks).tolist()
        rest_s = advance_s - sum(self.seconds.values())
        return {
            "random numbers": load_s,
            "memory": begin_s,
            "choosing a stage": rest_s,
            "summaries": summary_s,
        }

    def _timed(self, stage, handler):
        def timed(lanes):
            began = process_time()
            handler(lanes)
            self.seconds[stage] += process_time() - began
            self.calls[stage] += 1
            self.lanes[stage] += lanes.size

        return timed


def report(scenario: Scenario, replications: int, ample: bool) -> None:
    alone, many = Timed(), Timed()
    for _ in range(3):
        alone.run(scenario, 1, ample)
    outside = many.run(scenario, replications, ample)
    tasks = 600 * replications
    total_s = sum(many.seconds.values()) + sum(outside.values())
    fixed_s = {
        stage: min(many.calls[stage] * alone.seconds[stage] / max(alone.calls[stage], 1), seconds)
        for stage, seconds in many.seconds.items()
    }
    print(f"{'stage':<24}{'share':>7}{'lanes a call':>14}{'ns a lane':>11}{'fixed':>8}")
    for stage in sorted(many.seconds, key=many.seconds.__getitem__, reverse=True):
        seconds, lanes = many.seconds[stage], many.lanes[stage]
        if seconds > 0.005 * total_s:
            print(
                f"{NAMES.get(stage, str(stage)):<24}{seconds / total_s:>7.1%}"
                f"{lanes / many.calls[stage]:>14,.0f}{seconds / lanes * 1e9:>11.0f}"
                f"{fixed_s[stage] / seconds:>8.0%}"
            )
    for name, seconds in outside.items():
        print(f"{name:<24}{seconds / total_s:>7.1%}")
    python_s = sum(fixed_s.values()) + outside["choosing a stage"]
    print(
        f"{tasks / total_s:,.0f} tasks/s; {1 - python_s / total_s:.0%} of the time in numpy's "
        f"loops, {python_s / total_s:.0%} in Python and in the fixed cost of numpy's calls\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=10_000)
    options = parser.parse_args()
    for name in ("puzzle", "puzzle, random"):
        for ample in (True, False):
            print(f"{name}, {'quick' if ample else 'exact'} way, {options.replications:,} runs")
            report(SCENARIOS[name], options.replications, ample)


if __name__ == "__main__":
    main()
