"""Pools side by side, and the share of CPU at which the leader changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from celerysim.errors import CelerysimError
from celerysim.plots import save
from celerysim.scenario import Scenario, make_scenario
from celerysim.studies.comparison import compare_pools
from celerysim.studies.memory import Memory
from celerysim.studies.pools import on_pool, pools
from celerysim.studies.pools_picture import pools_picture, share_picture
from celerysim.studies.pools_report import pools_report, share_report
from celerysim.studies.shares import share_sweep, shares_of, with_share


def saturated(**tables: dict[str, Any]) -> Scenario:
    """More half-second tasks than any pool can do; hardly any costs, acknowledged at once."""
    zero = dict.fromkeys(
        ("deliver_s", "receive_s", "dispatch_s", "accept_s", "result_s", "fork_s", "reap_s",
         "child_start_s", "child_accept_s", "child_report_s", "task_start_s", "task_end_s",
         "backend_s", "hub_waiting_s"), 0.0,
    )  # fmt: skip
    data: dict[str, Any] = {
        "producer": {"kind": "times", "times_s": [0.1] * 2000},
        "tasks": {"profiles": {"task": {"steps": [{"cpu_s": 0.1}, {"io_s": 0.4}]}}},
        "worker": {"idealised": True, "prefetch_multiplier": 4},
        "machine": {"cores": 8},
        "run": {"horizon_s": 40.1},
        "costs": zero,
    }
    return make_scenario(data | tables)


def test_throughput_and_cores_of_each_pool() -> None:
    rows = {r.label: r for r in pools(saturated(), sizes=[2, 8])}
    # two slots of 0.5 s; eight slots on one core need 0.8 s of it in 0.5 s: it is always busy,
    # and what has left it by 39.7 s is done waiting by the end
    full = (39.7 - 0.1) / 0.1 / 40.1
    assert rows["prefork(2)"].figure("throughput_per_s") == pytest.approx(4.0, rel=0.02)
    assert rows["gevent(2)"].figure("throughput_per_s") == pytest.approx(4.0, rel=0.02)
    assert rows["prefork(8)"].figure("throughput_per_s") == pytest.approx(16.0, rel=0.02)
    assert rows["gevent(8)"].figure("throughput_per_s") == pytest.approx(full, rel=0.02)
    # threads take turns of 5 ms, so of eight that begin together the first is done 35 ms before the
    # last: batch by batch they drift apart until the core is always busy
    threads = rows["threads(8)"].figure("throughput_per_s")
    assert threads is not None
    assert 0.9 * full < threads <= full
    assert rows["prefork(8)"].cores_used == pytest.approx(1.6, rel=0.02)
    assert rows["gevent(8)"].cores_used == pytest.approx(1.0, rel=0.02)
    assert rows["gevent(8)"].throughput_per_core == pytest.approx(full, rel=0.02)


def test_memory_is_a_sum() -> None:
    memory = Memory(process_kib=51_200.0, greenlet_kib=1024.0, thread_kib=2048.0)
    rows = pools(saturated(), pools=["prefork", "gevent", "threads", "solo"], sizes=[4],
                 memory=memory)  # fmt: skip
    assert [row.memory_mib for row in rows] == [250.0, 54.0, 58.0, 50.0]
    assert pools(saturated(), pools=["solo"])[0].memory_mib == pytest.approx(60_000 / 1024)


def test_solo_appears_once_and_autoscale_is_dropped() -> None:
    scenario = saturated(worker={"autoscale": [8, 2]})
    assert [r.label for r in pools(scenario, pools=["solo"], sizes=[2, 4])] == ["solo(1)"]
    worker = on_pool(scenario, "prefork", 3).worker
    assert (worker.autoscale, worker.concurrency) == (None, 3)


def test_keys_and_progress() -> None:
    seen: list[tuple[int, int]] = []
    (row,) = pools(saturated(), pools=["gevent"], sizes=[2], replications=2,
                   progress=lambda done, total: seen.append((done, total)))  # fmt: skip
    assert set(row.as_json()) == {
        "pool", "size", "simulated", "cores_used", "throughput_per_core", "memory_mib"
    }  # fmt: skip
    assert len(row.as_json()["simulated"]["tasks"]["values"]) == 2
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize("size", [4, 8])
def test_one_core_is_full_when_the_share_is_one_in_size(size: int) -> None:
    # gevent does min(size / T, 1 / (share T)), prefork on enough cores size / T
    sweep = share_sweep(saturated(), shares_of("0:0.4:0.05"), pools_=["prefork", "gevent"],
                        sizes=[size])  # fmt: skip
    (crossing,) = sweep.crossings
    assert (crossing.before, crossing.after) == (None, "prefork")
    assert crossing.low <= 1 / size <= crossing.high


def test_with_less_better_the_leader_is_the_same() -> None:
    scenario = saturated(producer={"kind": "rate", "rate_per_s": 8.0, "max_tasks": 200}, run={})
    sweep = share_sweep(scenario, [0.0, 0.5], pools_=["gevent", "prefork"], sizes=[8],
                        compare="sojourn_s.p95")  # fmt: skip
    assert [c.after for c in sweep.crossings] == ["prefork"]


def test_each_task_keeps_its_duration() -> None:
    steps = [{"io_s": 0.3}, {"cpu_s": {"kind": "lognormal", "mean": 0.1, "sd": 0.05}}]
    scenario = saturated(
        tasks={"profiles": {"task": {"steps": steps}, "only": {"steps": steps[1:]}}}
    )
    for share in (0.0, 0.2, 1.0):
        for name, total in (("task", 0.4), ("only", 0.1)):
            found = with_share(scenario, share).tasks.profiles[name].steps
            cpu_s = sum(step.seconds.expectation for step in found if step.is_cpu)
            assert sum(step.seconds.expectation for step in found) == pytest.approx(total)
            assert cpu_s == pytest.approx(share * total)
    kept = with_share(scenario, 0.5).tasks.profiles["task"].steps[1].model_dump(exclude_none=True)
    assert kept["cpu_s"]["sd"] == pytest.approx(0.1)  # the spread grows along


def test_ranges_of_shares() -> None:
    assert shares_of("0:1:0.25") == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert shares_of("0:0.3:0.1") == (0.0, 0.1, 0.2, 0.3)
    assert shares_of("0.1:0.1:1") == (0.1,)


@pytest.mark.parametrize("text", ["", "0:1", "0:1:0", "1:0:0.1", "0:2:0.1", "a:b:c", "0:1:nan",
                                  "0:1:0.0001", "0:1:inf", "-1:1:0.1"])  # fmt: skip
def test_no_range(text: str) -> None:
    with pytest.raises(CelerysimError, match="Remedy"):
        shares_of(text)


def test_bad_input_is_told_with_a_remedy() -> None:
    scenario = saturated()
    with pytest.raises(CelerysimError, match=r"no pool 'greenlets'.*prefork, gevent"):
        pools(scenario, pools=["greenlets"])
    with pytest.raises(CelerysimError, match="0 is no size"):
        pools(scenario, sizes=[0])
    with pytest.raises(CelerysimError, match="at least one"):
        pools(scenario, sizes=[])
    with pytest.raises(CelerysimError, match="no figure 'p95'"):
        share_sweep(scenario, [0.5], pools_=["gevent"], sizes=[2], compare="p95")
    traced = {"profiles": {"t": {"steps": [{"io_s": 1}]}}, "trace": [["t", [1.0]]]}
    scenario_of_trace = saturated(tasks=traced)
    with pytest.raises(CelerysimError, match="trace"):
        with_share(scenario_of_trace, 0.5)
    with pytest.raises(CelerysimError, match="0 to 1"):
        with_share(scenario, 1.5)
    with pytest.raises(CelerysimError, match="thread_kib"):
        Memory(thread_kib=-1.0)


def test_reports_and_pictures(tmp_path: Path) -> None:
    scenario = saturated(run={"horizon_s": 5.0})
    rows = pools(scenario, sizes=[2])
    text = pools_report("mine", rows)
    assert "prefork(2)" in text
    assert "memory MiB" in text
    save(pools_picture(rows, "mine"), tmp_path / "pools.png")
    sweep = share_sweep(scenario, [0.0, 0.5, 1.0], sizes=[4])
    text = share_report("mine", sweep)
    assert "size 4, between 0.0% and 50.0%: prefork gets ahead of gevent" in text
    assert "rule of thumb" in text
    assert set(sweep.as_json()) == {"compare", "rule_of_thumb", "crossings", "leaders", "shares"}
    save(share_picture(sweep, "mine"), tmp_path / "shares.png")
    assert (tmp_path / "shares.png").stat().st_size > 10_000


def test_what_the_command_asks(tmp_path: Path) -> None:
    scenario = saturated(run={"horizon_s": 3.0})
    found = compare_pools(scenario, pools_="gevent, solo", sizes="2,4")
    assert [row["pool"] for row in found.as_json()] == ["gevent", "gevent", "solo"]
    assert "solo(1)" in found.report("mine")
    swept = compare_pools(scenario, pools_="gevent", sizes="2", cpu_share="0:1:0.5")
    assert [row["cpu_share"] for row in swept.as_json()["shares"]] == [0.0, 0.5, 1.0]
    save(found.picture("mine"), tmp_path / "a.svg")
    save(swept.picture("mine"), tmp_path / "b.svg")
    with pytest.raises(CelerysimError, match="'2;4' is no list of sizes"):
        compare_pools(scenario, sizes="2;4")
