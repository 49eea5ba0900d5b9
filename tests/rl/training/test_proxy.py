"""The proxy on a made world, where an idea improves or not by the operation that it names."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from mle_ideator.errors import UsageError
from mle_ideator.ideators.offline.ranking import LEAST_GAIN
from mle_ideator.operations import OPERATIONS
from mle_ideator.rl.environments.one_step import OneStep
from mle_ideator.rl.training.proxy import (
    Example,
    ProxiedRollouts,
    Proxy,
    ProxyConfig,
    proxied,
)
from mle_ideator.rl.training.proxy.features import of_idea, of_state
from mle_ideator.rl.training.proxy.ideator import ProxyIdeator
from mle_ideator.rl.training.proxy.linear import line_through
from mle_ideator.rl.training.proxy.model import Fit
from mle_ideator.rl.training.proxy.quality import auc, calibration_error, threshold_at
from mle_ideator.rl.training.proxy.trees import Trees, fitted
from tests.rl.made_rollouts import MadeRollouts, answer, cards, help_state, idea
from tests.rl.training.made_world import GOOD, POOR, world


@pytest.fixture(scope="module")
def proxy() -> Proxy:
    return Proxy.fit(world(180, tasks=3))


def test_what_it_learns_holds_on_tasks_it_has_not_seen(proxy: Proxy) -> None:
    quality = proxy.quality
    assert (quality.form, quality.examples, quality.tasks) == ("line and trees", 180, 3)
    assert quality.auc > 0.8
    assert quality.auc_within_tasks is not None
    assert quality.auc_within_tasks > 0.8
    assert quality.calibration_error < 0.12
    new = help_state("another task")
    good = proxy.predict(new, [idea(OPERATIONS[name].action) for name in GOOD])
    poor = proxy.predict(new, [idea(OPERATIONS[name].action) for name in POOR])
    assert min(good) > 0.4 > 0.2 > max(poor)


def test_half_of_the_executions_are_saved_where_half_are_hopeless(proxy: Proxy) -> None:
    at = {skipping.false_skip: skipping for skipping in proxy.quality.skipping}
    assert sorted(at) == [0.01, 0.02, 0.05]
    assert 0.3 < at[0.05].saved < 0.6
    assert at[0.05].saved_seconds == pytest.approx(at[0.05].saved)
    assert at[0.05].threshold == proxy.threshold(0.05)
    assert at[0.01].saved <= at[0.02].saved <= at[0.05].saved
    with pytest.raises(UsageError, match="at least 0 and less than 1"):
        proxy.threshold(1.0)


def test_the_same_examples_give_the_same_proxy() -> None:
    first, second = (Proxy.fit(world(60, tasks=2)) for _ in range(2))
    assert first.quality == second.quality
    ideas = [idea(OPERATIONS[name].action) for name in GOOD + POOR]
    assert first.predict(help_state("a"), ideas) == second.predict(help_state("a"), ideas)


@pytest.mark.parametrize(
    ("examples", "why"),
    [
        (world(20), "20 executed ideas"),
        ([e for e in world(200) if not e.improved], "of which 0 improved"),
        (world(80, tasks=1), "two or more"),
    ],
)
def test_too_little_to_learn_from_is_refused(examples: list[Example], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Proxy.fit(examples)


# --------------------------------------------------------------------------------------- on disk


def test_it_is_read_back_as_it_was_without_pickle_and_scikit_learn(
    proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ideas = [idea(OPERATIONS[name].action) for name in GOOD + POOR]
    before = proxy.predict(help_state("a"), ideas)
    file = tmp_path / "new" / "proxy.npz"
    proxy.save(file)
    with np.load(file, allow_pickle=False) as content:
        assert all(content[name].dtype.kind in "biufU" for name in content.files)
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    again = Proxy.load(file)
    assert again.quality == proxy.quality
    assert again.predict(help_state("a"), ideas) == before
    assert again.threshold(0.02) == proxy.threshold(0.02)


def test_what_is_no_proxy_is_refused(proxy: Proxy, tmp_path: Path) -> None:
    file = tmp_path / "proxy.npz"
    for content in (b"", b"something else", b"PK\x03\x04 and so on"):
        file.write_bytes(content)
        with pytest.raises(UsageError, match="is no proxy that can be read"):
            Proxy.load(file)
    proxy.save(file)
    file.write_bytes(file.read_bytes()[:-400])
    with pytest.raises(UsageError, match="is no proxy that can be read"):
        Proxy.load(file)
    proxy.save(file)
    with np.load(file) as found:
        arrays = dict(found)
    np.savez(file, **{**arrays, "version": np.array(99)})
    with pytest.raises(UsageError, match="another version"):
        Proxy.load(file)
    np.savez(file, **{**arrays, "trees.left": arrays["trees.left"] + 10_000})
    with pytest.raises(UsageError, match="left leads to no node"):
        Proxy.load(file)
    np.savez(file, **{**arrays, "columns": np.array(["gone", *arrays["columns"][1:]])})
    with pytest.raises(UsageError, match="goes by 'gone', which is no longer known"):
        Proxy.load(file).predict(help_state("a"), [idea("Use ratios.")])


# ------------------------------------------------------------------------------------- the parts


def test_trees_predict_what_scikit_learn_does() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    from mle_ideator.rl.training.proxy.trees import _SETTINGS

    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 6))
    rows[random.random(rows.shape) < 0.2] = np.nan
    improved = np.nan_to_num(rows[:, 0] * rows[:, 1] + rows[:, 2]) > 0
    trees = fitted(rows, improved, [0] * 6)
    model = HistGradientBoostingClassifier(random_state=0, **_SETTINGS)
    with threadpool_limits(limits=1):
        model.fit(rows, improved)
    unseen = random.normal(size=(200, 6))
    unseen[random.random(unseen.shape) < 0.2] = np.nan
    assert trees.raw(unseen) == pytest.approx(model.decision_function(unseen), abs=1e-9)
    assert Trees.from_arrays(trees.arrays()).raw(unseen) == pytest.approx(trees.raw(unseen))


def test_a_direction_is_kept() -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(400, 2))
    improved = np.sin(2 * rows[:, 0]) + random.normal(size=400) > 0
    grid = np.stack([np.linspace(-2, 2, 100), np.zeros(100)], axis=1)
    assert (np.diff(fitted(rows, improved, [1, 0]).raw(grid)) >= 0).all()
    assert (np.diff(fitted(rows, improved, [0, 0]).raw(grid)) < 0).any()


def test_a_line_takes_what_can_not_be_told_as_the_mean() -> None:
    random = np.random.default_rng(2)
    rows = random.normal(3.0, 2.0, size=(400, 3))
    rows[:50, 2] = np.nan
    line = line_through(rows, rows[:, 0] > 3.0, np.array([0, 2]))
    assert auc(line.raw(rows), rows[:, 0] > 3.0) > 0.98
    untold = line.raw(np.array([[3.5, 0.0, np.nan], [3.5, 0.0, np.nanmean(rows[:, 2])]]))
    assert untold[0] == pytest.approx(untold[1])


def test_a_fit_without_trees_is_kept_as_one() -> None:
    random = np.random.default_rng(4)
    rows = random.normal(size=(100, 4))
    fit = Fit(line_through(rows, rows[:, 1] > 0, np.array([1, 3])), None)
    again = Fit.from_arrays(fit.arrays())
    assert again.trees is None
    assert again.raw(rows).tolist() == fit.raw(rows).tolist() == fit.line.raw(rows).tolist()


def test_thresholds_and_calibration_by_hand() -> None:
    predicted = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    improved = np.array([0, 1, 0, 1, 0, 1, 1, 0], bool)
    assert threshold_at(predicted, improved, 0.0) == 0.2
    assert threshold_at(predicted, improved, 0.24) == 0.2
    assert threshold_at(predicted, improved, 0.25) == 0.4
    assert threshold_at(predicted, improved, 0.5) == 0.6
    tied = np.array([0.2, 0.2, 0.5])
    assert threshold_at(tied, np.array([True, True, True]), 0.34) == 0.2
    assert calibration_error(np.array([0.5] * 10), np.array([True, False] * 5)) == 0.5
    assert calibration_error(np.arange(10.0) > 4, np.arange(10.0) > 4) == 0.0


def test_features_tell_what_is_there_already_and_what_is_asked() -> None:
    state = of_state(help_state("a"))
    row = of_idea(state, idea("Use PCA and ratios of columns, as `x` says."))
    assert (row["asks:pca"], row["asks:ratios"], row["asks:stack"]) == (1.0, 1.0, 0.0)
    assert (row["asked"], row["quoted"], row["reverts"]) == (2.0, 1.0, 0.0)
    vague = of_idea(state, idea("Try harder."))
    assert vague["asked"] == 0.0
    assert vague["gain_best"] == LEAST_GAIN
    assert list(row) == list(vague)


async def test_as_an_ideator_it_proposes_what_it_believes_in(proxy: Proxy, tmp_path: Path) -> None:
    proxy.save(tmp_path / "proxy.npz")
    ideator = ProxyIdeator(str(tmp_path / "proxy.npz"))
    state = help_state("a")
    proposal = await ideator.propose(state)
    assert proposal.idea is not None
    assert ideator.score(state, [proposal.idea])[0] >= max(
        ideator.score(state, [idea(OPERATIONS[name].action) for name in POOR])
    )


async def test_a_saved_proxy_goes_around_rollouts(proxy: Proxy, tmp_path: Path) -> None:
    proxy.save(tmp_path / "proxy.npz")
    inner = MadeRollouts(cards(3))
    config = ProxyConfig(file=str(tmp_path / "proxy.npz"), threshold=0.2, audit=0.01)
    steps = OneStep(rollouts=proxied(inner, config, seed=7))
    state = steps.states[0]
    poor = [await steps.judged(state, answer(OPERATIONS[name].action)) for name in POOR]
    assert [result.reward for result in poor] == [0.0] * 4
    assert inner.jobs == []
    good = [await steps.judged(state, answer(OPERATIONS[name].action)) for name in GOOD]
    assert len(inner.jobs) == 4
    assert all(result.reward is not None for result in good)
    assert (await steps.judged(state, "no idea at all")).reward == -1.0
    by_share = proxied(inner, ProxyConfig(file=config.file, false_skip=0.05))
    assert isinstance(by_share, ProxiedRollouts)
    assert by_share.threshold == proxy.threshold(0.05)
