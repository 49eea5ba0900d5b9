"""`python -m mle_ideator.benchmarks.references TASK [--only NAME…] [--write]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mle_ideator.benchmarks.declared.naming import folder_named
from mle_ideator.benchmarks.declared.spec import read_spec
from mle_ideator.benchmarks.leaderboards import MEDALS, Leaderboard
from mle_ideator.benchmarks.references.computing import Scored, compute, write_leaderboard
from mle_ideator.errors import MleIdeatorError


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mle_ideator.benchmarks.references", description=__doc__)
    parser.add_argument("task", help="id of a bundled task, or the path of a task folder")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--write", action="store_true", help="write leaderboard.csv")
    wanted = parser.parse_args(arguments)
    if wanted.only and wanted.write:
        parser.error("--write needs all references, so it does not go with --only")
    try:
        return _run(wanted.task, wanted.only, wanted.write)
    except MleIdeatorError as error:
        print(error, file=sys.stderr)
        return 2


def _run(task: str, only: Sequence[str], write: bool) -> int:
    folder = folder_named(task)
    scored: list[Scored] = []
    for one in compute(folder, only):
        print(
            f"{one.private:<12.6g} {one.public:<12.6g} {one.seconds:6.1f} s  {one.name}", flush=True
        )
        scored.append(one)
    print(f"{len(scored)} references in {sum(one.seconds for one in scored):.0f} s")
    if not only:
        _print_medals(folder, scored)
    if write:
        write_leaderboard(folder, scored)
    return 0


def _print_medals(folder: Path, scored: Sequence[Scored]) -> None:
    higher = read_spec(folder).higher_is_better
    in_order = sorted((one.private for one in scored), reverse=higher)
    board = Leaderboard(scores=tuple(in_order), higher_is_better=higher)
    for medal in MEDALS:
        print(f"{medal}: {board.threshold(medal):.6g}")
    print(f"median: {board.median:.6g}")


if __name__ == "__main__":
    sys.exit(main())
