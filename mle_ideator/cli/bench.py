"""`mle-ideator bench`: ideators compared on many tasks, with several seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mle_ideator.cli.matrix_options import (
    AGAIN,
    Data,
    Ideators,
    Implementers,
    Overrides,
    Suite,
    Tasks,
)

bench = typer.Typer(no_args_is_help=True, help="Compare ideators on many tasks.")


@bench.callback()
def _only_subcommands() -> None:
    """Compare ideators on many tasks."""


@bench.command()
def run(
    out: Annotated[Path, typer.Option(help="Results folder: new, or one to go on with.")],
    suite: Suite = None,
    data: Data = None,
    task: Tasks = None,
    ideator: Ideators = None,
    implementer: Implementers = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds: 0, 1, …  [default: 3]")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help=f"Or which ones; {AGAIN}.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time.  [default: 1; with ray, as many as fit]"),
    ] = None,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster; without it one is started here.")
    ] = None,
    attempts: Annotated[
        int, typer.Option(min=1, help="Tries of a run whose sandbox or server breaks.")
    ] = 5,
    sandbox: Annotated[str | None, typer.Option(help="Of every run, as `run` takes it.")] = None,
    steps: Annotated[int | None, typer.Option(help="Most actions of a run.")] = None,
    time: Annotated[str | None, typer.Option(help="Longest run: 90s, 15m, 8h.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file for every run; options win over it.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Run every task with every pair of agents and every seed; the same command goes on."""
    from mle_ideator.benchmarks.runner.matrix import Patience
    from mle_ideator.benchmarks.runner.plan import Asked
    from mle_ideator.cli import bench_run

    asked = Asked(
        suite=suite or ("own" if task else None),
        tasks=bench_run.tasks_of(suite, data, task),
        ideators=tuple(ideator) if ideator else None,
        implementers=tuple(implementer) if implementer else None,
        seeds=bench_run.seeds_of(seeds, seed),
        config=bench_run.config_of(config, overrides, sandbox, steps, time),
    )
    engine_for = bench_run.engine_for(engine, address, workers, out)
    raise typer.Exit(bench_run.launch(out, asked, engine_for, Patience(attempts=attempts)))


@bench.command()
def report(
    results: Annotated[Path, typer.Argument(help="Results folder of `bench run`.")],
    compare: Annotated[
        list[Path] | None, typer.Option(help=f"Another one to stand beside it; {AGAIN}.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one page that holds everything.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for plots, SVG and PDF.")] = None,
    files: Annotated[
        Path | None, typer.Option(help="Folder for report.json, runs.csv, figures.csv.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Tell what the runs are worth, and which ideator is better."""
    import shlex
    import sys

    from mle_ideator.benchmarks.reports.files import report_json
    from mle_ideator.benchmarks.reports.make import make_report

    made = make_report(
        [results, *(compare or ())],
        html=html,
        plots=plots,
        files=files,
        command=shlex.join(["mle-ideator", *sys.argv[1:]]),
    )
    if json:
        typer.echo(report_json(made), nl=False)
        return
    from mle_ideator.cli.report_view import show_report

    show_report(made)


@bench.command()
def grade(
    task: Annotated[str, typer.Option(help="The task, as `run` takes it.")],
    submission: Annotated[Path, typer.Option(help="The file to be graded.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Grade one submission. Exit code 1 if it is not valid."""
    from datetime import UTC, datetime

    import msgspec

    from mle_ideator.benchmarks.grading.report import grade_report

    graded = grade_report(task, submission, datetime.now(UTC))
    if json:
        typer.echo(msgspec.json.encode(graded).decode())
    else:
        from mle_ideator.cli.report_view import show_grade

        show_grade(graded)
    if not graded.valid_submission:
        raise typer.Exit(1)
