"""Pictures: that they are drawn and say what they should; how they look is for the eye."""

from __future__ import annotations

from pathlib import Path

import pytest

from celerysim import CelerysimError, load_scenario, simulate
from celerysim.plots import ladder_picture, run_picture, save


def test_a_run_is_drawn_with_a_lane_a_process_and_its_scale_events(tmp_path: Path) -> None:
    result = simulate(load_scenario("puzzle"))
    figure = run_picture(result, "puzzle")
    children, levels = figure.axes
    assert len(children.get_yticks()) == 4  # four places, however many processes
    labels = children.get_legend_handles_labels()[1]
    assert {"idle", "running a task", "scaling up", "scaling down"} <= set(labels)
    assert "reserved (received, not finished)" in levels.get_legend_handles_labels()[1]
    save(figure, tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 20_000


def test_the_ladder_is_drawn(tmp_path: Path) -> None:
    save(ladder_picture([0.0, 0.05, 0.1], [28, 31, 31], 0.05), tmp_path / "ladder.svg")
    assert (tmp_path / "ladder.svg").read_text().startswith("<?xml")


def test_an_unknown_ending_or_a_missing_folder_is_a_clear_error(tmp_path: Path) -> None:
    figure = ladder_picture([0.0], [1], 0.0)
    with pytest.raises(CelerysimError, match=r"Remedy: name it run\.png"):
        save(figure, tmp_path / "run.docx")
    with pytest.raises(CelerysimError, match="a folder that exists"):
        save(figure, tmp_path / "nowhere" / "run.png")
