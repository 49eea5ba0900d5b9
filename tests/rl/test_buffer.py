"""The evolving buffer: what it takes up, draws, lets rest, retires and brings back."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from mle_ideator.errors import UsageError
from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.rows import DRAWABLE, RESTING, RETIRED
from tests.rl.curriculum_states import UNIFORM, card, filled, for_any, key

SIGNAL, FLOOR, CEILING = [1.0, 0.0, 1.0, 0.0], [0.0] * 4, [1.0] * 4


def replaced(**changes: object) -> CurriculumConfig:
    return msgspec.structs.replace(CurriculumConfig(), **changes)


# Every call that there is, in any order, on few states.
calls = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 12), st.sampled_from("abc")),
    st.tuples(st.just("draw"), st.integers(0, 9)),
    st.tuples(
        st.just("observe"),
        st.integers(0, 12),
        st.lists(st.sampled_from([1.0, 0.0, -1.0, None]), max_size=4),
    ),
    st.tuples(st.just("return")),
)
small = CurriculumConfig(
    anneal_draws=5, rest_draws=2, retire_after=1, return_after=3, task_limit=4, bins=8
)


def carry_out(buffer: EvolvingBuffer, call: tuple) -> object:
    match call:
        case ("add", number, task):
            return buffer.add(card(number, task))
        case ("draw", count):
            return buffer.draw(count)
        case ("observe", number, rewards):
            return buffer.observe(key(number), rewards)
    return buffer.return_retired()


def check(buffer: EvolvingBuffer) -> None:
    """All that must hold at any time."""
    chances = buffer.distribution()
    assert np.isfinite(chances).all()
    assert (chances >= 0).all()
    assert chances.sum() == pytest.approx(1.0 if len(buffer) else 0.0)
    status = buffer.rows.column("status")
    counts = [int((status == each).sum()) for each in (DRAWABLE, RESTING, RETIRED)]
    assert counts == [buffer.at[each] for each in (DRAWABLE, RESTING, RETIRED)]
    assert sum(counts) == len(buffer)
    assert buffer.cells.drawable.sum() == counts[0]
    assert buffer.cells.retired.sum() == counts[2]
    by_task = buffer.metrics().by_task
    assert sum(each.states for each in by_task.values()) == len(buffer)
    assert all(each.states <= buffer.config.task_limit for each in by_task.values())


@for_any(st.lists(calls, max_size=40))
def test_whatever_is_called_the_buffer_stays_sound(sequence):
    buffer = EvolvingBuffer(small)
    for call in sequence:
        result = carry_out(buffer, call)
        check(buffer)
        if call[0] == "draw":
            assert len(result) == (call[1] if len(buffer) else 0)
            assert len({each.id for each in result}) == min(call[1], len(buffer))


@for_any(st.lists(calls, max_size=40), st.integers(0, 40))
def test_a_buffer_goes_on_from_its_state_as_if_nothing_had_been(sequence, cut):
    buffer = EvolvingBuffer(small, seed=3)
    for call in sequence[:cut]:
        carry_out(buffer, call)
    other = EvolvingBuffer(seed=99)
    other.load_state_dict(buffer.state_dict())
    for call in [*sequence[cut:], ("draw", 5)]:
        assert carry_out(other, call) == carry_out(buffer, call)
    assert other.metrics() == buffer.metrics()


# ----------------------------------------------------------------------------------- draw


def test_an_empty_buffer_draws_nothing():
    buffer = EvolvingBuffer()
    assert buffer.draw(4) == []
    assert buffer.distribution().size == 0
    assert buffer.metrics().mean_potential is None


def test_a_single_state_fills_a_batch_and_the_tallies_say_so():
    buffer = filled(1)
    drawn = buffer.draw(3)
    assert [each.why for each in drawn] == ["unseen", "again", "again"]
    assert buffer.tallies["drawn_again"] == 2
    assert buffer.distribution().tolist() == [1.0]


def test_the_same_seed_draws_the_same():
    first, second, other = filled(50, seed=1), filled(50, seed=1), filled(50, seed=2)
    drawn = [each.id for each in first.draw(8)]
    assert drawn == [each.id for each in second.draw(8)]
    assert drawn != [each.id for each in other.draw(8)]


@pytest.mark.parametrize("balance", [0.0, 0.5, 1.0])
def test_states_are_drawn_as_often_as_the_distribution_says(balance):
    config = replaced(
        rest_draws=0, retire_after=0, balance=balance, top_fraction=0.5, anneal_draws=0
    )
    buffer = filled(12, config, tasks=["a", "a", "b"])
    for number in range(12):
        buffer.observe(key(number), [1.0] * number + [0.0] * (12 - number))
    expected = buffer.distribution()
    assert 0 < (expected > 0).sum() < 12
    drawn = Counter(buffer.draw(1)[0].row for _ in range(1500))
    found = np.array([drawn[row] / 1500 for row in range(12)])
    assert np.abs(found - expected).max() < 0.04


def test_only_the_top_is_drawn_in_the_end():
    buffer = filled(100, replaced(anneal_draws=10, rest_draws=0, top_fraction=0.1))
    for number in range(100):
        buffer.observe(key(number), [1.0] * (number % 10) + [0.0] * (10 - number % 10))
    assert (buffer.distribution() > 0).all()
    buffer.draws = 10
    best = sorted(buffer.rows.column("potential"))[-10]
    candidates = buffer.distribution() > 0
    assert candidates.sum() == 10
    assert (buffer.rows.column("potential")[candidates] >= best - 0.01).all()


def test_as_many_candidates_as_are_asked_for():
    buffer = filled(20, replaced(anneal_draws=0, top_fraction=0.05))
    assert len({each.id for each in buffer.draw(15)}) == 15


def test_uniform_is_uniform():
    buffer = filled(30, UNIFORM, tasks=["a", "a", "b"])
    for number in range(30):
        buffer.observe(key(number), FLOOR if number % 2 else SIGNAL)
        buffer.observe(key(number), FLOOR if number % 2 else SIGNAL)
    assert buffer.distribution() == pytest.approx(np.full(30, 1 / 30))


# ----------------------------------------------------------------------------------- rest


@for_any(st.integers(2, 60), st.integers(1, 5), st.integers(0, 99))
def test_what_was_just_drawn_is_less_likely_while_it_rests(states, rest, seed):
    buffer = filled(states, replaced(rest_draws=rest, anneal_draws=0), seed=seed)
    before = buffer.distribution()
    (drawn,) = buffer.draw(1)
    assert buffer.distribution()[drawn.row] < before[drawn.row]


def test_rest_is_over_after_its_draws():
    buffer = filled(100, replaced(rest_draws=3))
    (drawn,) = buffer.draw(1)
    rested = []
    for _ in range(4):
        rested.append(buffer.distribution()[drawn.row] == 0)
        buffer.draw(1)
    assert rested == [True, True, True, False]


def test_without_cooling_nothing_rests():
    buffer = filled(10, replaced(rest_draws=0))
    buffer.draw(5)
    assert buffer.at[RESTING] == 0


def test_a_small_buffer_does_not_rest_itself_empty():
    buffer = filled(10, replaced(rest_draws=50))
    for _ in range(20):
        assert len({each.id for each in buffer.draw(4)}) == 4
        assert buffer.at[RESTING] <= 5
    assert buffer.tallies["drawn_resting"] == 0


def test_where_all_rest_the_longest_rested_is_taken():
    buffer = filled(4, replaced(rest_draws=50, rest_share=1.0))
    order = [buffer.draw(1)[0].id for _ in range(4)]
    again = [buffer.draw(1)[0] for _ in range(4)]
    assert [each.id for each in again] == order
    assert {each.why for each in again} == {"resting"}


# ------------------------------------------------------------------ retirement, return


@pytest.mark.parametrize(
    ("groups", "retires"),
    [
        ([FLOOR, FLOOR], True),
        ([CEILING, CEILING], True),
        ([[None] * 4, [-1.0] * 4], True),
        ([FLOOR, CEILING], False),
        ([FLOOR, SIGNAL, FLOOR], False),
        ([FLOOR, [None] * 4], False),
        ([FLOOR], False),
    ],
)
def test_what_has_no_signal_any_more_retires(groups, retires):
    buffer = filled(5)
    for group in groups:
        buffer.observe(key(0), group)
    assert (buffer.distribution()[0] == 0) == retires
    assert buffer.at[RETIRED] == retires


def test_format_errors_keep_a_hopeless_state_only_if_they_count():
    mixed = [0.0, -1.0, 0.0, -1.0]
    for executed_only, retired in ((True, 1), (False, 0)):
        buffer = filled(3, replaced(executed_only=executed_only))
        buffer.observe(key(0), mixed)
        buffer.observe(key(0), mixed)
        assert buffer.at[RETIRED] == retired


def test_a_retired_state_comes_back_on_trial_and_then_stays_away_longer():
    buffer = filled(40, replaced(return_after=10, rest_draws=0))
    buffer.observe(key(0), FLOOR)
    buffer.observe(key(0), FLOOR)
    for wait in (10, 20, 40):
        for _ in range(wait - 1):
            buffer.draw(1)
        assert buffer.at[RETIRED] == 1
        buffer.draw(1)
        assert buffer.at[RETIRED] == 0
        buffer.observe(key(0), FLOOR)
        assert buffer.at[RETIRED] == 1
    assert buffer.tallies["returned"] == 3


def test_all_retired_states_can_be_brought_back():
    buffer = filled(3)
    for number in (0, 1, 2):
        buffer.observe(key(number), CEILING)
        buffer.observe(key(number), CEILING)
    assert buffer.at[RETIRED] == 3
    assert buffer.return_retired() == 3
    assert (buffer.distribution() > 0).all()


def test_where_all_are_retired_the_next_to_return_is_drawn():
    buffer = filled(3)
    for number in (1, 0, 2):
        buffer.observe(key(number), FLOOR)
        buffer.observe(key(number), FLOOR)
        buffer.draws += 1
    assert buffer.distribution().tolist() == [0.0, 1.0, 0.0]
    drawn = buffer.draw(2)
    assert [each.id for each in drawn] == [key(1), key(0)]
    assert {each.why for each in drawn} == {"retired"}


def test_a_late_signal_brings_a_retired_state_back():
    buffer = filled(3)
    for group in (FLOOR, FLOOR, SIGNAL):
        buffer.observe(key(0), group)
    assert buffer.at[RETIRED] == 0


def test_one_bad_state_never_blocks_a_draw():
    buffer = filled(20, replaced(anneal_draws=0))
    drawn: Counter[str] = Counter()
    for _ in range(100):
        for each in buffer.draw(2):
            drawn[each.id] += 1
            lost = each.id == key(7)
            buffer.observe(each.id, [None] * 4 if lost else SIGNAL)
    assert drawn.total() == 200
    assert 0 < drawn[key(7)] < 200 / 20
    assert buffer.explain(key(7)).masked == 4 * drawn[key(7)]


# -------------------------------------------------------------------------------- observe


def test_what_ideas_earned_is_counted_apart():
    buffer = filled(2)
    buffer.observe(key(0), [1.0, 0.0, None, -1.0], invalid=1)
    found = buffer.explain(key(0))
    assert (found.executed, found.masked, found.invalid, found.groups) == (2, 1, 2, 1)
    assert (found.mean, found.std) == (0.5, 0.5)
    assert found.potential == pytest.approx(0.75)
    metrics = buffer.metrics()
    assert metrics.invalid_share == pytest.approx(2 / 4)
    assert metrics.masked_share == pytest.approx(1 / 5)
    assert metrics.unseen == 1


def test_masked_ideas_leave_a_state_unseen():
    buffer = filled(1)
    buffer.observe(key(0), [None, None])
    assert buffer.explain(key(0)).mean is None
    assert buffer.metrics().unseen == 1
    assert buffer.metrics().zero_variance_share is None


def test_the_share_without_variance_is_of_the_last_groups():
    buffer = filled(2, replaced(window=4, retire_after=0))
    for group in (SIGNAL, SIGNAL, FLOOR, CEILING, FLOOR, SIGNAL):
        buffer.observe(key(0), group)
    assert buffer.metrics().zero_variance_share == pytest.approx(3 / 4)


def test_results_of_a_state_that_left_are_counted():
    buffer = filled(1)
    assert not buffer.observe(key(5), SIGNAL)
    assert buffer.tallies["observed_unknown"] == 1


def test_a_wrong_reward_changes_nothing():
    buffer = filled(1)
    with pytest.raises(UsageError, match="finite"):
        buffer.observe(key(0), [float("inf")])
    assert buffer.explain(key(0)).groups == 0


# ------------------------------------------------------------------------------------ add


def test_duplicates_are_merged():
    buffer = filled(3)
    row = buffer.add(card(1))
    assert row == 1
    assert (len(buffer), buffer.tallies["merged"]) == (3, 1)


@pytest.mark.parametrize("wrong", ["", "abc", "g" * 64, "0" * 62, "0" * 66])
def test_what_is_no_id_is_refused(wrong):
    with pytest.raises(UsageError, match="64 hexadecimal"):
        EvolvingBuffer().add(msgspec.structs.replace(card(0), id=wrong))


def test_a_fixed_set_takes_no_new_states():
    buffer = filled(3, replaced(grow=False))
    assert buffer.add(card(9, parent=key(0))) is None
    assert buffer.tallies["refused_fixed_set"] == 1
    assert buffer.add(card(10)) is not None


def test_a_full_task_loses_a_retired_state_first_then_the_least_potential():
    buffer = filled(4, replaced(task_limit=4))
    buffer.observe(key(0), CEILING)
    buffer.observe(key(1), SIGNAL)
    for _ in range(2):
        buffer.observe(key(2), FLOOR)
    assert buffer.add(card(10)) is not None
    assert key(2) not in buffer
    assert buffer.add(card(11)) is not None
    assert key(0) not in buffer
    assert key(1) in buffer
    assert buffer.add(card(12, "b")) is not None
    assert buffer.tallies["left_task_limit"] == 2
    check(buffer)


def test_a_newcomer_does_not_drive_out_what_is_known_to_be_better():
    buffer = filled(2, replaced(task_limit=2))
    for number in (0, 1):
        buffer.observe(key(number), SIGNAL)
    assert buffer.add(card(5)) is None
    assert buffer.tallies["refused_task_limit"] == 1


def test_a_resting_state_does_not_leave():
    buffer = filled(2, replaced(task_limit=2, rest_share=1.0))
    buffer.draw(2)
    assert buffer.add(card(5)) is None


# ---------------------------------------------------------------------------------- other


def test_other_constants_are_put_in_force_on_what_was_observed():
    buffer = filled(20)
    for number in range(10):
        buffer.observe(key(number), SIGNAL)
    for _ in range(2):
        buffer.observe(key(15), FLOOR)
    buffer.reconfigure(replaced(headroom_weight=0.0, bins=16))
    assert buffer.explain(key(0)).potential == pytest.approx(0.5)
    assert buffer.explain(key(12)).potential == pytest.approx(0.35)
    assert buffer.at[RETIRED] == 1
    check(buffer)
    assert len(buffer.draw(12)) == 12


def test_a_state_of_another_form_is_refused():
    state = filled(1).state_dict()
    state["meta"] = np.array(str(state["meta"]).replace('"version": 1', '"version": 7'))
    with pytest.raises(UsageError, match="form 7"):
        EvolvingBuffer().load_state_dict(state)
