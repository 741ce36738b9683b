"""Pictures of sweeps: that they show what they should; how they look is for the eye."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celerysim import Scenario
from celerysim.plots import save
from celerysim.sweep import Picture, Table, sweep
from celerysim.sweep.pictures import draw, front

AXES = [
    {"name": "load", "cases": {"slow": ["producer.rate_per_s=0.5"], "quick": []}},
    {"field": "worker.keepalive", "values": [2.0, 30.0, 600.0]},
]


@pytest.fixture
def table(scenario: Scenario) -> Table:
    outputs = ["forks_per_hour", "child_idle_share"]
    return sweep(scenario, AXES, 2, outputs, engine="reference", processes=1)


def test_lines_with_bands(table: Table, tmp_path: Path) -> None:
    picture = Picture(
        kind="lines", x="worker.keepalive", y=("forks_per_hour", "child_idle_share"), by="load",
        log=("worker.keepalive", "forks_per_hour"),
    )  # fmt: skip
    figure = draw(table, picture, "Why?")
    top, bottom = figure.axes
    assert top.get_title(loc="left") == "Why?"
    assert top.get_legend_handles_labels()[1] == ["slow", "quick"]
    assert len(top.collections) == 2  # a band each
    assert (top.get_yscale(), bottom.get_yscale()) == ("log", "linear")
    assert bottom.get_xlabel() == "worker.keepalive [s]"
    save(figure, tmp_path / "lines.png")


def test_a_heat_map_of_labels_and_numbers(table: Table, tmp_path: Path) -> None:
    picture = Picture(
        kind="heatmap", x="worker.keepalive", y=("load",), value="forks_per_hour",
        log=("worker.keepalive", "forks_per_hour"), title="Heat",
    )  # fmt: skip
    axes = draw(table, picture).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["slow", "quick"]
    assert len(axes.texts) == 6  # few cells have their numbers written in
    assert axes.collections[0].get_array().shape == (2, 3)
    save(axes.figure, tmp_path / "heat.png")


def test_a_pareto_front_is_joined_and_its_points_named(table: Table, tmp_path: Path) -> None:
    picture = Picture(
        kind="pareto", x="forks_per_hour", y=("child_idle_share",), by="load",
        value="worker.keepalive",
    )  # fmt: skip
    axes = draw(table, picture).axes[0]
    assert {text.get_text() for text in axes.texts} <= {"2", "30", "600"}
    assert axes.get_legend_handles_labels()[1] == ["slow", "quick"]
    save(axes.figure, tmp_path / "front.svg")


def test_a_front_by_hand() -> None:
    x = np.array([3.0, 1.0, 2.0, 2.0, 4.0, np.nan])
    y = np.array([1.0, 5.0, 5.0, 2.0, 1.0, 0.0])
    assert front(x, y).tolist() == [1, 3, 0]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_a_front_holds_the_points_that_none_beats(points: list[tuple[int, int]]) -> None:
    x, y = np.array(points, dtype=float).T
    kept = {(x[i], y[i]) for i in front(x, y)}
    unbeaten = {
        p for p in points
        if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)
    }  # fmt: skip
    assert kept == unbeaten
