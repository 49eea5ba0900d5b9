"""Executed ideas, read back from a cache, from an evaluation's log, and from a recorded session."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mle_ideator.errors import UsageError
from mle_ideator.rl.evaluation.log import log_at
from mle_ideator.rl.evaluation.values import Try
from mle_ideator.rl.execution import Executed
from mle_ideator.rl.executor.cache import ResultCache
from mle_ideator.rl.training.proxy import Examples, results_in, results_of
from mle_ideator.rl.values import RolloutResult
from mle_ideator.types import HelpState, Idea
from tests.rl.made_rollouts import help_state, idea
from tests.rl.made_states import IDEA, OTHER, Recording


def result(
    action: str | None, outcome: str = "improved", state: str = "s1", seed: int = 0
) -> RolloutResult:
    return RolloutResult(
        state=state,
        idea=None if action is None else idea(action),
        seed=seed,
        outcome=outcome,  # type: ignore[arg-type]
        reward={"improved": 1.0, "invalid_format": -1.0, "infra_error": None}.get(outcome, 0.0),
        seconds=3.0,
    )


def known(id: str) -> HelpState:
    if id == "gone":
        raise UsageError("there is no help state gone.")
    return help_state("concrete")


def test_a_cache_is_read_without_knowing_what_was_asked(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "states.cache")
    cache.prepare()
    there = [result("Use ratios."), result("Use PCA.", "timeout"), result(None, "not_improved")]
    for number, one in enumerate(there):
        answer = Executed(result=one, reached=b"a help state" * 1000)
        cache.put(f"{number:02d}" * 32, msgspec.msgpack.encode(answer))
    cache.put("ab" * 32, msgspec.msgpack.encode({"another": "work"}))
    cache.put("cd" * 32, b"no msgpack at all")
    damaged = cache.path("00" * 32).read_bytes()
    cache.put("ef" * 32, b"")
    cache.path("ef" * 32).write_bytes(damaged)  # under a wrong name
    assert list(results_in(cache.folder)) == there
    assert list(results_in(tmp_path / "none")) == []


def test_the_log_of_an_evaluation_is_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "tries.jsonl"
    with log_at(path, "sandbox of the session", 1) as log:
        for place, action in enumerate(("Use ratios.", "Use PCA.")):
            log.append(Try(contender="a", state="s1", seed=0, place=place, result=result(action)))
        with path.open("ab") as file:
            file.write(b'{"contender":"a","sta')
        assert [one.idea for one in results_of(path)] == [idea("Use ratios."), idea("Use PCA.")]
    with path.open("ab") as file:
        file.write(b"\n{}\n")
    with pytest.raises(UsageError, match="line 4 is no try"):
        list(results_of(path))
    with pytest.raises(UsageError, match="can not be read"):
        list(results_of(tmp_path / "missing"))


def test_only_executed_ideas_are_examples_and_the_rest_is_counted() -> None:
    examples = Examples()
    examples.add_results(
        [
            result("Use ratios."),
            result("Use ratios."),
            result("Use ratios.", seed=1),
            result("Use PCA.", "timeout"),
            result("Use PCA.", "infra_error"),
            result("Use PCA.", "invalid_format"),
            result(None, "not_improved"),
            result("Use PCA.", state="gone"),
        ],
        known,
    )
    assert [(e.idea.action, e.improved) for e in examples.found] == [
        ("Use ratios.", True),
        ("Use ratios.", True),
        ("Use PCA.", False),
    ]
    assert examples.found[0].seconds == 3.0
    assert examples.left_out == {
        "there already": 1,
        "infra_error": 1,
        "invalid_format": 1,
        "no idea": 1,
        "its help state is not there": 1,
    }


def test_the_ideas_of_a_session_are_examples_too(tmp_path: Path) -> None:
    session = Recording()
    session.cell().solved(public=10.0)
    session.advised(IDEA).solved(public=9.0)
    session.advised(OTHER).solved(public=9.5)
    examples = Examples()
    examples.add_session(session.on(tmp_path / "run"))
    assert [(e.idea, e.improved, e.task) for e in examples.found] == [
        (IDEA, True, "tiny"),
        (OTHER, False, "tiny"),
    ]
    first, second = (example.state.situation for example in examples.found)
    assert (len(first.solutions), len(second.solutions)) == (1, 2)
    assert isinstance(examples.found[0].idea, Idea)
