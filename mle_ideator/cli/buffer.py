"""`mle-ideator buffer`: what there is to be learnt from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

buffer = typer.Typer(no_args_is_help=True, help="Look at the buffer of help states.")


@buffer.callback()
def _only_subcommands() -> None:
    """Look at the buffer of help states."""


@buffer.command()
def show(
    states: Annotated[Path, typer.Argument(help="Store of help states.")],
    most: Annotated[int, typer.Option(min=0, help="States that are listed.")] = 20,
    plot: Annotated[Path | None, typer.Option(help="Draw it: .svg, .png or .pdf.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Tell what is being drawn from a buffer, and why."""
    import msgspec

    from mle_ideator.rl.buffer.disk import load
    from mle_ideator.rl.buffer.plot import draw_buffer
    from mle_ideator.rl.buffer.tables import tables_of
    from mle_ideator.rl.files import files_of

    held = load(files_of(states).buffer)
    metrics, likely = held.metrics(), held.likely(most)
    if plot:
        draw_buffer(held, plot)
    if json:
        typer.echo(msgspec.json.encode({"metrics": metrics, "likely": likely}).decode())
        return
    from mle_ideator.cli.report_view import report_console, show_tables

    show_tables(tables_of(metrics, likely), report_console())
