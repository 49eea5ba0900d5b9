"""`mle-ideator collect`: sessions, of which every help request becomes a help state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mle_ideator.cli.matrix_options import Data, Ideators, Implementers, Overrides, Suite, Tasks


def collect(
    out: Annotated[Path, typer.Option(help="Store of help states, made if it is missing.")],
    suite: Suite = None,
    split: Annotated[str | None, typer.Option(help="Part of the suite: train or test.")] = None,
    data: Data = None,
    task: Tasks = None,
    ideator: Ideators = None,
    implementer: Implementers = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many: 0, 1, …")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Sessions at a time.")] = 1,
    sandbox: Annotated[str | None, typer.Option(help="Of every session, as for `run`.")] = None,
    steps: Annotated[int | None, typer.Option(help="Most actions of a session.")] = None,
    overrides: Overrides = None,
) -> None:
    """Run sessions and keep each help request as a help state; the same command goes on."""
    from mle_ideator.benchmarks.runner.matrix import Patience
    from mle_ideator.benchmarks.runner.plan import Asked
    from mle_ideator.cli import bench_run
    from mle_ideator.rl.files import files_of

    runs = files_of(out).runs
    keeping = [*(overrides or ()), "keep_help_states=true"]
    named = f"{suite}:{split}" if suite and split else suite
    asked = Asked(
        suite=named or ("own" if task else None),
        tasks=bench_run.tasks_of(named, data, task),
        ideators=tuple(ideator) if ideator else None,
        implementers=tuple(implementer) if implementer else None,
        seeds=bench_run.seeds_of(seeds, None),
        config=bench_run.config_of(None, keeping, sandbox, steps, None),
    )
    engine_for = bench_run.engine_for("local", None, workers, runs)
    code = bench_run.launch(runs, asked, engine_for, Patience())
    _harvest(out)
    raise typer.Exit(code)


def _harvest(out: Path) -> None:
    """All that is there, also of sessions that were broken off."""
    from mle_ideator.cli.text import printable
    from mle_ideator.rl.collecting import collected

    found = collected(out)
    for problem in found.problems:
        typer.echo(f"no help state: {printable(problem)}", err=True)
    kinds = ", ".join(f"{count} {kind}" for kind, count in found.kinds.items()) or "none"
    typer.echo(f"{found.new} new help states; {found.states} in {out}: {kinds}")
