"""`mle-ideator states`: help states listed, mailed, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

states = typer.Typer(no_args_is_help=True, help="List, export, import and check help states.")
_Store = Annotated[Path, typer.Argument(help="Store of help states.")]


@states.callback()
def _only_subcommands() -> None:
    """List, export, import and check help states."""


@states.command("list")
def list_(
    store: _Store,
    task: Annotated[str | None, typer.Option(help="Only of this task.")] = None,
    most: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON list on stdout.")] = False,
) -> None:
    """List the help states of a store."""
    import msgspec

    from mle_ideator.rl.states import StateStore

    with StateStore.that_is_there(store) as opened:
        cards = opened.cards(task=task, limit=most)
    if json:
        typer.echo(msgspec.json.encode(cards).decode())
        return
    for card in cards:
        score = "unscored" if card.score is None else str(card.score)
        typer.echo(
            f"{card.id[:16]}  {card.task}  {card.kind}, depth {card.depth}, {card.steps} steps, "
            f"{score}"
        )


@states.command()
def export(
    store: _Store,
    state: Annotated[str, typer.Argument(help="Its id, or the beginning of it.")],
    file: Annotated[Path, typer.Argument(help="To be written.")],
) -> None:
    """Write a help state to one file."""
    from mle_ideator.rl.states import StateStore, export_state

    with StateStore.that_is_there(store) as opened:
        found = opened.find(state)
        export_state(opened, found, file)
    typer.echo(f"{found[:16]} in {file}")


@states.command("import")
def import_(
    store: Annotated[Path, typer.Argument(help="Store, made if it is missing.")],
    files: Annotated[list[Path], typer.Argument(help="What `export` wrote.")],
) -> None:
    """Take up help states from files."""
    from mle_ideator.rl.buffer.disk import KeptBuffer
    from mle_ideator.rl.files import files_of
    from mle_ideator.rl.states import StateStore, import_state

    with StateStore(store) as opened, KeptBuffer(files_of(store).buffer) as buffer:
        for file in files:
            card, new = import_state(opened, file)
            buffer.add(card)
            typer.echo(f"{card.id[:16]} {'taken up' if new else 'was there'}: {card.task}")


@states.command()
def check(store: _Store) -> None:
    """Read everything; exit code 1 if something is damaged or lacking."""
    from mle_ideator.cli.text import printable
    from mle_ideator.rl.states import StateStore

    with StateStore.that_is_there(store) as opened:
        damages, count = opened.check(), opened.count()
    for damage in damages:
        typer.echo(printable(damage))
    typer.echo(f"{count} help states, {len(damages)} damages")
    if damages:
        raise typer.Exit(1)
