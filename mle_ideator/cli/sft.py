"""`mle-ideator sft`: supervised fine-tuning on an ideator's ideas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mle_ideator.cli.matrix_options import AGAIN


def sft(
    states: Annotated[Path, typer.Option(help="Store of help states.")],
    model: Annotated[str, typer.Option(help="Folder, GGUF file, or name on the hub.")],
    out: Annotated[Path, typer.Option(help="Folder of the trained model.")],
    ideas_from: Annotated[str, typer.Option(help="Whose ideas are learnt.")] = "offline",
    which: Annotated[
        Literal["all", "worked"],
        typer.Option(help="All ideas, or those that improved the score when executed."),
    ] = "worked",
    ideas: Annotated[int | None, typer.Option(min=1, help="For each help state.")] = None,
    task: Annotated[
        list[str] | None, typer.Option(help=f"Only help states of this task; {AGAIN}.")
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="The least of each idea that says it.")
    ] = False,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the ideas.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides all that is random.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Executions at a time.  [default: all cores]")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help=f"lr=1e-4, lora_rank=16, …; {AGAIN}."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Teach a model the ideas of an ideator, as a warm-up or a rival of `train`."""
    import msgspec

    from mle_ideator.cli.training_view import TrainingConsole, warmed_line
    from mle_ideator.config import load_config
    from mle_ideator.rl.training.warm_up.config import WarmUpConfig
    from mle_ideator.rl.training.warm_up.running import warm_up

    config = load_config(
        WarmUpConfig,
        overrides=overrides or (),
        states=str(states),
        model=model,
        out=str(out),
        ideas_from=ideas_from,
        which=which,
        ideas=ideas,
        tasks=tuple(task) if task else None,
        short=short,
        epochs=epochs,
        seed=seed,
        workers=workers,
    )
    with TrainingConsole() as console:
        warmed = warm_up(config, console.warming)
    typer.echo(msgspec.json.encode(warmed).decode() if json else warmed_line(warmed))
