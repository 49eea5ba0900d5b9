"""`mle-ideator evaluate`: ideators compared, on the same help states or in whole sessions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mle_ideator.cli.matrix_options import AGAIN, Tasks

if TYPE_CHECKING:
    from mle_ideator.rl.evaluation.values import Try


def evaluate(
    ideator: Annotated[list[str], typer.Option(help=f"Who is asked; {AGAIN}.")],
    states: Annotated[
        Path | None, typer.Option(help="Store of help states: one idea is executed from each.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="Or whole sessions on a set of tasks, as `bench run`.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Part of the suite: train or test.")] = None,
    task: Tasks = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Of whole sessions: how many.  [default: 3]")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Most actions of a whole session.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="So many states, drawn by the seed; else all.")
    ] = None,
    ideas: Annotated[int, typer.Option(min=1, help="Answers to each state.")] = 1,
    seed: Annotated[int, typer.Option(help="Decides all that is random.")] = 0,
    attempts: Annotated[
        int, typer.Option(min=1, help="Cells that may fail before an idea is given up.")
    ] = 1,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Rollouts at a time.  [default: all cores]")
    ] = None,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster; without it one is started here.")
    ] = None,
    sandbox: Annotated[str | None, typer.Option(help="As for `run`; else the sessions'.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for results, and to go on from.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Compare ideators: one idea each from the same help states (--states), or whole sessions
    (--suite, --task)."""
    from mle_ideator.errors import UsageError

    whole = bool(suite or task)
    if whole == bool(states):
        raise UsageError("say --states STORE, or --suite NAME (or --task) for whole sessions.")
    if states is None:
        if out is None:
            raise UsageError("whole sessions take a while: say --out, a folder to go on from.")
        named = f"{suite}:{split}" if suite and split else suite
        _sessions(named, task, ideator, seeds, steps, workers, sandbox, out, as_json=json)
        return

    from mle_ideator.cli.launch import run_or_interrupt
    from mle_ideator.cli.report_view import report_console, show_tables
    from mle_ideator.rl.evaluation import findings_of
    from mle_ideator.rl.evaluation.files import findings_json, write_files
    from mle_ideator.rl.evaluation.tables import tables_of
    from mle_ideator.rl.paired import Wanted, paired

    wanted = Wanted(
        states=states,
        ideators=tuple(ideator),
        limit=limit,
        ideas=ideas,
        seed=seed,
        attempts=attempts,
        workers=workers,
        engine=engine,
        address=address,
        sandbox=sandbox,
        out=out,
    )
    evaluation = run_or_interrupt(paired(wanted, _told))
    findings = findings_of(evaluation)
    if out:
        write_files(evaluation, findings, out)
    if json:
        typer.echo(findings_json(findings).decode(), nl=False)
    else:
        show_tables(tables_of(findings), report_console())


def _sessions(
    suite: str | None,
    tasks: list[str] | None,
    ideators: list[str],
    seeds: int | None,
    steps: int | None,
    workers: int | None,
    sandbox: str | None,
    out: Path,
    *,
    as_json: bool,
) -> None:
    """`bench run`, then `bench report`."""
    from mle_ideator.benchmarks.runner.matrix import Patience
    from mle_ideator.benchmarks.runner.plan import Asked
    from mle_ideator.cli import bench_run
    from mle_ideator.cli.bench import report

    asked = Asked(
        suite=suite or "own",
        tasks=bench_run.tasks_of(suite, None, tasks),
        ideators=tuple(ideators),
        implementers=None,
        seeds=bench_run.seeds_of(seeds, None),
        config=bench_run.config_of(None, None, sandbox, steps, None),
    )
    engine_for = bench_run.engine_for("local", None, workers, out)
    code = bench_run.launch(
        out, asked, engine_for, Patience(), sys.stderr if as_json else sys.stdout
    )
    if code:
        raise typer.Exit(code)
    report(out, json=as_json)


def _told(done: int, planned: int, one: Try) -> None:
    reward = "masked" if one.masked else f"{one.result.reward:+.0f}"
    typer.echo(
        f"[{done}/{planned}] {one.state[:12]} {one.contender}: {reward} {one.result.outcome}",
        err=True,
    )
