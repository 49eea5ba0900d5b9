"""`mle-ideator tasks`: what can be run."""

from __future__ import annotations

from typing import Annotated

import typer


def tasks(
    json: Annotated[bool, typer.Option("--json", help="One JSON list on stdout.")] = False,
) -> None:
    """List what can be run."""
    import msgspec

    from mle_ideator.benchmarks.sources import all_cards

    cards = all_cards()
    if json:
        typer.echo(msgspec.json.encode(cards).decode())
        return
    for card in cards:
        direction = "higher" if card.higher_is_better else "lower"
        train, test = card.rows
        typer.secho(f"{card.id}  {card.title}", bold=True)
        typer.echo(f"    {card.type}, {train:,} rows to learn from, {test:,} to predict")
        typer.echo(f"    {card.metric}, {direction} is better; split {card.split}")
        typer.secho(f"    {card.source}; {card.licence}", dim=True)
