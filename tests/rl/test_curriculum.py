"""The curriculum's pure functions: their properties, on whatever numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from mle_ideator.config import check_keys
from mle_ideator.errors import UsageError
from mle_ideator.rl.buffer import curriculum as pure
from mle_ideator.rl.buffer.config import CurriculumConfig, ablations
from mle_ideator.rl.buffer.curriculum import Statistics
from tests.rl.curriculum_states import for_any

rewards = st.floats(-1, 1, allow_nan=False)
means = st.floats(-1, 2, allow_nan=False)
stds = st.floats(0, 2, allow_nan=False)
configs = st.builds(
    CurriculumConfig,
    delta_max=st.floats(0.01, 2),
    headroom_weight=st.floats(0, 3),
    top_fraction=st.floats(0.01, 1),
    anneal_draws=st.integers(0, 300),
    balance=st.floats(0, 1),
    bins=st.integers(2, 200),
)


# -------------------------------------------------------------------------- potential


@pytest.mark.parametrize(
    ("mean", "std", "expected"),
    [(0.5, 0.5, 0.75), (0.0, 0.0, 0.5), (1.0, 0.0, 0.0), (0.25, 0.9, 0.875), (-1.0, 0.0, 0.5)],
)
def test_the_formula(mean, std, expected):
    assert pure.potential(mean, std, CurriculumConfig()) == pytest.approx(expected)


@for_any(means, stds, configs)
def test_the_potential_is_finite_and_bounded(mean, std, config):
    assert 0 <= pure.potential(mean, std, config) <= config.highest_potential + 1e-9


@for_any(means, stds, stds, configs)
def test_more_spread_is_never_worth_less(mean, one, other, config):
    low, high = sorted((one, other))
    assert pure.potential(mean, low, config) <= pure.potential(mean, high, config)


@for_any(means, means, stds, configs)
def test_more_success_is_never_worth_more(one, other, std, config):
    low, high = sorted((one, other))
    assert pure.potential(high, std, config) <= pure.potential(low, std, config)


@for_any(st.floats(0, 1), configs)
def test_levels_keep_the_order_of_potentials(share, config):
    top = config.highest_potential
    assert 0 <= pure.level(share * top, config) <= pure.level(top, config) == config.bins - 1


def test_an_unseen_state_stands_between_a_hopeless_and_a_learnable_one():
    config = CurriculumConfig()
    prior = pure.prior_potential(config)
    assert pure.potential(0.0, 0.0, config) < prior < pure.potential(0.5, 0.5, config)


# ------------------------------------------------------------------- rewards, statistics


def test_masked_and_invalid_are_told_apart():
    group = pure.read_group([1.0, 0.0, None, math.nan, -1.0], invalid=2)
    assert group == ((1.0, 0.0), 2, 3)


def test_format_errors_do_not_look_learnable():
    executed = pure.read_group([0.0, 0.0, -1.0, -1.0])
    assert pure.merged(Statistics(), executed.rewards, 1.0).std == 0
    counted = pure.read_group([0.0, 0.0, -1.0, -1.0], executed_only=False)
    assert pure.merged(Statistics(), counted.rewards, 1.0).std == pytest.approx(0.5)


@pytest.mark.parametrize(("group", "invalid"), [([math.inf], 0), ([-math.inf], 0), ([1.0], -1)])
def test_what_is_no_reward_is_refused(group, invalid):
    with pytest.raises(UsageError, match="finite"):
        pure.read_group(group, invalid)


@for_any(st.lists(st.lists(rewards, min_size=1, max_size=8), min_size=1, max_size=8))
def test_statistics_that_forget_nothing_are_those_of_all_rewards(groups):
    now = Statistics()
    for group in groups:
        now = pure.merged(now, group, memory=1.0)
    everything = [reward for group in groups for reward in group]
    assert now.mean == pytest.approx(np.mean(everything), abs=1e-9)
    assert now.std == pytest.approx(np.std(everything), abs=1e-6)


@for_any(
    st.lists(st.lists(rewards, min_size=1, max_size=8), min_size=1, max_size=30), st.floats(0, 1)
)
def test_statistics_stay_finite_and_in_range(groups, memory):
    now = Statistics()
    for group in groups:
        now = pure.merged(now, group, memory)
    assert -1 - 1e-9 <= now.mean <= 1 + 1e-9
    assert 0 <= now.std <= 1 + 1e-6


@for_any(rewards, st.integers(1, 9), st.integers(1, 9))
def test_equal_rewards_have_no_spread_at_all(reward, first, second):
    now = pure.merged(Statistics(), [reward] * first, 0.5)
    assert pure.merged(now, [reward] * second, 0.5).std == 0


def test_old_rewards_weigh_less():
    now = pure.merged(pure.merged(Statistics(), [0.0] * 8, 0.5), [1.0] * 8, 0.5)
    assert now.mean == pytest.approx(2 / 3)


# ------------------------------------------------------------- schedule, candidates, tasks


@for_any(configs, st.integers(0, 1000), st.integers(0, 1000))
def test_the_schedule_only_falls(config, one, other):
    early, late = sorted((one, other))
    assert 1 >= pure.top_fraction(early, config) >= pure.top_fraction(late, config)
    assert pure.top_fraction(late, config) >= config.top_fraction - 1e-12


@for_any(configs.filter(lambda config: config.anneal_draws > 0))
def test_the_schedule_begins_uniform_and_ends_at_the_floor(config):
    assert pure.top_fraction(0, config) == 1
    assert pure.top_fraction(config.anneal_draws, config) == pytest.approx(config.top_fraction)


counts_of_levels = st.lists(st.integers(0, 50), min_size=2, max_size=40).map(np.array)


@for_any(counts_of_levels, st.floats(0, 1))
def test_memberships_sum_to_the_quota_from_the_top(counts, share):
    quota = share * counts.sum()
    members = pure.membership(counts, quota)
    assert ((members >= 0) & (members <= 1)).all()
    assert (members * counts).sum() == pytest.approx(quota)
    held = members[counts > 0]
    assert (np.diff(held) >= 0).all()


@for_any(counts_of_levels, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_quota_leaves_no_level_out(counts, one, other):
    small, large = sorted((one, other))
    few = pure.membership(counts, small * counts.sum())
    assert (few <= pure.membership(counts, large * counts.sum()) + 1e-12).all()


@for_any(st.lists(st.floats(0, 1e6), min_size=1, max_size=30).map(np.array), st.floats(0, 1))
def test_only_tasks_with_candidates_are_drawn(candidates, balance):
    weights = pure.task_weights(candidates, balance)
    assert np.isfinite(weights).all()
    assert ((weights > 0) == (candidates > 1e-9)).all()


def test_balance_lies_between_equal_tasks_and_equal_states():
    candidates = np.array([100.0, 1.0, 0.0])
    assert pure.task_weights(candidates, 0.0).tolist() == [1, 1, 0]
    assert pure.task_weights(candidates, 0.5).tolist() == [10, 1, 0]
    assert pure.task_weights(candidates, 1.0).tolist() == [100, 1, 0]


weights_with_some = st.lists(st.floats(0, 1e6), min_size=1, max_size=30).filter(any).map(np.array)


@for_any(weights_with_some, st.floats(0, 1, exclude_max=True))
def test_what_has_no_weight_is_never_picked(weights, u):
    assert weights[int(pure.weighted_index(weights.cumsum(), u))] > 0


# -------------------------------------------------------------------- rest, retirement


@pytest.mark.parametrize(
    ("groups", "run"),
    [
        ([[1, 1], [1, 1]], 2),
        ([[0, 0], [0, 0], [0, 0]], -3),
        ([[1, 1], [0, 0]], -1),
        ([[0, 0], [0, 1]], 0),
        ([[0.5, 0.5]], 0),
        ([[-1, 0]], 0),
        ([[0], [0], [0]], 0),
        ([[0, 0], [1]], -1),
    ],
)
def test_groups_in_a_row_at_one_end(groups, run):
    now = 0
    for group in groups:
        now = pure.flat_run(now, group)
    assert now == run


@for_any(st.integers(0, 10**6), configs)
def test_never_more_than_their_share_may_rest(states, config):
    assert 0 <= pure.resting_limit(states, config) <= states


@for_any(st.integers(0, 127), st.integers(0, 127))
def test_who_came_back_more_often_stays_away_no_shorter(one, other):
    few, many = sorted((one, other))
    config = CurriculumConfig()
    assert 50 <= pure.away(few, config) <= pure.away(many, config)


def test_without_a_return_they_stay_away_for_good():
    assert pure.away(0, CurriculumConfig(return_after=0)) >= 10**9


# -------------------------------------------------------------------------------- config


@pytest.mark.parametrize(
    "wrong",
    [
        {"delta_max": 0.0},
        {"headroom_weight": -1.0},
        {"headroom_weight": math.nan},
        {"top_fraction": 0.0},
        {"memory": 1.5},
        {"bins": 1},
        {"return_growth": 0.5},
        {"task_limit": 0},
    ],
)
def test_constants_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        CurriculumConfig(**wrong)


def test_every_constant_has_a_range_but_switches():
    from mle_ideator.rl.buffer.config import _RANGES

    switches = {"executed_only", "grow"}
    assert {name for name, *_ in _RANGES} | switches == set(CurriculumConfig.__struct_fields__)


def test_each_ablation_leaves_something_out():
    named = ablations()
    assert named["adaptive"] == CurriculumConfig()
    assert len(set(map(str, named.values()))) == len(named)
    assert named["no headroom term"].headroom_weight == 0


def test_an_unknown_constant_is_named():
    with pytest.raises(UsageError, match="top_fraction"):
        check_keys(CurriculumConfig, {"top_fractoin": 0.1})
