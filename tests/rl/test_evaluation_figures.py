"""What is read from an evaluation: each figure against values made by hand."""

from __future__ import annotations

import csv
import io
import math
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from mle_ideator.ideators.null import NullIdeator
from mle_ideator.rl.evaluation import Evaluation, evaluate, findings_of
from mle_ideator.rl.evaluation.contenders import UNTOLD, category_of
from mle_ideator.rl.evaluation.drawing import StateSample
from mle_ideator.rl.evaluation.files import FIGURE_COLUMNS, PAIR_COLUMNS, TRY_COLUMNS, write_files
from mle_ideator.rl.evaluation.gains import normalised_gain
from mle_ideator.rl.evaluation.pairs import permutation_p, sign_p
from mle_ideator.rl.evaluation.tables import tables_of
from mle_ideator.rl.evaluation.values import DEFINITIONS, Findings, Try
from mle_ideator.rl.reward import REWARDS
from mle_ideator.rl.values import RolloutResult
from mle_ideator.types import Score
from tests.rl.made_rollouts import MadeRollouts, card, cards, idea, lost, rubbish, saying

scores = st.floats(-1e300, 1e300)


def tried(contender, state, outcome, *, place=0, after=None, before=1.0, action="Tune.", s=1.0):
    result = RolloutResult(
        state=state,
        idea=None if outcome in ("invalid_format", "infra_error") else idea(action),
        seed=0,
        outcome=outcome,
        reward=REWARDS[outcome],
        before=None if before is None else Score(before, False),
        after=None if after is None else Score(after, False),
        improved=outcome == "improved",
        seconds=s,
    )
    return Try(contender=contender, state=state, seed=0, place=place, result=result)


def evaluation(states, *tries, ideas=1):
    names = tuple(dict.fromkeys(one.contender for one in tries))
    ordered = tuple(sorted(states, key=lambda card: (card.task, card.id)))
    return Evaluation(contenders=names, states=ordered, ideas=ideas, seed=0, tries=tries)


def row(findings, contender, by="all", group=""):
    return next(r for r in findings.rows if (r.contender, r.by, r.group) == (contender, by, group))


# ----------------------------------------------------------------------------- normalised gain


@given(scores, scores)
def test_gain_is_bounded_signed_and_cancels_out(before, after):
    for higher in (True, False):
        was, now = Score(before, higher), Score(after, higher)
        gain = normalised_gain(was, now)
        assert -2 <= gain <= 2
        assert gain == -normalised_gain(now, was)
        assert (gain > 0) <= now.better_than(was)
        assert (gain < 0) <= was.better_than(now)


def test_gain_is_the_relative_one_where_it_is_small():
    assert normalised_gain(Score(0.80, True), Score(0.808, True)) == pytest.approx(0.01, rel=0.01)
    assert normalised_gain(Score(200.0, False), Score(198.0, False)) == pytest.approx(
        0.01, rel=0.01
    )
    assert normalised_gain(Score(0.0, True), Score(0.0, True)) == 0
    assert normalised_gain(Score(0.0, True), Score(1e-12, True)) == 2
    assert normalised_gain(Score(-0.1, True), Score(0.1, True)) == 2


# -------------------------------------------------------------------------- each one's figures


def test_figures_of_a_contender_by_hand():
    states = [card(0, "a"), card(1, "a"), card(2, "b"), card(3, "b", "draft")]
    a0, a1, b2, b3 = (state.id for state in states)
    findings = findings_of(
        evaluation(
            states,
            tried("x", a0, "improved", after=0.9, s=1.0),
            tried("x", a1, "invalid_format", s=3.0),
            tried("x", b2, "infra_error", before=None),
            tried("x", b3, "improved", after=5.0, before=None, s=8.0),
        )
    )
    of_all = row(findings, "x")
    assert (of_all.states, of_all.tries, of_all.masked, of_all.invalid) == (3, 3, 1, 1)
    # a: (1 − 1) / 2, b: 1; both tasks weigh the same
    assert of_all.figure("reward").value == 0.5
    assert of_all.figure("reward").n == 3
    assert of_all.figure("improved_rate").value == 75.0
    assert of_all.figure("invalid_rate").value == 25.0
    assert of_all.figure("seconds").value == 5.0
    # without a score before there is no gain; the invalid answer gained nothing
    assert of_all.figure("gain_rate").value == pytest.approx((100 * 0.2 / 1.9 + 0) / 2)
    assert of_all.figure("gain_rate").n == 2
    assert row(findings, "x", "task", "b").figure("reward").value == 1.0
    assert row(findings, "x", "kind", "draft").figure("gain_rate").value is None
    assert [figure.name for figure in of_all.figures] == list(DEFINITIONS)


def test_several_ideas_of_a_state_count_as_one_state():
    states = [card(0), card(1)]
    tries = [
        tried("x", states[0].id, "improved", place=0, after=0.9),
        tried("x", states[0].id, "not_improved", place=1, after=1.1),
        tried("x", states[1].id, "not_improved", place=0, after=1.1),
        tried("x", states[1].id, "infra_error", place=1),
    ]
    of_all = row(findings_of(evaluation(states, *tries, ideas=2)), "x")
    assert of_all.figure("reward").value == 0.25
    assert of_all.figure("any_improved_rate").value == 50.0
    assert (of_all.tries, of_all.masked) == (3, 1)


def test_everything_masked_is_no_figure():
    states = [card(0), card(1)]
    tries = [tried("x", state.id, "infra_error") for state in states]
    of_all = row(findings_of(evaluation(states, *tries)), "x")
    assert all(figure.value is None for figure in of_all.figures)
    assert (of_all.states, of_all.masked) == (0, 2)


def test_ideas_by_category():
    states = [card(i) for i in range(4)]
    said = ("Use LightGBM.", "Use LightGBM.", "Add ratio features.", "Hello there.")
    outcomes = ("improved", "not_improved", "improved", "not_improved")
    tries = [
        tried("x", state.id, outcome, action=action)
        for state, action, outcome in zip(states, said, outcomes, strict=True)
    ]
    findings = findings_of(evaluation(states, *tries, tried("y", states[0].id, "invalid_format")))
    models = row(findings, "x", "category", "model choice")
    assert models.figure("share").value == 50.0
    assert models.figure("reward").value == 0.5
    assert models.figure("improved_rate").value == 50.0
    assert (models.states, models.tries) == (2, 2)
    assert row(findings, "x", "category", UNTOLD).figure("share").value == 25.0
    assert row(findings, "y", "category", "model choice").figure("share").value is None
    assert category_of(tried("y", "s", "invalid_format")) is None


# -------------------------------------------------------------------------------------- pairs


def test_a_pair_by_hand():
    states = [card(i, "a") for i in range(3)] + [card(i, "b") for i in range(3, 5)]
    first = ("improved", "not_improved", "improved", "invalid_format", "improved")
    second = ("not_improved", "not_improved", "infra_error", "not_improved", "not_improved")
    findings = findings_of(
        evaluation(
            states,
            *(tried("x", s.id, o, after=0.9) for s, o in zip(states, first, strict=True)),
            *(tried("y", s.id, o, after=1.0) for s, o in zip(states, second, strict=True)),
        )
    )
    pair = findings.pairs_by("all", "reward")[0]
    assert (pair.first, pair.second) == ("x", "y")
    assert (pair.states, pair.left_out) == (4, 1)
    assert (pair.wins, pair.ties, pair.losses) == (2, 1, 1)
    # a: (1 + 0) / 2; b: (−1 + 1) / 2
    assert pair.difference.value == 0.25
    assert pair.p_sign == pytest.approx(binomtest(2, 3).pvalue)
    on_b = next(one for one in findings.pairs_by("task", "reward") if one.group == "b")
    assert (on_b.wins, on_b.losses, on_b.difference.value) == (1, 1, 0.0)
    assert on_b.p_permutation == 1.0
    improved = findings.pairs_by("all", "improved")[0]
    # a: 50 %, b: 50 %: an invalid answer is no worse than one that did not improve
    assert improved.difference.value == 50.0
    assert (improved.wins, improved.ties, improved.losses) == (2, 2, 0)
    assert findings.pairs_by("all", "gain")[0].states == 4


def test_only_places_that_both_have_are_compared():
    states = [card(0), card(1)]
    one, other = states[0].id, states[1].id
    findings = findings_of(
        evaluation(
            states,
            tried("x", one, "improved", place=0),
            tried("x", one, "infra_error", place=1),
            tried("x", other, "infra_error", place=0),
            tried("x", other, "improved", place=1),
            tried("y", one, "not_improved", place=0),
            tried("y", one, "improved", place=1),
            tried("y", other, "not_improved", place=0),
            tried("y", other, "infra_error", place=1),
            ideas=2,
        )
    )
    pair = findings.pairs_by("all", "reward")[0]
    assert (pair.states, pair.left_out, pair.difference.value) == (1, 1, 1.0)


async def test_the_better_ideator_is_told_and_itself_is_not():
    states = cards(80)
    ideators = {
        "good": saying("Use gradient boosting."),
        "twin": saying("Use gradient boosting."),
        "fair": saying("Try harder."),
        "null": NullIdeator(),
        "rubbish": rubbish(),
        "lost": lost(),
    }
    findings = findings_of(await evaluate(ideators, MadeRollouts(states), states))
    pairs = {(pair.first, pair.second): pair for pair in findings.pairs_by("all", "reward")}
    assert len(pairs) == 15
    better = pairs["good", "fair"]
    assert better.significant
    assert better.difference.low > 0.5
    twin = pairs["good", "twin"]
    assert (twin.wins, twin.losses, twin.p_holm) == (0, 0, 1.0)
    assert (twin.difference.low, twin.difference.high) == (0.0, 0.0)
    assert pairs["null", "rubbish"].difference.value == pytest.approx(1.0)
    by_itself = row(findings, "null")
    assert by_itself.figure("reward").value == 0.0
    assert by_itself.figure("improved_rate").value > 5.0
    improved = {(p.first, p.second): p for p in findings.pairs_by("all", "improved")}
    assert improved["null", "rubbish"].difference.value == pytest.approx(
        by_itself.figure("improved_rate").value
    )
    gone = pairs["good", "lost"]
    assert (gone.states, gone.left_out) == (0, 80)
    assert (gone.difference.value, gone.p_sign, gone.p_holm) == (None, None, None)
    shift = next(s for s in findings.shifts if (s.first, s.second) == ("good", "fair"))
    assert shift.category == "model choice"
    assert shift.difference.value == pytest.approx(100.0)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=9))
def test_the_permutation_test_is_the_share_of_all_signs(differences):
    values = np.array(differences)
    sums = [abs(np.dot(signs, values)) for signs in product((1, -1), repeat=len(values))]
    share = np.mean([total >= abs(values.sum()) - 1e-9 for total in sums])
    assert permutation_p(values) == pytest.approx(share)


def test_the_drawn_permutations_agree_with_the_exact_sign_test():
    values = np.array([1.0] * 20 + [-1.0] * 8)
    assert permutation_p(values) == pytest.approx(sign_p(20, 8), abs=0.008)
    assert permutation_p(values / 1e6) == permutation_p(values)  # the scale says nothing
    assert permutation_p(np.ones(60)) == pytest.approx(1e-4, rel=0.01)
    assert sign_p(0, 0) == sign_p(7, 7) == 1.0
    assert sign_p(3, 19) == pytest.approx(binomtest(3, 22).pvalue)


# -------------------------------------------------------------------------------------- draws


def test_states_are_drawn_within_their_tasks():
    sample = StateSample(("a",) * 4 + ("b",) * 6)
    counts = sample._counts
    assert counts[:, :4].sum(axis=1) == pytest.approx(4)
    assert counts[:, 4:].sum(axis=1) == pytest.approx(6)
    # tasks that differ are no chance, if all their states are alike
    figure = sample.mean("m", [0.0] * 4 + [1.0] * 6)
    assert (figure.value, figure.low, figure.high) == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2, 2, 2, 2, 2), (16,), (1,) * 16, (5, 1, 10)])
def test_the_draws_vary_as_means_of_samples_do(sizes):
    tasks = tuple(name for name, size in zip("abcdefghijklmnop", sizes, strict=False)
                  for _ in range(size))  # fmt: skip
    values = np.random.default_rng(0).normal(size=len(tasks))
    sample = StateSample(tasks)
    spread = ((sample._counts * sample._shares) @ values).std()
    if len(set(sizes)) == 1:  # the textbook's standard error of a stratified mean
        size = sizes[0] if sizes[0] > 1 else len(sizes)
        groups = values.reshape(-1, size)
        expected = math.sqrt((groups.var(axis=1, ddof=1) / size).sum()) / len(groups)
        assert spread == pytest.approx(expected, rel=0.06)
    assert spread > 0


def test_95_percent_of_the_intervals_hold_the_truth():
    rng = np.random.default_rng(1)
    chances, sizes = (0.2, 0.5, 0.7, 0.4), (5, 10, 20, 15)
    sample = StateSample(
        tuple(t for t, size in zip("abcd", sizes, strict=True) for _ in range(size))
    )
    held = 0
    for _ in range(500):
        drawn = [rng.random(n) < p for p, n in zip(chances, sizes, strict=True)]
        figure = sample.mean("m", np.concatenate(drawn).astype(float).tolist())
        held += figure.low <= np.mean(chances) <= figure.high
    assert 0.91 <= held / 500 <= 0.98


def test_one_state_has_a_value_and_no_interval():
    figure = StateSample(("a",)).mean("m", [0.5])
    assert (figure.value, figure.low, figure.high) == (0.5, None, None)
    assert StateSample(("a",)).ratio("m", [1], [2]).value == 0.5


# ----------------------------------------------------------------------------- tables and files


async def test_tables_and_files_hold_what_was_found(tmp_path: Path):
    states = cards(30)
    ideators = {
        "=good": saying("Use gradient boosting."),
        "rubbish": rubbish(),
        "lost": lost(),
    }
    done = await evaluate(ideators, MadeRollouts(states), states)
    findings = findings_of(done)
    tables = {table.key: table for table in tables_of(findings)}
    assert list(tables) == [
        "by_all", "pairs_by_all", "by_task", "pairs_by_task", "by_kind", "pairs_by_kind",
        "by_category",
    ] + (["shifts"] if findings.shifts else [])  # fmt: skip
    for table in tables.values():
        assert all(len(line) == len(table.columns) for line in table.rows)
    names = [column.name for column in tables["by_all"].columns]
    assert "any improved %" not in names  # it says nothing with one idea
    lines = {line[0].text: line for line in tables["by_all"].rows}
    assert lines["rubbish"][names.index("reward")].text == "-1.000"
    assert lines["lost"][names.index("masked")].text == "30"
    assert lines["lost"][names.index("reward")].text == "–"
    assert tables["pairs_by_all"].rows[0][3].best

    files = write_files(done, findings, tmp_path / "out")
    assert [file.name for file in files] == [
        "evaluation.json", "tries.csv", "figures.csv", "pairs.csv",
    ]  # fmt: skip
    told = msgspec.json.decode(files[0].read_bytes())
    assert told.pop("definitions") == DEFINITIONS
    assert msgspec.convert(told, Findings) == findings
    for file, columns in zip(files[1:], (TRY_COLUMNS, FIGURE_COLUMNS, PAIR_COLUMNS), strict=True):
        read = list(csv.reader(io.StringIO(file.read_text())))
        assert tuple(read[0]) == columns
        assert {len(line) for line in read} == {len(columns)}
    tries = list(csv.DictReader(io.StringIO(files[1].read_text())))
    assert len(tries) == 90
    assert {line["contender"] for line in tries} == {"'=good", "rubbish", "lost"}
    assert {line["reward"] for line in tries if line["contender"] == "lost"} == {""}


async def test_figures_do_not_depend_on_who_else_is_there():
    states = cards(40)
    good, fair = saying("Use gradient boosting."), saying("Try harder.")
    alone = findings_of(await evaluate({"good": good}, MadeRollouts(states), states))
    both = findings_of(await evaluate({"fair": fair, "good": good}, MadeRollouts(states), states))
    for name in ("reward", "improved_rate", "gain_rate"):
        assert row(alone, "good").figure(name) == row(both, "good").figure(name)
