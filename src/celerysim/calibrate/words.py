"""What was fitted and what the log cannot tell, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from celerysim.calibrate.costs import FittedCosts
from celerysim.calibrate.order import NameOrder
from celerysim.calibrate.profiles import NameFit
from celerysim.calibrate.split import APART, Split
from celerysim.history import History, Outcome
from celerysim.scenario.costs import Costs


def order_note(order: NameOrder, names: Sequence[str]) -> str:
    """How the names follow each other, and how sure that is."""
    if len(names) == 1:
        return f"tasks: all are {names[0]}"
    if order.pattern is not None:
        shown = ", ".join(names[place] for place in order.pattern[:12])
        more = ", ..." if len(order.pattern) > 12 else ""
        return (
            f"order: the pattern {shown}{more} repeats {order.repetitions:.0f} times and is right "
            f"for {order.agreement:.1%} of the tasks (drawn by weight: one chance in "
            f"10^{-order.chance:.0f})"
        )
    mix = ", ".join(f"{name} {share:.1%}" for name, share in zip(names, order.weights, strict=True))
    text = f"mix: {mix}; no repeating order"
    if abs(order.dependence) > 0.1:
        text += (
            f" (but a name follows itself {abs(order.dependence):.0%} "
            f"{'more' if order.dependence > 0 else 'less'} often than if drawn by weight)"
        )
    return text


def profile_note(fit: NameFit) -> str:
    """What was fitted to one name."""
    shape = fit.shape
    how = f"{shape.kind}, sd {shape.sd:.4f} s"
    if shape.distance:
        how += f", Kolmogorov distance {shape.distance:.3f} over {shape.tasks}"
    if fit.cpu_s is None or fit.io_s is None:
        return f"{fit.name}: runtime {fit.runtime_s:.4f} s ({how})"
    return (
        f"{fit.name}: runtime {fit.runtime_s:.4f} s, of it {fit.cpu_s:.4f} s CPU and "
        f"{fit.io_s:.4f} s waiting, the rest held up by others (what differs: {how})"
    )


def split_notes(split: Split, names: Sequence[str], running: int) -> tuple[list[str], list[str]]:
    """(what is known, what is not) about CPU, waiting, their order and the cores."""
    if not split.identified:
        why = (
            f"no more than {running} tasks ran at once, which {split.cores} cores serve unshared"
            if split.cores and running <= split.cores
            else "the runtimes do not answer to how many tasks ran at once"
        )
        remedy = (
            "add a log of the same tasks at another concurrency"
            if split.cores_given
            else "give --cores, or add a log of the same tasks at another concurrency"
        )
        return [], [
            f"how much of a runtime is CPU: {why} (taken: runtimes as logged, all waiting, so they "
            f"do not answer to other settings; to learn it, {remedy})"
        ]
    known = [
        f"CPU and waiting: told apart by sharing {split.cores} cores"
        f"{'' if split.cores_given else ' (number found: no other explains the log as well)'}, "
        f"log likelihood {split.gain:.2f} a task better than runtimes that do not answer"
    ]
    unknown = []
    for name, (low, high), body in zip(
        names, split.ranges_s, split.bodies or [None] * len(names), strict=False
    ):
        text = f"{name}: {low:.3f} to {high:.3f} s CPU"
        if body is not None:
            text += f", {body.order.value}, {body.spread.value} differs from task to task"
        known.append(text)
    if split.in_turns or split.order_gain < APART:
        taken = "in turns" if split.in_turns else "the likeliest one"
        unknown.append(f"in which order tasks compute and wait (taken: {taken})")
    unknown.append(
        "whether something else used the cores: the split rests on the model of sharing alone"
    )
    return known, unknown


def cost_notes(costs: FittedCosts) -> tuple[list[str], list[str]]:
    """(what is known, what is not) about the supervisor's costs."""
    fitted = costs.named
    known = [
        f"{name}: {cost.seconds * 1000:.2f} ms, from {cost.samples} gaps "
        f"(median distance {cost.spread_s * 1000:.2f} ms)"
        for name, cost in fitted.items()
        if cost is not None
    ]
    defaults = Costs()
    missing = ", ".join(
        f"{name} {getattr(defaults, name) * 1000:g} ms" for name, c in fitted.items() if c is None
    )
    rest = "costs of reaping, acknowledging and results"
    return known, [f"{missing + '; ' if missing else ''}{rest} (taken: the measured defaults)"]


def log_notes(histories: Sequence[History], *, sent_known: bool) -> list[str]:
    """What the rows show and a scenario cannot say."""
    notes = []
    if not sent_known:
        notes.append(
            "when tasks were sent: waits in the broker are unknown, and the sojourn counts from "
            '"received"'
        )
    for outcome, text in (
        (Outcome.FAILED, "failed, and their runtimes are not in the log (taken: as the others')"),
        (Outcome.RETRIED, "were retried (taken: each attempt is a message)"),
        (Outcome.REVOKED, "were revoked or expired (taken: they run)"),
    ):
        count = sum(history.count(outcome) for history in histories)
        if count:
            notes.append(f"{count} tasks {text}")
    pool = histories[0].settings.get("pool", "prefork")
    if pool != "prefork":
        notes.append(
            f"the pool is {pool}, whose tasks hold each other up in other ways than sharing cores: "
            "runtimes are taken as logged"
        )
    return notes
