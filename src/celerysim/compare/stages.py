"""What the model is given to predict a recording with, in two stages.

*Replayed*: every message arrives when it really did, and every task takes what it
really took. What is wrong then is the model of Celery. In a prefork pool a task takes
its logged runtime, whatever it was made of (it then uses no core, so the supervisor
never waits for one); in the pools of one process the runtime is the pool's own doing,
so there a task takes the CPU and waiting it was told to. The log and the broker do not
tell times more precisely than to a millisecond, and some decisions hang on less; so
each replication puts every time anywhere within :data:`RESOLUTION_S`.

Tasks that use no core leave the supervisor one at once, where a real supervisor sometimes
waited some milliseconds for it. So when the recorded worker's cores were full, as many
messages and results are late as wake-ups are (:mod:`celerysim.uncertainty`).

*Predicted*: the scenario as it stands, with random numbers other than those that
the recording used. The error of the scenario's load is added: when a publisher is
late, or a core slower than stated, it shows here.

In both the costs that the recorded worker measured itself are taken from the recording, and
each run draws the others from their measured spread (:mod:`celerysim.uncertainty`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np

from celerysim.compare.full_cores import FullCores
from celerysim.history import Floats, Outcome
from celerysim.record import Recording
from celerysim.record.plan import messages
from celerysim.scenario import Scenario, make_scenario, override
from celerysim.trace import Trace
from celerysim.uncertainty import LATE_WAKEUPS, with_spread

Stage = Literal["replayed", "predicted"]
STAGES: tuple[Stage, ...] = ("replayed", "predicted")

#: Seconds within which a recorded time is known: a log's stamps are cut to milliseconds.
RESOLUTION_S = 0.001

#: Pools whose tasks run in processes of their own.
_PREFORK = "prefork"


def runs(
    stage: Stage,
    recording: Recording,
    trace: Trace,
    replications: int,
    overrides: Sequence[str] = (),
) -> Iterator[tuple[Scenario, int]]:
    """The runs to simulate: a scenario and the number of its replication.

    ``overrides`` come before the costs are drawn: a cost given there has its spread too.
    """
    measured = [f"costs.{name}={seconds!r}" for name, seconds in recording.costs.items()]
    replay = Replay(recording, trace) if stage == "replayed" else None
    # Replication 0 has the random numbers that the recorded publisher used.
    for number in range(1, replications + 1):
        scenario = recording.scenario if replay is None else replay.scenario(number)
        if measured or overrides:
            scenario = override(scenario, [*measured, *overrides])
        yield with_spread(scenario, number), number


class Replay:
    """A recording's arrivals and runtimes as scenarios, one a replication."""

    def __init__(self, recording: Recording, trace: Trace) -> None:
        self._data = recording.scenario.model_dump(mode="json", exclude_none=True)
        self._seed = recording.scenario.run.seed
        # As in Recording.trace: a publisher that lost its core after sending notes the end late.
        known = dict(zip(trace.ids, trace.tasks["sent"].tolist(), strict=True))
        self._sent = np.array([known[id] for id in recording.ids], dtype=np.float64)
        plan = list(islice(messages(recording.scenario), len(self._sent)))
        self._names = [m.name for m in plan]
        self._late_s = recording.scenario.machine.late_wakeup_s
        self._late = np.zeros((2, len(plan)), dtype=np.bool_)
        self._is_logged = recording.scenario.worker.pool == _PREFORK
        if not self._is_logged:
            self._kinds = {m.name: tuple(kind for kind, _ in m.steps) for m in plan}
            # Messages carry seconds of this machine's CPU, a scenario those of one of speed 1.
            speed = recording.scenario.machine.speed
            self._work = [[s * speed if kind == "cpu" else s for kind, s in m.steps] for m in plan]
            return
        self._kinds = dict.fromkeys(self._names, ("io",))
        started, runtimes = _logged(recording, trace)
        told = [m.steps for m in plan]
        full = FullCores(started, runtimes, told, recording.scenario.machine.cores)
        self._late = np.array([full.at(self._sent), full.at(started + runtimes)])
        taken = np.where(
            np.isnan(runtimes), [sum(seconds for _, seconds in steps) for steps in told], runtimes
        )
        self._work = [[seconds] for seconds in taken.tolist()]

    def scenario(self, replication: int) -> Scenario:
        """The scenario of one replication: all times within the resolution, some of them late."""
        generator = np.random.Generator(np.random.Philox([self._seed + 1, replication]))
        shape = self._late.shape
        jitter = generator.uniform(-0.5, 0.5, shape) * RESOLUTION_S
        late = generator.random(shape) < generator.uniform(*LATE_WAKEUPS)
        jitter += self._late * late * generator.uniform(0.5, 1.5, shape) * self._late_s
        # Messages stay in order: they come through one connection.
        sent = np.maximum.accumulate(np.round(self._sent + jitter[0], 6))
        start = min(float(sent.min(initial=0.0)), 0.0)
        work = [
            [name, [max(seconds[0] + late, 0.0), *seconds[1:]]]
            for name, seconds, late in zip(self._names, self._work, jitter[1].tolist(), strict=True)
        ]
        return make_scenario(
            self._data
            | {
                "producer": {
                    "kind": "times",
                    "start_s": start,
                    "times_s": np.maximum(sent - start, 0.0).tolist(),
                },
                "tasks": {"profiles": self._profiles(), "trace": work},
            },
            source="the recording's replay",
        )

    def _profiles(self) -> dict[str, Any]:
        given = self._data["tasks"]["profiles"]
        # A logged runtime has the first task's extra work in it.
        paid = {"first_in_child_cpu_s": 0.0} if self._is_logged else {}
        return {
            name: given[name] | {"steps": [{f"{kind}_s": 1} for kind in kinds]} | paid
            for name, kinds in self._kinds.items()
        }


def _logged(recording: Recording, trace: Trace) -> tuple[Floats, Floats]:
    """When each message's task started and how long it ran; NaN where the log does not say."""
    tasks = trace.tasks
    ended = np.isin(tasks["outcome"], (Outcome.SUCCEEDED, Outcome.FAILED))
    seconds = np.where(ended, tasks["finished"] - tasks["started"], np.nan)
    known = dict(zip(trace.ids, zip(tasks["started"], seconds, strict=True), strict=True))
    unknown = (np.nan, np.nan)
    rows = np.array([known.get(id, unknown) for id in recording.ids], dtype=np.float64)
    started, runtimes = rows.reshape(-1, 2).T
    return started, runtimes
