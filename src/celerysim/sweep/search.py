"""The search for the best settings.

Every setting is tried with the same random numbers (common random numbers), so
that the search compares settings and not luck. But it does choose the luckiest
for those numbers; so the best ones are run again with fresh ones, and only
these decide and are reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim._version import __version__
from celerysim.engines import Wanted, choose, for_runs
from celerysim.scenario import Scenario, load_scenario
from celerysim.sweep.axes import Point, Step, joined
from celerysim.sweep.chunk import work
from celerysim.sweep.crew import Crew
from celerysim.sweep.goals import Knob, Limit, read_goals
from celerysim.sweep.optimum import Estimate, Optimum, Verdict
from celerysim.sweep.sweeping import Progress, hire_for
from celerysim.sweep.trials import Setting, Trials

Floats = NDArray[np.float64]

#: Best settings run again before the search gives up finding one that surely keeps the limits.
CANDIDATES = 8
#: Stands for a statistic that is not known, where a search needs a number.
WORST = 1e30


def optimise(
    scenario: Scenario | str | Path,
    *,
    minimise: str,
    over: Sequence[str],
    subject_to: Sequence[str] = (),
    replications: int = 5,
    fresh: int = 30,
    budget: int = 200,
    engine: Wanted = "auto",
    processes: int | None = None,
    dask: str | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda done, total: None,
) -> Optimum:
    """The settings that make a statistic's mean least while others keep their limits.

    ``over`` says what may be turned: ``"worker.keepalive=5:600"`` (add ``:log``
    for a logarithmic scale), ``"worker.optimization=fair|fast"``. ``subject_to``
    limits means: ``"sojourn_s.p95<3"``. About ``budget`` settings are tried with
    ``replications`` runs each: all there are if they are no more, else those
    that differential evolution leads to (R. Storn and K. Price, 1997: it needs
    no slope, and takes the steps that counts of forks are full of). The best
    are run ``fresh`` times with new random numbers; the first that surely keeps
    all limits is the answer, else the best one. ``progress`` counts settings.

    Raises:
        ExperimentError: a goal makes no sense.
        ScenarioError: no setting is a scenario.
        CelerysimError: as :func:`~celerysim.sweep.sweep`.
    """
    base = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    limits, knobs = read_goals(base, minimise, subject_to, over)
    statistics = tuple(dict.fromkeys([minimise, *(limit.statistic for limit in limits)]))
    same, new = range(replications), range(replications, replications + fresh)
    everything = math.prod(knob.count for knob in knobs)
    total = int(min(everything, budget))
    generation = (total if everything <= budget else _members(knobs)) * replications
    engine = for_runs(engine, generation)
    size = generation * work([base], [choose(base, engine, "the scenario")])
    hire = hire_for(size, processes=processes, dask=dask, executor=executor)
    with Crew(hire) as crew:
        trials = Trials(
            base, statistics, crew, engine, lambda done: progress(min(done, total), total)
        )
        if everything <= budget:
            trials.run(map(joined, itertools.product(*(k.all_steps() for k in knobs))), same)
        else:
            _evolve(trials, knobs, limits, same, budget, base.run.seed)
        best, verdicts = _confirm(trials, _ranked(trials, limits, same), limits, new)
    return Optimum(
        minimise=minimise,
        settings=best.coordinates,
        objective=Estimate.of(trials.values(best.overrides, minimise, new)),
        verdicts=verdicts,
        fresh=fresh,
        tried=trials.table(same, _provenance(base, over, subject_to, budget)),
    )


def _evolve(
    trials: Trials,
    knobs: Sequence[Knob],
    limits: Sequence[Limit],
    replications: range,
    budget: int,
    seed: int,
) -> None:
    """Differential evolution, a whole generation at a time so that all processes have work."""
    from scipy.optimize import NonlinearConstraint, differential_evolution

    def statistic_at(places: Floats, statistic: str) -> Floats:
        """A statistic's mean at the settings of a generation (``places``: a column each)."""
        steps = [
            joined(knob.step(place) for knob, place in zip(knobs, column, strict=True))
            for column in places.reshape(len(knobs), -1).T.tolist()
        ]
        trials.run(steps, replications)  # what was run before is not run again
        means = [
            trials.mean(step.overrides, statistic, replications)
            if step.overrides in trials.points
            else math.nan
            for step in steps
        ]
        return np.array(means)

    def objective(places: Floats) -> Floats:
        return known(statistic_at(places, trials.statistics[0]))

    def excesses(places: Floats) -> Floats:
        rows = [known(limit.excess(statistic_at(places, limit.statistic))) for limit in limits]
        return np.array(rows)

    def known(values: Floats) -> Floats:
        return np.where(np.isnan(values), WORST, values)

    members = _members(knobs)
    differential_evolution(
        objective,
        [knob.bounds for knob in knobs],
        constraints=NonlinearConstraint(excesses, -np.inf, 0.0) if limits else (),
        integrality=[knob.discrete for knob in knobs],
        popsize=math.ceil(members / len(knobs)),
        maxiter=max(budget // members - 1, 1),
        seed=np.random.Generator(np.random.Philox(seed)),
        polish=False,
        vectorized=True,
        updating="deferred",
    )


def _members(knobs: Sequence[Knob]) -> int:
    """Settings in a generation: a multiple of the number of knobs, as scipy has it."""
    return max(5, math.ceil(10 / len(knobs))) * len(knobs)


def _ranked(trials: Trials, limits: Sequence[Limit], replications: range) -> list[Setting]:
    """The settings, best first: by how far they break limits, then by the objective."""

    def rank(setting: Setting) -> list[float]:
        values = {name: trials.mean(setting, name, replications) for name in trials.statistics}
        broken = sum(
            max(limit.excess(values[limit.statistic]), 0.0) / (abs(limit.bound) or 1.0)
            for limit in limits
        )
        known = [WORST if math.isnan(value) else value for value in values.values()]
        return [WORST if math.isnan(broken) else broken, *known]

    return sorted(trials.points, key=rank)


def _confirm(
    trials: Trials, ranked: Sequence[Setting], limits: Sequence[Limit], fresh: range
) -> tuple[Point, tuple[Verdict, ...]]:
    """The first of the best settings that surely keeps all limits, else the best; its verdicts."""
    judged = []
    for setting in ranked[: CANDIDATES if limits else 1]:
        point = trials.points[setting]
        trials.run([Step(dict(point.coordinates), setting)], fresh)
        verdicts = tuple(
            Verdict.of(limit, trials.values(setting, limit.statistic, fresh)) for limit in limits
        )
        judged.append((point, verdicts))
        if all(verdict.kept for verdict in verdicts):
            return judged[-1]
    return judged[0]


def _provenance(
    base: Scenario, over: Sequence[str], subject_to: Sequence[str], budget: int
) -> dict[str, Any]:
    return {
        "celerysim": __version__,
        "scenario": base.model_dump(mode="json", exclude_none=True),
        "over": list(over),
        "subject_to": list(subject_to),
        "budget": budget,
    }
