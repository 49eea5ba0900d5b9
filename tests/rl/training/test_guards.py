"""Guards, held against runs that are well, that collapse, and that game the format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import msgspec
import pytest

from mle_ideator.config import load_config
from mle_ideator.errors import UsageError
from mle_ideator.rl.training.guard_texts import ADVICE
from mle_ideator.rl.training.guards import Alarm, GuardConfig, Guards, Watch

WELL = {
    "reward": 0.3, "best_of_group": 0.8, "improved_rate": 0.35, "invalid_rate": 0.05,
    "masked_rate": 0.0, "noop_rate": 0.15, "zero_variance": 0.3, "entropy": 1.2, "kl": 0.05,
    "idea_tokens": 60.0, "cut_rate": 0.02, "diversity": 0.8, "distinct_operations": 12.0,
    "loss": 0.1, "grad_norm": 0.5,
}  # fmt: skip


def run(seed: int, steps: int, **ends: float) -> Iterator[dict[str, float]]:
    """From a run that is well, in a straight line, to one with these metrics, where it stays for
    the last fifth; with noise of 20 %."""
    noise = Random(seed)
    for step in range(steps):
        share = min(1.0, step / (0.8 * (steps - 1)))
        yield {
            name: ((1 - share) * value + share * ends.get(name, value)) * noise.uniform(0.8, 1.2)
            for name, value in WELL.items()
        }


def looked(guards: Guards, steps: Iterator[dict[str, float]], first: int = 1) -> list[Alarm]:
    return [a for step, metrics in enumerate(steps, first) for a in guards.look(step, metrics)]


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_is_well_raises_no_alarm(seed: int) -> None:
    learning = {"reward": 0.7, "invalid_rate": 0.0, "entropy": 0.5, "idea_tokens": 45.0}
    assert looked(Guards(), run(seed, 300, **learning)) == []


def test_a_run_that_collapses_is_noticed_and_then_stopped() -> None:
    """As seen: all groups without variance, entropy at 0.07 and below, the reward sinking."""
    ends = {"entropy": 0.004, "zero_variance": 1.2, "diversity": 0.125, "distinct_operations": 1.0}
    alarms = looked(Guards(), run(0, 200, **ends))
    warned = {alarm.name for alarm in alarms if not alarm.stops}
    assert {"entropy", "zero_variance", "distinct_operations"} <= warned
    first, last = alarms[0], next(a for a in alarms if a.name == "entropy" and a.stops)
    assert first.step < last.step < 205
    assert last.bound == 0.01
    assert last.value < 0.01
    assert last.text.startswith("entropy is 0.0")


def test_a_run_that_games_the_format_is_noticed() -> None:
    """Well-formed from end to end, and the same empty words for every help state: the invalid rate
    looks better and better."""
    ends = {
        "invalid_rate": 0.0, "noop_rate": 0.97, "best_of_group": 0.0, "diversity": 0.13,
        "distinct_operations": 0.0, "reward": 0.0, "improved_rate": 0.0, "zero_variance": 0.9,
    }  # fmt: skip
    alarms = looked(Guards(), run(1, 120, **ends))
    assert {"noop_rate", "best_of_group", "distinct_operations"} <= {a.name for a in alarms}
    assert "invalid_rate" not in {alarm.name for alarm in alarms}
    assert "empty ideas are safe" in next(a.text for a in alarms if a.name == "noop_rate")


def test_a_run_that_copies_the_example_is_noticed() -> None:
    """A copy of the prompt's example counts as invalid."""
    ends = {"invalid_rate": 0.9, "diversity": 0.14, "entropy": 0.1}
    names = [alarm.name for alarm in looked(Guards(), run(2, 120, **ends))]
    assert {"invalid_rate", "diversity", "entropy"} <= set(names)


def test_one_odd_step_is_no_alarm() -> None:
    guards = Guards()
    assert looked(guards, run(0, 50)) == []
    assert guards.look(51, {**WELL, "entropy": 0.0, "invalid_rate": 1.0, "noop_rate": 1.0}) == []
    assert looked(guards, run(1, 50), 52) == []


def steady(name: str, value: float, steps: int) -> Iterator[dict[str, float]]:
    return ({**WELL, name: value} for _ in range(steps))


def test_an_alarm_is_told_once_and_again_when_it_returns() -> None:
    guards = Guards(GuardConfig(window=5))
    assert looked(guards, steady("noop_rate", 0.1, 5)) == []
    assert [a.step for a in looked(guards, steady("noop_rate", 0.7, 30), 6)] == [8]
    # back for less than a window: the same episode
    assert looked(guards, steady("noop_rate", 0.1, 4), 36) == []
    assert looked(guards, steady("noop_rate", 0.7, 20), 40) == []
    assert looked(guards, steady("noop_rate", 0.1, 12), 60) == []
    again = looked(guards, steady("noop_rate", 0.7, 20), 72)
    assert [(a.name, a.stops) for a in again] == [("noop_rate", False)]
    worse = looked(guards, steady("noop_rate", 0.99, 20), 92)
    assert [(a.name, a.stops) for a in worse] == [("noop_rate", True)]


def test_a_runtime_that_is_down_stops_soon_and_is_no_other_alarm() -> None:
    """Where nothing was executed, rates of 0 tell nothing."""
    down = {**dict.fromkeys(WELL, 0.0), "masked_rate": 1.0, "entropy": 1.2, "idea_tokens": 60.0}
    guards = Guards()
    looked(guards, run(0, 30))
    alarms = looked(guards, iter([down] * 20), 31)
    assert [(a.name, a.step, a.stops) for a in alarms] == [("masked_rate", 32, True)]


def test_what_is_no_number_is_told_at_once() -> None:
    guards = Guards()
    looked(guards, run(0, 3))
    alarms = looked(guards, iter([{**WELL, "loss": math.nan}] * 3), 4)
    assert [(a.step, a.name, a.stops, a.bound) for a in alarms] == [(4, "loss", True, None)]
    looked(guards, iter([WELL]), 7)
    assert [a.name for a in guards.look(8, {**WELL, "loss": math.inf})] == ["loss"]


def test_a_bound_can_be_set_and_taken_away() -> None:
    config = load_config(GuardConfig, overrides=["window=3", "entropy={}", "kl.warn_above=0.01"])
    alarms = looked(Guards(config), run(0, 60, entropy=0.0))
    assert {alarm.name for alarm in alarms} == {"kl"}
    with pytest.raises(UsageError, match="unknown config key 'entropi'; did you mean 'entropy'"):
        load_config(GuardConfig, overrides=["entropi.warn_below=1"])
    with pytest.raises(UsageError, match=r"warn_below 0\.1: swap them"):
        Watch(warn_below=0.1, stop_below=0.5)
    with pytest.raises(UsageError, match="at least 1 step"):
        GuardConfig(window=0)


def test_resumed_guards_tell_what_undisturbed_ones_do() -> None:
    steps = list(run(3, 160, entropy=0.005, noop_rate=0.9, diversity=0.1))
    whole = looked(Guards(), iter(steps))
    assert len(whole) >= 4
    for cut in (1, 7, 40, 95, 130):
        before = Guards()
        told = looked(before, iter(steps[:cut]))
        state = msgspec.json.decode(msgspec.json.encode(before.state_dict()))
        after = Guards()
        after.load_state_dict(state)
        assert told + looked(after, iter(steps[cut:]), cut + 1) == whole
    with pytest.raises(UsageError, match="no state of guards"):
        Guards().load_state_dict({"entropy": 3})


def test_every_bound_that_can_be_set_has_its_words() -> None:
    for name in GuardConfig().watches:
        for side, value in (("below", -1.0), ("above", 1e9)):
            watch = Watch(warn_below=0.0, warn_above=1e6, window=1)
            guards = Guards(GuardConfig(**{name: watch}))
            alarm = next(a for a in guards.look(1, {name: value}) if a.name == name)
            assert alarm.text.endswith(ADVICE[f"{name} {side}"])
            assert "the last step" in alarm.text
