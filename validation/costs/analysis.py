"""From recorded rows (see probes.py) to samples of each cost."""

from collections import defaultdict
from typing import Any

import numpy as np
from probes import ACK, DEATH, READY, UP, Row

STATES = {ACK: "ACK", READY: "READY", DEATH: "DEATH", UP: "UP"}
COST_OF_STATE = {ACK: "accept_s", READY: "result_s", UP: "up_s", DEATH: "death_s"}
NAN = float("nan")
Samples = dict[tuple[str, str], list[tuple[float, float]]]  # (cost, phase) -> (wall, CPU)


def analyse(
    pid: int, rows: list[Row], sent: list[Row], zombies: dict[int, float], out: Samples
) -> None:
    """Add the samples (wall, CPU) of one worker run to `out`, by cost and phase."""
    returned = {row[1]: row[2] + row[3] for row in sent[1:] if row[0].endswith("light")}
    starts = list({row[0]: row[2] for row in reversed(sent)}.items())[::-1]
    mine = [row[1:] for row in rows if row[0] == pid]
    up_to = max(row[2] for row in sent) + 2.0  # what comes later is the shutdown

    def add(cost: str, at: float, wall: float, cpu: float = NAN) -> None:
        names = [name for name, start in starts if start <= at]
        if at < up_to:
            out[cost, names[-1] if names else "start"].append((wall, cpu))

    written, born, death, waited = defaultdict(list), {}, {}, {}
    children_cpu = 0.0
    ended: dict[int, float] = {}
    for i, (at, _, label, wall, cpu, *note) in enumerate(mine):
        j = i
        while j and mine[j - 1][0] >= at:
            j -= 1
        inner = defaultdict(list)
        for row in mine[j:i]:
            inner[row[2]].append(row)
        scaled = {"fork", "terminate", "select"} & inner.keys()
        if (
            label == "drain"
            and len(inner.get("handle", ())) == 1
            and not scaled
            and at > starts[0][1]
        ):
            add("receive_s", at, wall, cpu)
            sent_at = returned.get(inner["handle"][0][5])
            if sent_at is not None:
                add("deliver_s", at, at - sent_at)
        elif label == "drain" and not inner and at > starts[0][1]:
            add("receive_s (read finding nothing)", at, wall, cpu)
        elif label == "dispatch" and note[0]:
            add("dispatch_s", at, wall / note[0], cpu / note[0])
        elif label in ("tick", "ack"):
            add(f"{label}_s", at, wall, cpu)
        elif label == "quick drain":
            out["quick_drain_s", "messages in queue" if starts[0][1] < at else "no message"].append(
                (wall, cpu)
            )
        elif label == "result" and inner["state"]:
            state, subject = inner["state"][-1][5:7]
            add(COST_OF_STATE[state], at, wall, cpu)
            if state == DEATH:
                death[subject] = inner["state"][-1][0]  # the signal; its receiver may preempt us
        elif label == "fork":
            add("fork_s", at, wall, cpu)
            add("fork_s (gc.collect)", at, inner["gc"][0][3], inner["gc"][0][4])
            out["fork_s", f"{note[1]} children before"].append((wall, cpu))
        elif label == "launch":
            born[note[0]] = at + wall
        elif label == "terminate":
            ended[note[0]] = at
        elif label == "send" and note[1] > 4:  # not the 4-byte header
            written[note[0]].append(at)
        elif label == "waited":
            waited[note[0]], children_cpu = cpu - children_cpu, cpu
            if note[0] in zombies and note[0] in death:
                add("reap_lag_s (zombie to waitpid)", at, at - zombies[note[0]])
        elif label == "exit event":
            add(
                "exit event, child not dead yet (a share)", at, not any(r[5] for r in inner["reap"])
            )
            if note[0] in zombies:
                add("exit_event_s (zombie to event)", at, at - zombies[note[0]])
        elif label == "reap" and note[0] and at > starts[0][1]:
            blocked = inner["select"]
            add("reap_s", at, wall / note[0], cpu / note[0])
            add("reap_s (a count: polls)", at, len(blocked) / note[0])
            add("reap_s (waits in poll)", at, sum(r[3] for r in blocked) / note[0])
            for row in blocked:
                add("one poll of a dead child's pipe", at, row[3], row[4])

    for name, start in starts:
        end = min([other for _, other in starts if other > start], default=up_to - 1.0)
        ticks = [row for row in mine if row[2] == "tick" and start <= row[0] < end]
        n = sum(row[0] == name for row in sent)
        if not ticks:
            continue
        add("supervisor: all of a task", start, NAN, (ticks[-1][1] - ticks[0][1]) / n)
        add("supervisor: hub ticks a task (a count)", start, len(ticks) / n)

    children = defaultdict(list)
    for row in rows:
        if row[0] != pid:
            children[row[0]].append(row[1:])
    for child, events in children.items():
        accepted, acked, body = 0, (NAN, NAN), (NAN, NAN)
        for at, start_cpu, label, wall, cpu, *note in events:
            done, done_cpu = at + wall, start_cpu + cpu
            if label == "put" and note[0] == UP:
                add("child_start_s", at, done - born[child], done_cpu)
            elif label == "put" and note[0] == ACK and accepted < len(written[child]):
                add(
                    f"child_accept_s{'' if accepted else ' (first task)'}",
                    at,
                    done - written[child][accepted],
                    done_cpu - note[1],
                )
                accepted, acked = accepted + 1, (done, done_cpu)
            elif label == "body":
                add("child_begin_s", at, at - acked[0], start_cpu - acked[1])
                body = (done, done_cpu)
            elif label == "log" and "succeeded" in note[0]:
                add(
                    "child_report_s (until the line is written)",
                    at,
                    done - body[0],
                    done_cpu - body[1],
                )
            elif label == "put" and note[0] == READY:
                add("child_report_s", at, done - body[0], done_cpu - body[1])
            elif label == "put" and note[0] == DEATH and child in ended and child in death:
                add("child_term_s", at, done - ended[child], done_cpu - note[1])
                if child in zombies and child in waited:
                    add("child_exit_s", at, zombies[child] - death[child], waited[child] - done_cpu)


def startup_timeline(pid: int, rows: list[Row]) -> list[tuple[float, str]]:
    """What the supervisor did around the start of its loop, in seconds after the ready line."""
    names = {
        "handle": "message handled",
        "fork": "fork",
        "send": "job written",
        "qos update": "qos update",
        "quick drain": "quick drain",
        "state": "state",
        "log": "log",
    }
    mine = sorted(row[1:] for row in rows if row[0] == pid and row[3] in names)
    ready = next(row[0] for row in mine if row[2] == "log" and "ready" in row[5])
    lines = []
    for at, _, label, wall, _, *note in mine:
        if label == "log" and not any(w in note[0] for w in ("ready", "received", "Scaling")):
            continue
        text = names[label]
        if label == "log":
            text = f"line {note[0]!r}"
        elif label == "state":
            text = f"message {STATES[note[0]]} handled"
        if 0 <= at - ready < 0.4 and not (label == "send" and note[1] == 4):
            lines.append((round(at - ready, 6), f"{text}, took {wall * 1e3:.2f} ms"))
    return lines


def summary(samples: list[tuple[float, float]]) -> dict[str, Any]:
    """n and, for wall and CPU seconds, median, mean, 10th and 90th percentile."""
    result: dict[str, Any] = {"n": len(samples)}
    for name, column in zip(("wall", "cpu"), np.array(samples).T, strict=True):
        if not np.isnan(column).all():
            p10, median, p90 = np.percentile(column, (10, 50, 90))
            result[name] = {
                k: round(float(v), 9)
                for k, v in (
                    ("median", median),
                    ("mean", column.mean()),
                    ("p10", p10),
                    ("p90", p90),
                )
            }
    return result
