"""`mle-ideator doctor`: what works on this machine, and how to get what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mle_ideator.cli.checks import Check


def doctor(
    json: Annotated[bool, typer.Option("--json", help="One JSON list on stdout.")] = False,
) -> None:
    """Say what works on this machine, and how to get what is missing."""
    import asyncio

    import msgspec

    from mle_ideator.cli.checks import all_checks

    checks = asyncio.run(all_checks())
    if json:
        typer.echo(msgspec.json.encode(checks).decode())
    else:
        _print(checks)
    raise typer.Exit(3 if any(check.needed and not check.works for check in checks) else 0)


def _print(checks: list[Check]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in ("", "part", "found", "to get it"):
        table.add_column(name, overflow="fold")
    for check in checks:
        mark = Text("✓", "green") if check.works else Text("✗", "red" if check.needed else "yellow")
        table.add_row(mark, check.name, Text(check.found), Text(check.remedy))
    Console().print(table)
