"""Axes: which values they have, and what their product is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celerysim import make_scenario
from celerysim.sweep import Axis
from celerysim.sweep.axes import LogRange, Range, points, toml_text

BASE = {
    "producer": {"kind": "rate", "rate_per_s": 1.0, "max_tasks": 3},
    "tasks": {"profiles": {"a": {"steps": [{"io_s": 1.0}]}}},
}


def axis(**fields: object) -> Axis:
    return Axis.model_validate(fields)


def values(**fields: object) -> list[object]:
    (name,) = axis(**fields).names()
    return [step.coordinates[name] for step in axis(**fields).steps()]


def test_values_are_kept_as_given() -> None:
    assert values(field="worker.concurrency", values=[4, 1]) == [4, 1]
    assert values(field="worker.autoscale", values=[[4, 0], [8, 2]]) == ["[4, 0]", "[8, 2]"]
    assert values(field="worker.task_acks_late", values=[True, False]) == [True, False]


def test_linear_ranges_have_both_ends_and_no_rounding_dust() -> None:
    fifths = {"from": 0, "to": 1, "step": 0.2}
    assert values(field="a", range=fifths) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert values(field="a", range={"from": 0, "to": 0.3, "points": 4}) == [0.0, 0.1, 0.2, 0.3]
    assert values(field="a", range={"from": 1, "to": 8, "step": 3}) == [1, 4, 7]
    assert all(isinstance(v, int) for v in values(field="a", range={"from": 1, "to": 3, "step": 1}))


def test_log_ranges_have_a_constant_factor_and_exact_ends() -> None:
    found = values(field="worker.keepalive", log={"from": 1, "to": 1000, "points": 7})
    assert (found[0], found[-1], len(found)) == (1.0, 1000.0, 7)
    assert found[1] == 3.162  # four digits: readable, and the same everywhere
    whole = {"from": 1, "to": 16, "points": 9, "whole": True}
    assert values(field="worker.concurrency", log=whole) == [1, 2, 3, 4, 6, 8, 11, 16]


@given(st.floats(0.001, 1000), st.floats(1.01, 1e6), st.integers(2, 200))
def test_ranges_ascend_from_end_to_end(low: float, factor: float, count: int) -> None:
    ends = {"from": low, "to": low * factor, "points": count}
    for found in (LogRange.model_validate(ends).values(), Range.model_validate(ends).values()):
        assert len(found) == count
        assert math.isclose(found[0], low, rel_tol=1e-5)
        assert math.isclose(found[-1], low * factor, rel_tol=1e-5)
        assert found == sorted(found)


def test_points_are_the_product_with_the_last_axis_fastest() -> None:
    two = axis(field="worker.concurrency", values=[1, 2])
    cases = axis(name="load", cases={"low": ["producer.rate_per_s=1"], "high": []})
    found = points([two, cases])
    assert [dict(p.coordinates) for p in found] == [
        {"worker.concurrency": 1, "load": "low"},
        {"worker.concurrency": 1, "load": "high"},
        {"worker.concurrency": 2, "load": "low"},
        {"worker.concurrency": 2, "load": "high"},
    ]
    assert found[0].overrides == ("worker.concurrency=1", "producer.rate_per_s=1")
    assert str(found[3]) == "worker.concurrency=2, load=high"


def test_no_axis_is_one_point() -> None:
    (point,) = points([])
    assert point.overrides == ()


def test_zipped_axes_move_together() -> None:
    together = axis(
        zip=[
            {"field": "worker.autoscale", "values": [[4, 0], [8, 0]]},
            {"field": "machine.cores", "range": {"from": 4, "to": 8, "step": 4}, "name": "cores"},
        ]
    )
    assert [dict(step.coordinates) for step in together.steps()] == [
        {"worker.autoscale": "[4, 0]", "cores": 4},
        {"worker.autoscale": "[8, 0]", "cores": 8},
    ]
    assert together.steps()[1].overrides == ("worker.autoscale=[8, 0]", "machine.cores=8")


def test_a_whole_table_can_be_a_value() -> None:
    table = {"kind": "lognormal", "mean": 0.5, "sd": 0.1}
    (step,) = axis(field="tasks.profiles.a.steps.0.io_s", values=[table]).steps()
    seconds = make_scenario(BASE, step.overrides).tasks.profiles["a"].steps[0].seconds
    assert seconds.model_dump() == table


@given(st.one_of(st.text(), st.integers(-(2**62), 2**62), st.floats(), st.booleans()))
def test_any_plain_value_survives_as_toml(value: object) -> None:
    import tomllib

    if isinstance(value, str) and "\x7f" in value:
        return  # TOML wants DEL escaped; no field holds one
    found = tomllib.loads(f"value = {toml_text([value])}")["value"][0]
    assert found == value or (value != value and found != found)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"field": "a"}, "one of values, range, log, zip and cases, not 0"),
        ({"field": "a", "values": [1], "log": {"from": 1, "to": 2, "points": 2}}, "not 2"),
        ({"values": [1]}, "names no field"),
        ({"field": "a", "values": [1, 2, 1]}, "occurs twice: 1"),
        ({"field": "a", "range": {"from": 2, "to": 1, "step": 1}}, "from must be below to"),
        ({"field": "a", "range": {"from": 0, "to": 1}}, "either step or points"),
        ({"field": "a", "range": {"from": 0, "to": 1, "step": 0}}, "step must be greater than 0"),
        ({"field": "a", "log": {"from": 0, "to": 1, "points": 3}}, "starts above 0"),
        ({"cases": {"a": []}}, "have a name and no field"),
        ({"name": "n", "cases": {}}, "at least 1"),
        ({"zip": [{"field": "a", "values": [1]}, {"field": "b", "values": [1, 2]}]}, "as many"),
        ({"zip": [{"field": "a", "values": [1]}]}, "at least 2"),
        (
            {"zip": [{"field": "a", "values": [1]}, {"name": "b", "cases": {"x": []}}]},
            "members of a zip",
        ),
    ],
)
def test_axes_that_make_no_sense_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match="(?s)" + words.replace("(", r"\(")):
        axis(**fields)
