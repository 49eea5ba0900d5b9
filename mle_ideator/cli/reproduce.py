"""`mle-ideator reproduce`: a run's solution once more, in a clean sandbox, beside its record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mle_ideator.errors import UsageError

if TYPE_CHECKING:
    from mle_ideator.benchmarks.reproducing import Reproduction


def reproduce(
    run: Annotated[Path, typer.Argument(help="The run's folder, or its journal.")],
    solution: Annotated[
        int | None, typer.Option(help="This solution, by its number, not the final one.")
    ] = None,
    sandbox: Annotated[
        str | None, typer.Option(help="auto, bubblewrap, docker, docker:IMAGE, local.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", "--step-time", help="Longest that it may take: 90s, 15m, 8h."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep what it writes here; must be new or empty.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Run a run's solution again in a clean sandbox, and compare it with the record."""
    import msgspec

    from mle_ideator.cli.comparison import show_reproduction
    from mle_ideator.cli.streams import stdout_kept_clean
    from mle_ideator.limits import seconds

    limit = None if time is None else seconds(time)
    if limit == 0:
        raise UsageError("--time must be more than 0.")
    with stdout_kept_clean():
        done = _reproduction(run, solution, sandbox, limit, out)
    if json:
        typer.echo(msgspec.json.encode(done).decode())
    else:
        show_reproduction(done)
    raise typer.Exit(0 if done.reproduced else 1)


def _reproduction(
    run: Path, number: int | None, sandbox: str | None, limit: float | None, out: Path | None
) -> Reproduction:
    import asyncio

    from mle_ideator.benchmarks.reopening import place_of
    from mle_ideator.benchmarks.reproducing import find_solution, reproduce
    from mle_ideator.cli.launch import interruptible
    from mle_ideator.cli.streams import say
    from mle_ideator.journal import read_journal
    from mle_ideator.results import record_of

    record = record_of(read_journal(run))
    folder = (run if run.is_dir() else run.parent).resolve()
    recorded = find_solution(folder, record, number)
    place, remarks = place_of(record.started, folder, sandbox)
    with _kept(out, folder) as kept:
        say(f"running solution #{recorded.solution.number} of {record.started.task.id} alone")
        work = reproduce(recorded, place, kept, limit, remarks)
        try:
            done = asyncio.run(interruptible(work))
        except asyncio.CancelledError as error:
            say("interrupted; the run's folder is as it was.")
            raise typer.Exit(130) from error
        return done if out is None else _written(done, kept)


@contextmanager
def _kept(out: Path | None, run: Path) -> Iterator[Path]:
    """Where the solution works and what it wrote is kept: `--out`, or a folder that goes again."""
    import tempfile

    from mle_ideator.cli.launch import folder_at
    from mle_ideator.sandboxes.trees import remove_tree

    if out is not None:
        if out.resolve().is_relative_to(run):
            raise UsageError(f"--out {out} lies in the run's own folder; name another one.")
        yield folder_at(out)
        return
    folder = Path(tempfile.mkdtemp(prefix="mle-ideator-reproduce-")).resolve()
    try:
        yield folder
    finally:
        remove_tree(folder)


def _written(done: Reproduction, folder: Path) -> Reproduction:
    import msgspec

    done = msgspec.structs.replace(done, folder=str(folder))
    text = msgspec.json.format(msgspec.json.encode(done), indent=2)
    (folder / "reproduction.json").write_bytes(text + b"\n")
    return done
