"""What a proxy learns from: ideas that were executed, and the help states they were executed from.

Results are kept in three places: the cache of an executor, the log of an evaluation, and recorded
sessions, whose ideas were tried just as well (`rl.reward`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mle_ideator.errors import MleIdeatorError, UsageError
from mle_ideator.idea_form import well_formed
from mle_ideator.journal import read_journal
from mle_ideator.replay import help_state_at
from mle_ideator.results import record_of
from mle_ideator.rl.evaluation.values import Try
from mle_ideator.rl.executor.cache import ResultCache
from mle_ideator.rl.reward import idea_rewards
from mle_ideator.rl.values import RolloutResult
from mle_ideator.types import HelpState, Idea


@dataclass(frozen=True)
class Example:
    """An idea that was executed once."""

    state: HelpState
    idea: Idea
    improved: bool
    seconds: float = 0.0
    """What its execution took; 0 where that is not known."""

    @property
    def task(self) -> str:
        return self.state.situation.task.id


@dataclass
class Examples:
    """Examples, each once, and how many results were none, by the reason."""

    found: list[Example] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    _known: set[tuple[str, Idea, int]] = field(default_factory=set)

    def add_results(
        self, results: Iterable[RolloutResult], help_state: Callable[[str], HelpState]
    ) -> None:
        """Those that tell what came of a well-formed idea.

        `help_state` raises `MleIdeatorError` for a help state that is not there.
        """
        for result in results:
            idea = result.idea
            if reason := _unusable(result):
                self.left_out[reason] += 1
            elif idea and self._is_new((result.state, idea, result.seed)):
                try:
                    state = help_state(result.state)
                except MleIdeatorError:
                    self.left_out["its help state is not there"] += 1
                else:
                    example = Example(state, idea, result.outcome == "improved", result.seconds)
                    self.found.append(example)

    def add_session(self, run: Path) -> None:
        """The ideas of a recorded session. Raises `UsageError` if there is none."""
        events = read_journal(run)
        record = record_of(events)
        delta = record.started.task.min_delta
        for one in idea_rewards(record.steps, record.solutions, delta):
            if one.idea is None or one.reward is None or not well_formed(one.idea):
                self.left_out["no idea" if one.idea is None else one.outcome] += 1
                continue
            state = help_state_at(events, one.step)
            self.found.append(Example(state, one.idea, one.outcome == "improved"))

    def _is_new(self, key: tuple[str, Idea, int]) -> bool:
        new = key not in self._known
        self._known.add(key)
        if not new:
            self.left_out["there already"] += 1
        return new


class _Cached(msgspec.Struct):
    """What matters of `rl.execution.Executed`."""

    result: RolloutResult


def results_in(cache: Path) -> Iterator[RolloutResult]:
    """The rollouts in an executor's cache, also while others write there.

    Of ideas that their implementer carries out alike there is one, in the words that came first.
    Damaged files, and results of other work than rollouts, are passed over, as the executor does.
    """
    kept = ResultCache(cache)
    for path in sorted(cache.glob("??/*")):
        value = kept.get(path.name)
        try:
            yield msgspec.msgpack.decode(value or b"", type=_Cached).result
        except msgspec.MsgspecError:
            continue


def results_of(tries: Path) -> Iterator[RolloutResult]:
    """The rollouts in the log of an evaluation (`tries.jsonl`), also while it is written.

    Raises `UsageError` if it is none.
    """
    try:
        lines = tries.read_bytes().split(b"\n")[1:-1]
    except OSError as error:
        raise UsageError(f"{tries} can not be read: {error}.") from error
    for number, line in enumerate(lines, start=2):
        try:
            yield msgspec.json.decode(line, type=Try).result
        except msgspec.MsgspecError as error:
            raise UsageError(f"{tries}, line {number} is no try: {error}.") from error


def _unusable(result: RolloutResult) -> str:
    if result.idea is None:
        return "no idea"
    return result.outcome if result.outcome in ("infra_error", "invalid_format") else ""
