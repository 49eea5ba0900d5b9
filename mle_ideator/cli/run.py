"""`mle-ideator run`: two agents work on a task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mle_ideator.errors import UsageError

_AGENT = "a name, name:argument, openai:MODEL, package.module:Class."


def run(
    task: Annotated[str | None, typer.Option(help="Id of a task; `tasks` lists them.")] = None,
    train: Annotated[str | None, typer.Option(help="Your data: CSV, TSV or Parquet.")] = None,
    test: Annotated[str | None, typer.Option(help="Your rows to predict.")] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    metric: Annotated[str | None, typer.Option(help="How it is scored.")] = None,
    id_column: Annotated[str | None, typer.Option(help="The column that names rows.")] = None,
    implementer: Annotated[str | None, typer.Option(help=f"Who acts: {_AGENT}")] = None,
    ideator: Annotated[str | None, typer.Option(help=f"Who advises: {_AGENT}")] = None,
    sandbox: Annotated[
        str | None, typer.Option(help="auto, bubblewrap, docker, docker:IMAGE, local.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Most actions.")] = None,
    help_requests: Annotated[int | None, typer.Option(help="Most ideas asked for.")] = None,
    time: Annotated[str | None, typer.Option(help="Longest session: 90s, 15m, 8h.")] = None,
    step_time: Annotated[str | None, typer.Option(help="Longest cell.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Most that both agents' models may cost, in US dollars.")
    ] = None,
    help_policy: Annotated[
        str | None, typer.Option(help="Who seeks help: agent, plateau-4 or every-3.")
    ] = None,
    ideas: Annotated[
        int | None, typer.Option(help="Candidates that an idea is chosen from.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides all that is random.")] = None,
    out: Annotated[Path | None, typer.Option(help="Result folder; must be new or empty.")] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file; options win over it.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="limits.steps=30, …")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Two agents work on a task, or on your own data; a result folder remains."""
    from mle_ideator.cli.launch import launch
    from mle_ideator.config import RunConfig, load_config
    from mle_ideator.limits import seconds

    settings = load_config(
        RunConfig,
        config,
        overrides or (),
        task=task,
        data__train=train,
        data__test=test,
        data__target=target,
        data__metric=metric,
        data__id_column=id_column,
        implementer=implementer,
        ideator=ideator,
        sandbox=sandbox,
        limits__steps=steps,
        limits__help_requests=help_requests,
        limits__time_s=None if time is None else seconds(time),
        limits__step_time_s=None if step_time is None else seconds(step_time),
        limits__cost_usd=max_cost,
        help_policy=help_policy,
        ideator_options__ideas=ideas,
        seed=seed,
    )
    if (settings.task is None) == (settings.data is None):
        raise UsageError("say what to work on: --task ID, or --train FILE --target COLUMN.")
    raise typer.Exit(launch(settings, out, as_json=json))
