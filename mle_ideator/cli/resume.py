"""`mle-ideator resume`: go on with a session that was broken off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def resume(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Go on with a run that was interrupted, killed or failed: after its last finished step."""
    from mle_ideator.cli.launch import relaunch

    raise typer.Exit(relaunch(run.resolve(), as_json=json))
