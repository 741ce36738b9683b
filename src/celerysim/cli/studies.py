"""The commands about studies: tables, pools, ack-lag, losses."""

from __future__ import annotations

from typing import Annotated

import typer

from celerysim.cli.common import (
    Json,
    Plot,
    Processes,
    Replications,
    Seed,
    Set,
    app,
    progress_bar,
    save_picture,
    show,
    user_errors,
)

OptionalScenario = Annotated[
    str | None,
    typer.Argument(help="A TOML file, or a name `models` lists [default: the published cells]."),
]


@app.command(epilog="Example: celerysim tables --json > tables.json")
def tables(
    replications: Annotated[
        int, typer.Option(min=1, metavar="N", help="Runs of each cell; published: 20.")
    ] = 20,
    set_: Set = None,
    processes: Processes = 0,
    as_json: Json = False,
) -> None:
    """Simulate two published studies, 24 cells of 300 s, beside their published figures."""
    from celerysim.studies.tables import tables as simulate_tables
    from celerysim.studies.tables_report import tables_report

    with user_errors(), progress_bar("simulating") as progress:
        results = simulate_tables(
            replications, overrides=set_ or (), processes=processes, progress=progress
        )
    show([result.as_json() for result in results], tables_report(results), as_json)


@app.command(epilog="Example: celerysim pools my.toml --sizes 4,8 --cpu-share 0:0.5:0.05")
def pools(
    scenario: Annotated[str, typer.Argument(help="A TOML file, or a name `models` lists.")],
    pools_: Annotated[
        str, typer.Option("--pools", metavar="NAMES", help="Separated by commas.")
    ] = "prefork,gevent,threads",
    sizes: Annotated[
        str, typer.Option(metavar="NUMBERS", help="--concurrency of each, separated by commas.")
    ] = "2,4,8",
    cpu_share: Annotated[
        str | None,
        typer.Option(
            metavar="FROM:TO:STEP", help="Vary the tasks' share of CPU, their duration kept."
        ),
    ] = None,
    compare: Annotated[
        str, typer.Option(metavar="FIGURE", help="What pools are compared by: sojourn_s.p95.")
    ] = "throughput_per_s",
    process_kib: Annotated[
        float | None,
        typer.Option(metavar="KIB", help="Memory of a process [default: costs.child_rss_kib]"),
    ] = None,
    greenlet_kib: Annotated[
        float, typer.Option(metavar="KIB", help="Memory of a greenlet that waits.")
    ] = 10.0,
    thread_kib: Annotated[
        float, typer.Option(metavar="KIB", help="Memory of a thread that waits.")
    ] = 19.0,
    set_: Set = None,
    replications: Replications = 1,
    seed: Seed = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Compare pools and sizes on your tasks: throughput, waits, cores, memory."""
    from celerysim.scenario import load_scenario
    from celerysim.studies.comparison import compare_pools
    from celerysim.studies.memory import Memory

    with user_errors(), progress_bar("simulating") as progress:
        found = compare_pools(
            load_scenario(scenario, overrides_of(set_, seed)),
            pools_=pools_,
            sizes=sizes,
            cpu_share=cpu_share,
            compare=compare,
            memory=Memory(process_kib, greenlet_kib, thread_kib),
            replications=replications,
            progress=progress,
        )
    show(found.as_json(), found.report(scenario), as_json)
    if plot is not None:
        save_picture(plot, lambda: found.picture(scenario))


@app.command(name="ack-lag", epilog="Example: celerysim ack-lag threads-late-acks")
def ack_lag(
    scenario: OptionalScenario = None,
    others: Annotated[
        str,
        typer.Option(metavar="NUMBERS", help="Other gossiping workers on the broker, by commas."),
    ] = "0,1,2,5,10",
    set_: Set = None,
    replications: Replications = 20,
    seed: Seed = None,
    processes: Processes = 0,
    as_json: Json = False,
) -> None:
    """What acknowledgements that wait cost a gevent, eventlet or threads worker.

    Such a worker may write an acknowledgement only when its loop turns for another
    reason: a message, an event of another worker, a time-out of seconds. Without a
    scenario: the published cells, and prefork's published advantage a core without the lag.
    """
    from celerysim.scenario import load_scenario
    from celerysim.studies.ack_lag import ack_lag as simulate_lag
    from celerysim.studies.ack_lag import others_of
    from celerysim.studies.ack_lag_report import ack_lag_report, published_ack_lag_report
    from celerysim.studies.published_ack_lag import published_ack_lag

    with user_errors(), progress_bar("simulating") as progress:
        if scenario is None:
            published = published_ack_lag(
                replications,
                overrides=overrides_of(set_, seed),
                processes=processes,
                progress=progress,
            )
            show(published.as_json(), published_ack_lag_report(published), as_json)
            return
        found = simulate_lag(
            load_scenario(scenario, overrides_of(set_, seed)),
            replications,
            others=others_of(others),
            processes=processes,
            progress=progress,
        )
    show(found.as_json(), ack_lag_report(scenario, found), as_json)


@app.command(epilog="Example: celerysim losses my.toml --set worker.keepalive=30.01")
def losses(
    scenario: OptionalScenario = None,
    set_: Set = None,
    replications: Replications = 200,
    seed: Seed = None,
    spread: Annotated[
        bool,
        typer.Option(help="Draw each run's costs, late wake-ups and write order."),
    ] = True,
    processes: Processes = 0,
    as_json: Json = False,
) -> None:
    """How often a run loses a task at scale-down, with exact intervals.

    Without a scenario: the published cell in which 3 of 20 real runs lost one.
    """
    from celerysim.scenario import load_scenario
    from celerysim.studies.losses import losses as simulate_losses
    from celerysim.studies.losses import published_losses
    from celerysim.studies.losses_report import losses_report

    overrides = overrides_of(set_, seed)
    with user_errors(), progress_bar("simulating") as progress:
        if scenario is None:
            found = published_losses(
                replications,
                overrides=overrides,
                spread=spread,
                processes=processes,
                progress=progress,
            )
        else:
            found = simulate_losses(
                load_scenario(scenario, overrides),
                replications,
                name=scenario,
                spread=spread,
                processes=processes,
                progress=progress,
            )
    show(found.as_json(), losses_report(found), as_json)


def overrides_of(set_: list[str] | None, seed: int | None) -> list[str]:
    """``--set`` and ``--seed`` as overrides."""
    return [*(set_ or ()), *([] if seed is None else [f"run.seed={seed}"])]
