"""`mle-ideator evaluate`: several ideators on the same help states, one step each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mle_ideator.rl.evaluation.values import Try


def evaluate(
    states: Annotated[Path, typer.Option(help="Store of help states.")],
    ideator: Annotated[list[str], typer.Option(help="Who is asked; may be given several times.")],
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
    """Ask ideators about the same help states, execute each idea once, and compare."""
    import asyncio

    from mle_ideator.cli.launch import interruptible
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
    evaluation = asyncio.run(interruptible(paired(wanted, _told)))
    findings = findings_of(evaluation)
    if out:
        write_files(evaluation, findings, out)
    if json:
        typer.echo(findings_json(findings).decode(), nl=False)
    else:
        show_tables(tables_of(findings), report_console())


def _told(done: int, planned: int, one: Try) -> None:
    reward = "masked" if one.masked else f"{one.result.reward:+.0f}"
    typer.echo(
        f"[{done}/{planned}] {one.state[:12]} {one.contender}: {reward} {one.result.outcome}",
        err=True,
    )
