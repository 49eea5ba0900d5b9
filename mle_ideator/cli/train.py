"""`mle-ideator train`: GRPO on one-step execution rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mle_ideator.cli.matrix_options import AGAIN

_INTERRUPTED, _STOPPED = 130, 1


def train(
    config: Annotated[Path | None, typer.Option(help="YAML file with all settings.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings that come with it: tiny, small, qwen3-8b.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Folder of a run to go on with.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Updates, all in all.")] = None,
    states: Annotated[Path | None, typer.Option(help="Store of help states.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Folder, GGUF file, or name on the hub.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides all that is random.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.")] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help=f"optimiser.lr=1e-4, …; {AGAIN}."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Train an ideator on help states; --resume RUN goes on with a run that was broken off."""
    from mle_ideator.cli.training_view import TrainingConsole, stopping
    from mle_ideator.errors import UsageError
    from mle_ideator.rl.training.config import train_config
    from mle_ideator.rl.training.running import begin, go_on

    named = {
        "steps": steps,
        "states__store": states,
        "model__path": model,
        "seed": seed,
        "out": out,
    }
    said = any(value is not None for value in (config, preset, *named.values(), overrides))
    if resume and said:
        raise UsageError("a run is gone on with as it was begun: --resume takes no other settings.")
    if not (resume or said):
        raise UsageError("say what to train: --preset tiny, --config FILE, or --resume RUN.")
    with TrainingConsole() as console, stopping(console) as stop:
        if resume:
            trained = go_on(resume, console, stop)
        else:
            plain = {key: str(v) if isinstance(v, Path) else v for key, v in named.items()}
            settings = train_config(config, preset, overrides or (), **plain)
            trained = begin(settings, console, stop)
    if trained is None:
        return
    console.finish(trained, as_json=json)
    if trained.stopped:
        raise typer.Exit(_INTERRUPTED if stop.is_set() else _STOPPED)
