"""What the commands that run a matrix of sessions share: their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AGAIN = "may be given several times"
Suite = Annotated[str | None, typer.Option(help="Name of a set of tasks.")]
Data = Annotated[Path | None, typer.Option(help="Data that the suite is made from.")]
Tasks = Annotated[list[str] | None, typer.Option(help=f"A task, with or without a suite; {AGAIN}.")]
Ideators = Annotated[
    list[str] | None, typer.Option(help=f"Who advises; {AGAIN}.  [default: offline]")
]
Implementers = Annotated[
    list[str] | None, typer.Option(help=f"Who acts; {AGAIN}.  [default: offline]")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="limits.steps=30, …")
]
