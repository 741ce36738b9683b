"""The worker's command line, environment and settings."""

from __future__ import annotations

import subprocess
import sys
import uuid
from typing import Any

import pytest

from celerysim.record.command import command, make_job, refuse_unreal, worker_variables
from celerysim.record.errors import RecordError
from celerysim.record.job import VARIABLE, load_job
from celerysim.record.processes import environment
from celerysim.scenario import Scenario, make_scenario, override

RUN = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


def scenario(**worker: Any) -> Scenario:
    return make_scenario(
        {
            "producer": {"kind": "rate", "rate_per_s": 1.0, "max_tasks": 1},
            "tasks": {"profiles": {"my.task": {"steps": [{"io_s": 1.0}]}}},
            "worker": worker,
        }
    )


def line(events: bool = False, **worker: Any) -> list[str]:
    made = scenario(**worker)
    job = make_job(made, RUN, "amqp://u:secret@h//", loops=5, fd=7)
    return command(made, job, events=events)


def test_the_whole_line_of_a_default_worker() -> None:
    name = f"celerysim.{RUN}"
    assert line() == [
        *(sys.executable, "-m", "celery", "-A", "celerysim.record.worker_app", "worker"),
        *("-P", "prefork", "-n", f"{name}@localhost", "-Q", name, "-l", "INFO"),
        *("--concurrency=4", "-O", "fair"),
    ]


@pytest.mark.parametrize("pool", ["gevent", "eventlet", "threads", "solo"])
def test_the_pool_is_two_arguments_because_celery_patches_by_them(pool: str) -> None:
    # celery/__init__.py: maybe_patch_concurrency looks for "-P" and the argument after it.
    arguments = line(pool=pool)
    assert arguments[arguments.index("-P") + 1] == pool


@pytest.mark.parametrize(
    ("worker", "argument"),
    [
        ({"autoscale": [8, 2]}, "--autoscale=8,2"),
        ({"max_tasks_per_child": 7}, "--max-tasks-per-child=7"),
        ({"max_memory_per_child": 90000.0}, "--max-memory-per-child=90000"),
        ({"time_limit": 30.5, "soft_time_limit": 20.0}, "--time-limit=30.5"),
        ({"time_limit": 30.0, "soft_time_limit": 20.0}, "--soft-time-limit=20.0"),
        ({"gossip": False}, "--without-gossip"),
        ({"heartbeat": False}, "--without-heartbeat"),
    ],
)
def test_settings_with_an_option(worker: dict[str, Any], argument: str) -> None:
    assert argument in line(**worker)
    assert argument.partition("=")[0] not in " ".join(line())


def test_autoscale_replaces_concurrency() -> None:
    assert not [a for a in line(autoscale=[8, 2]) if a.startswith("--concurrency")]


def test_fast_is_set_by_the_app_since_the_command_line_refuses_it() -> None:
    made = scenario(optimization="fast")
    assert "-O" not in line(optimization="fast")
    assert make_job(made, RUN, "amqp://", loops=5, fd=7).fast


def test_events_only_when_asked_for() -> None:
    assert "-E" not in line()
    assert "-E" in line(events=True)


def test_the_address_with_its_password_is_in_no_argument() -> None:
    assert "secret" not in " ".join(line())


def test_settings_without_an_option_and_the_environment() -> None:
    made = scenario(
        pool="gevent",
        hub="poll",
        keepalive=3.5,
        prefetch_multiplier=1,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        proc_alive_timeout=9.0,
    )
    job = make_job(made, RUN, "amqp://u:secret@h//", loops=5, fd=7)
    variables = worker_variables(made, job)
    assert variables["AUTOSCALE_KEEPALIVE"] == "3.5"
    assert variables["TZ"] == "UTC"
    assert variables["GEVENT_BACKEND"] == "poll"
    told = load_job(variables[VARIABLE])
    assert told == job
    assert told.names == ("my.task",)
    assert told.conf == {
        "worker_prefetch_multiplier": 1,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_proc_alive_timeout": 9.0,
    }


def test_what_no_real_worker_can_be_is_refused_all_at_once() -> None:
    made = scenario(idealised=True, write_order=[2, 1])
    broker = made.broker.model_copy(update={"gossiping_workers": 2})
    aftermath = "tasks.profiles.'my.task'.aftermath={factor=1.1,share=0.1,share_after_idle=0.2}"
    made = override(made.model_copy(update={"broker": broker}), [aftermath])
    with pytest.raises(RecordError) as caught:
        refuse_unreal(made)
    assert "tasks.profiles.my.task.aftermath" in str(caught.value)
    assert "worker.idealised=false" in str(caught.value)
    assert "worker.write_order = [2, 1]" in str(caught.value)
    assert "broker.gossiping_workers=0" in str(caught.value)
    refuse_unreal(scenario())


def test_the_worker_loads_no_numpy_and_no_pydantic() -> None:
    # Every fork collects and copies what the supervisor has in memory.
    pytest.importorskip("celery")
    job = make_job(scenario(), RUN, "amqp://", loops=5, fd=7)
    code = (
        "import sys, celerysim.record.worker_app as w; "
        "assert 'my.task' in w.app.tasks; "
        "print([m for m in ('numpy', 'pydantic', 'scipy', 'simpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(**{VARIABLE: job.dump()}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
