"""Reports as text: the words and tables that the commands print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from celerysim.conform import Verdict
from celerysim.metrics import STATISTICS
from celerysim.puzzle import PUBLISHED, Puzzle
from celerysim.replay import Pair, Replay

if TYPE_CHECKING:
    from celerysim.record import Recording
    from celerysim.what_if import WhatIf


def run_report(title: str, report: Mapping[str, Any], replications: int) -> str:
    """The statistics of a run, or of several replications with 95 % intervals."""
    several = replications > 1
    lines = [title]
    if several:
        lines.append(f"{replications} replications: mean [95 % confidence interval of the mean]")
    counts = [
        ("processes forked", "forks"),
        ("scale-ups", "scale_ups"),
        ("scale-downs", "scale_downs"),
        ("tasks finished", "tasks"),
        ("tasks lost", "lost"),
    ]
    lines.append("")
    lines += [f"  {label:<24}{_value(report[key], '{:.0f}')}" for label, key in counts]
    lines.append(f"  {'throughput':<24}{_value(report['throughput_per_s'], '{:.3f}')} tasks/s")
    for label, key in (
        ("children: busy share", "child_utilisation"),
        ("children: idle share", "child_idle_share"),
        ("cores: busy share", "core_utilisation"),
    ):
        lines.append(f"  {label:<24}{_value(report[key], '{:.3f}')}")
    lines.append(f"  {'duration':<24}{_value(report['duration_s'], '{:.2f}')} s")
    rows = [
        ["seconds", *STATISTICS],
        *(
            [label, *(_value(report[key][name], "{:.3f}") for name in STATISTICS)]
            for label, key in (
                ("sojourn", "sojourn_s"),
                ("  broker wait", "broker_wait_s"),
                ("  worker wait", "worker_wait_s"),
                ("  runtime", "runtime_s"),
            )
        ),
    ]
    return "\n".join([*lines, "", *columns(rows)])


def puzzle_report(answer: Puzzle) -> str:
    """The riddle, its answer and why."""
    scenario = answer.result.scenario
    assert scenario is not None
    worker, cycle, rule = scenario.worker, answer.cycle, answer.rule
    counts = sorted(set(answer.forks))
    publish_s = scenario.producer.publish_s.expectation
    lines = [
        f"600 tasks, four every 1.7 s; --autoscale={worker.max_concurrency},"
        f"{worker.min_concurrency}, prefetch 1, keepalive {worker.keepalive:g} s, "
        f"{publish_s:g} s a publish.",
        "",
        f"  processes forked        {', '.join(map(str, counts))}",
    ]
    if len(answer.forks) > 1:
        spread = ", ".join(f"{n} forks in {answer.forks.count(n)}" for n in counts)
        lines.append(f"  over {len(answer.forks)} replications: {spread}")
    lines += [
        f"  published answer        {PUBLISHED[0]}, up to {PUBLISHED[1]}",
        f"  published estimate      {answer.estimate:.0f}   "
        "(duration / keepalive * (max - min) + min, with 255 s)",
        "",
        "Why",
    ]
    if cycle.cycle_batches is None:
        lines.append(
            "  The pool grows to four and never shrinks: no message comes more than the keepalive "
            "after the last scale-up\n  while fewer tasks are reserved than there are processes."
        )
    else:
        lines += [
            f"  Every {cycle.cycle_batches} batches, message {cycle.trigger_message} of a batch "
            f"comes more than {worker.keepalive:g} s after the last scale-up, when few tasks are "
            "reserved:",
            f"  the pool shrinks by {cycle.forks_per_cycle}, and the rest of the same batch grows "
            f"it back. Each cycle forks {cycle.forks_per_cycle}.",
            f"  Rule: {worker.max_concurrency} + {rule.forks_per_cycle} x floor(149 / "
            f"{rule.cycle_batches}) = {rule.forks}." if rule.cycle_batches else "",
        ]  # fmt: skip
    lines += ["", "Publishing time against forks (a resonance of batch interval and keepalive)"]
    lines += [f"  {line}" for line in _ladder(answer.ladder, publish_s)]
    lines += ["", "Other settings, the rest unchanged"]
    lines += [f"  {name:<22}  {forks}" for name, forks in answer.variants.items()]
    return "\n".join(lines)


def replay_report(source: str, verdict: Replay) -> str:
    """The log's scale events beside the model's, and the verdict."""
    rows = [["log: seconds", "change", "model: seconds", "change", "trigger", "reserved", ""]]
    for pair in verdict.pairs:
        rows.append(_replay_row(pair))
    count = len(verdict.differences)
    if verdict.equal:
        logged = [pair for pair in verdict.pairs if pair.logged]
        text = f"equal: all {len(logged)} scale events of the log are the model's"
    else:
        text = f"different: {count} of {len(verdict.pairs)} scale events do not agree"
    if verdict.lost:
        text += f"; the log shows {verdict.lost} lost task(s)"
    return "\n".join([source, "", *columns(rows), "", text])


def conform_report(verdicts: Sequence[Verdict]) -> str:
    """A line for each log, and for a rejected one what no order explains."""
    lines = []
    for verdict in verdicts:
        word = "accepted" if verdict.accepted else "REJECTED"
        lines.append(
            f"{word}  {verdict.file}  ({verdict.scale_lines} scale lines, "
            f"{verdict.ambiguous} ambiguous)"
        )
        if verdict.first_violation is not None:
            found = verdict.first_violation
            lines.append(f'    at {found["time"]:.3f} s after "ready": {found["line"]}')
            for state in found["states_before"]:
                last = state["last_scale_up"]
                reserved = " or ".join(map(str, state["reserved"]))
                lines.append(
                    f"    before it: {state['processes']} processes, {reserved} reserved, "
                    f"last scale-up {'never' if last is None else f'at {last:.3f} s'}"
                )
    return "\n".join(lines)


def recording_report(recording: Recording) -> str:
    """Where a recording is and how it ended."""
    state = "complete" if recording.complete else f"interrupted: {recording.reason}"
    trace = recording.trace() if recording.complete else None
    lines = [f"{recording.folder}: {state}"]
    if trace is not None:
        lines.append(f"  {trace.forks} processes forked, {len(trace.tasks)} tasks")
        lines.append(f"  next: celerysim inspect {recording.log_path}")
    return "\n".join(lines)


def what_if_report(source: str, answer: WhatIf) -> str:
    """The log's figures beside the model's, without and with the changes."""
    models = [("model: as it was", answer.before), ("model: changed", answer.after)]
    if answer.after_latest is not None:
        models.append(("changed, sent late", answer.after_latest))
    rows = [["", "log", *(name for name, _ in models)]]
    for label, path in (
        ("processes forked", ("forks",)),
        ("scale-ups", ("scale_ups",)),
        ("tasks finished", ("tasks",)),
        ("tasks lost", ("lost",)),
        ("throughput, tasks/s", ("throughput_per_s",)),
        ("sojourn mean, s", ("sojourn_s", "mean")),
        ("sojourn p95, s", ("sojourn_s", "p95")),
        ("worker wait mean, s", ("worker_wait_s", "mean")),
        ("worker wait p95, s", ("worker_wait_s", "p95")),
        ("runtime mean, s", ("runtime_s", "mean")),
    ):
        figures = []
        for figure in (answer.log, *(run for _, run in models)):
            for key in path:
                figure = figure[key]
            figures.append(_value(figure, "{:.0f}" if isinstance(figure, int) else "{:.3f}"))
        rows.append([label, *figures])
    changes = ", ".join(answer.changes) or "no change"
    notes = [f"  - {note}" for note in answer.notes]
    return "\n".join([f"{source} with {changes}", "", *columns(rows), "", *notes])


def models_report(descriptions: Mapping[str, str]) -> str:
    """The shipped scenarios and what each is for."""
    blocks = [
        "\n".join([name, *(f"  {line}" for line in text.splitlines())])
        for name, text in descriptions.items()
    ]
    return "\n\n".join(blocks)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as aligned lines, the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _replay_row(pair: Pair) -> list[str]:
    log, model = pair.logged, pair.modelled
    return [
        f"{log['time']:.3f}" if log else "-",
        f"{log['change']:+d}" if log else "-",
        f"{model['time']:.3f}" if model else "-",
        f"{model['change']:+d}" if model else "-",
        model["trigger"] if model else "-",
        str(model["reserved"]) if model else "-",
        "" if pair.equal else "<- differs",
    ]


def _ladder(ladder: Iterable[tuple[float, int]], chosen_s: float) -> list[str]:
    """Runs of equal forks as one line each."""
    steps: list[list[Any]] = []
    for publish_s, forks in ladder:
        if steps and steps[-1][2] == forks:
            steps[-1][1] = publish_s
        else:
            steps.append([publish_s, publish_s, forks])
    return [
        (f"{low:g} to {high:g} s" if low < high else f"{low:g} s").ljust(22)
        + f"{forks:>4}"
        + ("   <- this run" if low <= chosen_s <= high else "")
        for low, high, forks in steps
    ]


def _value(value: Any, form: str) -> str:
    """A number, or a mean with its interval; a dash for what is not known."""
    if isinstance(value, Mapping):
        mean = _value(value["mean"], form if value["ci95"] is None else _finer(form))
        if value["ci95"] is None:
            return mean
        low, high = value["ci95"]
        return f"{mean} [{_finer(form).format(low)}, {_finer(form).format(high)}]"
    return "-" if value is None else form.format(value)


def _finer(form: str) -> str:
    """Means of counts need decimals."""
    return "{:.2f}" if form == "{:.0f}" else form
