"""The report: one row a claim, what holds and what does not, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from celerysim._version import __version__
from celerysim.compare import Comparison, Stage
from celerysim.compare.report import percent
from celerysim.compare.stages import STAGES
from celerysim.validate import cards
from celerysim.validate.claims import CLAIMED, holds, share, shown
from celerysim.validate.validation import TRACES, Validation

FILE = "REPORT.md"
PICTURES = "pictures"

_INTRODUCTION = """\
# What the model says, beside what was found

Written by `celerysim validate`; do not edit. `celerysim validate --check` fails when it no longer
holds.

Each recording in [traces](traces) is a run of real Celery on RabbitMQ, each published cell a mean
over twenty. *Predicted*: from the scenario alone, with random numbers other than those of the
real run. *Replayed*: the messages arrive when they did and the tasks take what they took, so what
is left is the error of the model of Celery. Numbers in brackets hold the middle 95 % of the
simulated runs. A figure holds inside them, or within its limit. The limits were set before
anything was compared: throughput 3 %, mean sojourn 6 %, its 95th percentile 10 %; none for forks
and lost tasks.

Nothing in the model was fitted to these recordings. The worker's costs are the defaults, measured
in runs of their own ([costs](costs/README.md)); two shares that say who gets the interpreter lock
were measured in other runs of threads (`celerysim.engine.interpreter_lock`); the published cells
are calibrated on the two marked ones only."""


def report(validation: Validation) -> str:
    """The whole report."""
    lines = [_INTRODUCTION, "", *_overview(validation)]
    lines += ["", f"![errors of all recorded runs]({PICTURES}/overview.png)"]
    lines += ["", "## Recorded runs", "", *_recordings(validation)]
    lines += ["", "## What misses, and why", "", *_misses(validation)]
    if validation.cells:
        lines += ["", "## Published tables", "", *_tables(validation)]
    lines += ["", f"celerysim {__version__}; {validation.replications} simulated runs a stage."]
    return "\n".join(lines) + "\n"


def write(validation: Validation, folder: Path) -> list[Path]:
    """Write report, pictures and data cards; returns what was written."""
    from celerysim.compare.picture import compare_picture
    from celerysim.plots import save
    from celerysim.validate.pictures import overview_picture

    written = _texts(validation, folder)
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    pictures = folder / PICTURES
    pictures.mkdir(exist_ok=True)
    save(overview_picture(validation), pictures / "overview.png")
    paths = [*written, pictures / "overview.png"]
    for name, comparisons in validation.comparisons.items():
        path = pictures / f"{name}.png"
        save(compare_picture(comparisons[0], f"{name}, run 1"), path)
        paths.append(path)
    return paths


def overview(validation: Validation) -> str:
    """The report's first table and what misses, for a terminal."""
    return "\n".join([*_overview(validation), "", "misses:", *_misses(validation)])


def differences(validation: Validation, folder: Path) -> list[str]:
    """What in the committed report and cards no longer holds, a line each; empty: all does."""
    found = []
    for path, text in _texts(validation, folder).items():
        old = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        new = text.splitlines()
        gone, come = set(old) - set(new), set(new) - set(old)
        found += [f"{path.name}: no longer: {line}" for line in old if line in gone]
        found += [f"{path.name}: now: {line}" for line in new if line in come]
    return found


def _texts(validation: Validation, folder: Path) -> dict[Path, str]:
    texts = {folder / FILE: report(validation)}
    for group in validation.groups:
        recordings = [c.recording for c in validation.comparisons[group.name]]
        texts[folder / TRACES / group.name / cards.FILE] = cards.card(group, recordings)
    return texts


def _overview(validation: Validation) -> list[str]:
    comparisons = [c for row in validation.comparisons.values() for c in row]
    rows = [["figure", "replayed: hold", "bias", "predicted: hold", "bias"]]
    for path in CLAIMED:
        row = [comparisons[0].prediction("predicted", path).figure.label]
        for stage in STAGES:
            good, runs, bias = share(comparisons, stage, path)
            row += [f"{good} of {runs} ({100 * good / runs:.0f} %)" if runs else "-", percent(bias)]
        rows.append(row)
    lines = [f"{len(comparisons)} recorded runs of {len(validation.groups)} scenarios:", ""]
    lines += _markdown(rows)
    if validation.cells:
        outside = {c.subject for c in validation.claims if c.holds is False and not c.replayed}
        inside = len(validation.cells) - len(outside)
        lines += ["", f"{inside} of {len(validation.cells)} published cells hold in every figure."]
    return lines


def _recordings(validation: Validation) -> list[str]:
    rows = [["run", "figure", "found", "predicted", "error", "", "replayed", "error", "", "basis"]]
    for claim in validation.claims:
        if (replayed := claim.replayed) is None:
            continue
        rows.append([
            claim.subject, claim.figure, claim.found,
            claim.predicted, percent(claim.error), _word(claim.holds),
            shown(replayed), percent(replayed.error), _word(holds(replayed)), claim.basis,
        ])  # fmt: skip
    lines = _markdown(rows)
    for group in validation.groups:
        card = f"{TRACES}/{group.name}/{cards.FILE}"
        picture = f"{PICTURES}/{group.name}.png"
        lines += ["", f"**{group.name}**: {group.what} ([card]({card}), [picture]({picture}))"]
    return lines


def _misses(validation: Validation) -> list[str]:
    """Every claim about a recording that does not hold, with its cause as the catalogue has it."""
    lines = []
    for group in validation.groups:
        for label, stages in _missed(validation.comparisons[group.name]).items():
            where = "; ".join(f"{stage}: {', '.join(runs)}" for stage, runs in stages.items())
            why = group.misses.get(label, "not explained")
            lines.append(f"- {group.name}, {label} ({where}): {why}")
    return lines or ["Nothing."]


def _missed(comparisons: Sequence[Comparison]) -> dict[str, dict[Stage, list[str]]]:
    """Figure to stage to the runs that miss."""
    missed: dict[str, dict[Stage, list[str]]] = {}
    for comparison in comparisons:
        for path, stage in product(CLAIMED, STAGES):
            p = comparison.prediction(stage, path)
            if holds(p) is False:
                runs = missed.setdefault(p.figure.label, {}).setdefault(stage, [])
                runs.append(comparison.recording.folder.name)
    return missed


def _tables(validation: Validation) -> list[str]:
    rows = [["cell", "figure", "found", "predicted", "error", "limit", "", "basis"]]
    for claim in validation.claims:
        if claim.replayed is None:
            rows.append([
                claim.subject, claim.figure, claim.found, claim.predicted, percent(claim.error),
                claim.rule, _word(claim.holds), claim.basis,
            ])  # fmt: skip
    return [
        "Medians over runs, seconds. [docs/tables.md](../docs/tables.md) has the limits, and",
        "names the mechanism that is missing in each cell that misses.",
        "",
        *_markdown(rows),
    ]


def _word(holds: bool | None) -> str:
    return {True: "holds", False: "**misses**", None: ""}[holds]


def _markdown(rows: Iterable[Sequence[str]]) -> list[str]:
    head, *body = rows
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in body),
    ]
