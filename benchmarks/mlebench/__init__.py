"""Competitions that were prepared with OpenAI's mle-bench (arXiv 2410.07095), as tasks.

    competitions  where a competition's data and its registry entry lie
    declaring     metric and direction: declared, not guessed from two rows
    facts         what else a task has to know, read once from the prepared files
    form          what a submission looks like, as the sample has it
    grader        CompetitionGrader, which asks the competition's own grade function
    judging       that function, in a process of its own: bounded, its words kept in
    reports       one graded submission, as mle-bench reports it
    splits        the benchmark's lists of competitions, and a person's own

`docs/mlebench.md` tells how to use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mle_ideator.benchmarks.leaderboards import Leaderboard, Rule
from mle_ideator.protocols import Grader, TaskCard
from mle_ideator.types import Task

STRICT = "strict:"


class MleBench:
    """The task source `mlebench`: `DATA/ID`, or `strict:DATA/ID` for the strict rule.

    Lists nothing: what lies where is the caller's to know.
    """

    def cards(self) -> Sequence[TaskCard]:
        return ()

    def load(self, name: str) -> tuple[Task, Grader]:
        """The competition ID prepared in the folder DATA. Raises `TaskError`."""
        from mle_ideator.benchmarks.mlebench.assembling import load

        path, rule = _ruled(name)
        return load(path, rule)

    def leaderboard(self, name: str) -> Leaderboard | None:
        """People's private scores, where the registry has them. Raises `TaskError`."""
        from mle_ideator.benchmarks.mlebench.competitions import find_competition
        from mle_ideator.benchmarks.mlebench.declaring import board_of

        path, rule = _ruled(name)
        return board_of(find_competition(path), rule)


def _ruled(name: str) -> tuple[str, Rule]:
    return name.removeprefix(STRICT), "strict" if name.startswith(STRICT) else "mlebench"
