"""`mle-ideator task new` and `task check`: tasks of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

task = typer.Typer(no_args_is_help=True, help="Make and check tasks of your own.")


@task.callback()
def _only_subcommands() -> None:
    """Make and check tasks of your own."""


@task.command()
def new(
    folder: Annotated[Path, typer.Argument(help="The new task's folder; its name is the id.")],
    train: Annotated[
        Path | None, typer.Option(help="Table with the targets; without it, an example.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Its column to predict.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="What scores it; without it, one that fits.")
    ] = None,
) -> None:
    """Write a task folder that can be run at once."""
    from mle_ideator.benchmarks.declared.spec import read_spec
    from mle_ideator.benchmarks.declared.starting import new_task

    new_task(folder, train, target, metric)
    spec = read_spec(folder)
    # A path for `--task` has a separator; else it would be an id.
    shown = str(folder) if os.sep in str(folder) else f".{os.sep}{folder}"
    typer.echo(f"{folder}: {spec.type}, scored by {spec.metric}")
    typer.echo(f"check it   mle-ideator task check {shown}")
    typer.echo(f"run it     mle-ideator run --task {shown}")


@task.command()
def check(
    name: Annotated[str, typer.Argument(metavar="TASK", help="A task's folder, or its id.")],
    whole: Annotated[
        bool, typer.Option("--whole", help="Run all reference solutions (minutes), not a few.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON list on stdout.")] = False,
) -> None:
    """Check that a task is what it says and keeps its answers to itself. Exit code 1 if not."""
    import msgspec

    from mle_ideator.benchmarks.declared.checking import check_task
    from mle_ideator.benchmarks.declared.naming import folder_named

    colours = {"ok": "green", "warning": "yellow", "failed": "red"}
    findings = []
    for finding in check_task(folder_named(name), whole):
        findings.append(finding)
        if not json:
            verdict = typer.style(f"{finding.verdict:8}", fg=colours[finding.verdict])
            typer.echo(f"{verdict} {finding.check:15} {finding.message}")
    if json:
        typer.echo(msgspec.json.encode(findings).decode())
    if any(finding.verdict == "failed" for finding in findings):
        raise typer.Exit(1)
