"""The experiment file: a question, the scenario it is asked of, what varies, and what comes out.

Read from TOML as frozen models that refuse unknown fields. The text beneath a
field is its documentation.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from celerysim.errors import Problem
from celerysim.scenario import Scenario, load_scenario, make_scenario
from celerysim.sweep.axes import Axis, clashes
from celerysim.sweep.problems import ExperimentError, Strict, nearest, problem, problems_of, refuse
from celerysim.sweep.statistics import UNITS

#: What a folder's experiment is called.
FILE = "sweep.toml"
Count = Annotated[int, Field(ge=1, strict=True)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


class Until(Strict):
    """Replications at each point until a mean is known well enough."""

    statistic: str
    """Whose mean: ``worker_wait_s.p95``."""
    half_width: Positive | None = None
    """Wanted half-width of the 95 % interval of the mean, in the statistic's unit."""
    relative: Positive | None = None
    """Instead: wanted half-width as a share of the mean, such as 0.05."""
    at_least: Annotated[int, Field(ge=2, strict=True)] = 5
    """Replications before the first look. A few, or luck stops it too early."""
    at_most: Count = 1000
    """Replications after which it stops all the same."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if (self.half_width is None) == (self.relative is None):
            raise refuse("until has either half_width or relative", "give one of them")
        if self.at_least > self.at_most:
            raise refuse("at_least is above at_most", "raise at_most")
        return self

    @field_validator("statistic")
    @classmethod
    def _known(cls, statistic: str) -> str:
        return known_statistic(statistic)


class Picture(Strict):
    """One picture of the results: means over replications, with 95 % bands."""

    kind: Literal["lines", "heatmap", "pareto"]
    """``lines``: statistics against an axis. ``heatmap``: one statistic over two axes.
    ``pareto``: two statistics against each other, the points none beats in both drawn out."""
    x: str
    """The axis along the bottom (``pareto``: a statistic)."""
    y: Annotated[tuple[str, ...], Field(min_length=1)]
    """``lines``: statistics, a panel each. ``heatmap``: the other axis. ``pareto``: a statistic."""
    value: str | None = None
    """``heatmap``: the statistic shown as colour. ``pareto``: the axis that names the points."""
    by: str | None = None
    """``lines`` and ``pareto``: the axis that gives a line each."""
    log: tuple[str, ...] = ()
    """Axes and statistics with a logarithmic scale: ``["worker.keepalive", "forks_per_hour"]``."""
    title: str = ""
    """Written above it [default: the experiment's question]."""
    file: str = "picture.png"
    """File name, in the folder of results; its ending chooses the format."""

    def statistics(self) -> list[str]:
        """The statistics it shows."""
        match self.kind:
            case "lines":
                return list(self.y)
            case "heatmap":
                return [self.value] if self.value else []
            case "pareto":
                return [self.x, *self.y]

    def axes(self) -> list[str]:
        """The axes it needs."""
        by = [self.by] if self.by else []
        match self.kind:
            case "lines":
                return [self.x, *by]
            case "heatmap":
                return [self.x, *self.y]
            case "pareto":
                return [*by, *([self.value] if self.value else [])]

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.kind != "lines" and len(self.y) != 1:
            raise refuse(f"a {self.kind} has one y", "leave one, or draw two pictures")
        if self.kind == "heatmap" and (self.value is None or self.by is not None):
            raise refuse("a heatmap has a value and no by", "give value = 'forks_per_hour', say")
        if self.kind == "lines" and self.value is not None:
            raise refuse("lines have no value", "write it into y")
        for statistic in self.statistics():
            known_statistic(statistic)
        shown = [*self.axes(), *self.statistics()]
        if unknown := [name for name in self.log if name not in shown]:
            raise refuse(f"the picture does not show '{unknown[0]}'", nearest(unknown[0], shown))
        return self

    @field_validator("file")
    @classmethod
    def _plain(cls, file: str) -> str:
        if Path(file).name != file:
            raise refuse("file is a name, not a path", f"write file = '{Path(file).name}'")
        return file


class Experiment(Strict):
    """A sweep as a file: everything its results follow from."""

    question: str = ""
    """What it is to answer, in plain words."""
    scenario: Any
    """The base scenario: a shipped name, a file's path (from the experiment's folder), or its
    tables: ``[scenario.producer]``."""
    set: tuple[str, ...] = ()
    """Overrides of the base: ``["worker.keepalive=600"]``."""
    axes: tuple[Axis, ...] = ()
    """What varies: the points are their product, the last axis fastest."""
    replications: Count | None = None
    """Runs at each point, with the same random numbers at every point [default: 1]."""
    until: Until | None = None
    """Instead of ``replications``: as many as a wanted precision takes."""
    seed: Annotated[int, Field(ge=0, strict=True)] | None = None
    """Seed of all random numbers [default: the scenario's ``run.seed``]."""
    outputs: Annotated[tuple[str, ...], Field(min_length=1)] = ("forks_per_hour", "sojourn_s.p95")
    """Statistics kept for each run; those of ``until`` and the pictures are added."""
    pictures: tuple[Picture, ...] = ()
    """Pictures to draw."""

    @field_validator("scenario")
    @classmethod
    def _text_or_table(cls, scenario: Any) -> Any:
        if not isinstance(scenario, str | Mapping):
            raise refuse("scenario is a name, a path or a table", "write scenario = 'puzzle', say")
        return scenario

    @field_validator("outputs")
    @classmethod
    def _known(cls, outputs: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(known_statistic(name) for name in outputs)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.replications is not None and self.until is not None:
            raise refuse("replications and until exclude each other", "remove one of them")
        names = [name for axis in self.axes for name in axis.names()]
        for picture in self.pictures:
            for name in picture.axes():
                if name not in names:
                    raise refuse(f"a picture needs '{name}', no axis's name", nearest(name, names))
            for axis in self.axes:
                # it would draw unlike points on top of each other
                if picture.kind != "pareto" and not set(axis.names()) & set(picture.axes()):
                    raise refuse(
                        f"picture {picture.file} leaves out the axis {axis.names()[0]}",
                        "name it as x, y or by, or make an experiment without it",
                    )
        files = [picture.file for picture in self.pictures]
        if len(set(files)) < len(files):
            raise refuse("two pictures have the same file", "give each its file = 'name.png'")
        return self

    @property
    def at_once(self) -> int:
        """Replications of each point before the first look at the results."""
        return self.until.at_least if self.until else self.replications or 1

    def columns(self) -> tuple[str, ...]:
        """All statistics kept: ``outputs`` and what ``until`` and the pictures need."""
        shown = [name for picture in self.pictures for name in picture.statistics()]
        asked = [self.until.statistic] if self.until else []
        return tuple(dict.fromkeys([*self.outputs, *asked, *shown]))


def known_statistic(name: str) -> str:
    """``name``, if there is such a statistic; else pydantic's error with the nearest ones."""
    if name not in UNITS:
        raise refuse(f"there is no statistic '{name}'", nearest(name, UNITS))
    return name


def load_experiment(source: str | Path) -> tuple[Experiment, Path]:
    """The experiment of a file, or of a folder's ``sweep.toml``; and the file's path.

    Raises:
        ExperimentError: the file is missing or no TOML, or anything in it is
            wrong (the scenario aside); everything wrong is reported at once.
    """
    path = Path(source)
    path = path / FILE if path.is_dir() else path
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no text in UTF-8"
        raise _unusable(
            source, f"cannot be read: {why}", f"give a folder with a {FILE}, or such a file"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise _unusable(
            source,
            f"is not valid TOML: {error}",
            "correct the line named; strings need quotes, tables are [section]",
        ) from error
    return make_experiment(data, source=str(source)), path


def make_experiment(data: Mapping[str, Any], *, source: str = "experiment") -> Experiment:
    """The experiment of nested tables, as TOML gives them.

    Raises:
        ExperimentError: as :func:`load_experiment`.
    """
    try:
        experiment = Experiment.model_validate(data)
    except ValidationError as error:
        raise ExperimentError(source, problems_of(error, Experiment)) from None
    if found := clashes(experiment.axes):
        raise ExperimentError(source, found)
    return experiment


def base_scenario(experiment: Experiment, folder: Path) -> Scenario:
    """The scenario an experiment starts from; a path in it counts from ``folder``.

    Raises:
        ScenarioError: it cannot be used.
    """
    overrides = list(experiment.set)
    if experiment.seed is not None:
        overrides.append(f"run.seed={experiment.seed}")
    if isinstance(experiment.scenario, Mapping):
        return make_scenario(experiment.scenario, overrides, source="the experiment's scenario")
    beside = folder / experiment.scenario
    return load_scenario(beside if beside.is_file() else experiment.scenario, overrides)


def _unusable(source: str | Path, rule: str, remedy: str) -> ExperimentError:
    found: list[Problem] = [problem("file", str(source), rule, remedy)]
    return ExperimentError(str(source), found)
