"""Figures over tasks and seeds: worked out by hand, and what holds for any runs."""

import math
from statistics import fmean

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mle_ideator.benchmarks.measures.contenders import figures_of, figures_of_contender
from mle_ideator.benchmarks.measures.curves import POINTS
from mle_ideator.benchmarks.measures.figures import DEFINITIONS, ContenderFigures, Figure
from mle_ideator.benchmarks.measures.paired import compare, compare_all, holm
from mle_ideator.benchmarks.measures.resampling import sample_of
from mle_ideator.benchmarks.measures.scoring import Scoring
from mle_ideator.benchmarks.measures.values import Cell, Contender, Flag, RunMeasures, TriedIdea
from mle_ideator.types import Usage
from tests.benchmarks.measured import moment, run, scores

A, B = Contender("a", "offline"), Contender("b", "offline")


def figures(runs: list[RunMeasures], **options: object) -> ContenderFigures:
    return figures_of_contender(A, runs, **options)  # type: ignore[arg-type]


def value(runs: list[RunMeasures], name: str) -> float | None:
    return figures(runs).figure(name).value


PAPER = [
    *(run("A", seed=i, rank=rank) for i, rank in enumerate([0.6, None, 0.3])),
    *(run("B", seed=i, rank=rank) for i, rank in enumerate([1.0, 0.8, 0.9])),
]
"""A = 60, invalid, 30; B = 100, 80, 90."""


def test_avg_and_best_at_k_of_the_paper():
    found = figures(PAPER)
    assert found.figure("avg_at_k").value == pytest.approx(60)
    assert found.figure("best_at_k").value == pytest.approx(80)
    assert found.figure("human_rank").value == pytest.approx(0.6)
    assert found.figure("avg_at_k").n == 6
    assert (found.counts.seeds, found.counts.tasks, found.counts.invalid) == (3, 2, 1)


def test_tasks_with_fewer_seeds_weigh_as_much():
    runs = [run("A", seed=0, rank=0.5), run("B", seed=0, rank=1.0), run("B", seed=1, rank=0.0)]
    found = figures(runs)
    assert found.figure("avg_at_k").value == pytest.approx((50 + 50) / 2)
    assert found.figure("best_at_k").value == pytest.approx((50 + 100) / 2)
    assert (found.counts.seeds, found.counts.fewest_seeds) == (2, 1)


def test_an_invalid_run_scores_nothing_whatever_else_it_holds():
    forged = run("A", rank=0.9, medal="gold", above_median=True, valid=False)
    found = figures([forged])
    for name in ("avg_at_k", "best_at_k", "human_rank", "gold_rate", "above_median_rate"):
        assert found.figure(name).value == 0


def medals(counts: list[int], tasks: int = 22) -> list[RunMeasures]:
    return [
        run(f"t{task:02}", seed=seed, rank=0.9, medal="gold" if task < count else None)
        for seed, count in enumerate(counts)
        for task in range(tasks)
    ]


def test_rates_are_those_of_mle_bench():
    rate = figures(medals([9, 8, 10])).figure("any_medal_rate")
    assert rate.value == pytest.approx(40.91, abs=0.005)
    assert rate.standard_error == pytest.approx(2.62, abs=0.005)
    assert rate.n == 66
    assert figures(medals([9])).figure("any_medal_rate").standard_error is None


def test_each_medal_has_its_rate_and_counts_once():
    kinds = ["gold", "silver", "bronze", None, "bronze"]
    runs = [run(f"t{i}", rank=0.5, medal=kind) for i, kind in enumerate(kinds)]
    got = {name: value(runs, f"{name}_rate") for name in ("gold", "silver", "bronze", "any_medal")}
    assert got == pytest.approx({"gold": 20, "silver": 20, "bronze": 40, "any_medal": 80})


def test_valid_and_above_median_rates():
    runs = [run("A", rank=0.9, above_median=True), run("B", rank=0.4), run("C"), run("D")]
    assert value(runs, "valid_rate") == 50
    assert value(runs, "above_median_rate") == 25


def test_tasks_without_a_leaderboard_are_in_no_figure_that_needs_one():
    runs = [
        run("A", rank=0.5, medal="gold"),
        run("own", rank=0.0, ranked=False),
        run("own2", ranked=False),
    ]
    found = figures(runs)
    assert found.counts.unranked == 2
    assert found.figure("avg_at_k").value == 50
    assert found.figure("avg_at_k").n == 1
    assert found.figure("any_medal_rate").value == 100
    assert found.figure("valid_rate").value == pytest.approx(200 / 3)
    by_validation = Scoring(
        "validation", lambda at: at.scores.validation.value, needs_leaderboard=False
    )
    scored = [run("own", rank=0.0, ranked=False, scores=scores(0.7)), run("own2", ranked=False)]
    assert figures(scored, scoring=by_validation).figure("avg_at_k").value == pytest.approx(0.35)


def test_steps_to_the_first_valid_solution():
    runs = [
        run("A", seed=0, rank=0.1, steps_to_first_valid=2, seconds_to_first_valid=20.0),
        run("A", seed=1, rank=0.1, steps_to_first_valid=4, seconds_to_first_valid=50.0),
        run("B", seed=0, steps_to_first_valid=None, budget_steps=20, steps=11),
        run("B", seed=1, steps_to_first_valid=None, budget_steps=None, steps=8),
    ]
    found = figures(runs)
    first = found.figure("steps_to_first_valid")
    assert (first.value, first.n) == (3, 2)
    censored = found.figure("steps_to_first_valid_censored")
    assert (censored.value, censored.n) == ((2 + 4 + 20 + 8) / 4, 4)
    assert found.figure("seconds_to_first_valid").value == 35


def test_amounts_are_means_over_the_runs_of_which_they_are_known():
    known = Usage(calls=2, input_tokens=100, output_tokens=20, cost_usd=0.5)
    unknown = Usage(calls=1, input_tokens=None, output_tokens=None, cost_usd=None)
    runs = [
        run("A", rank=1.0, usage=known, ideator_usage=known, help_requests=3, improvements=1),
        run("B", rank=1.0, usage=unknown, ideator_usage=unknown, help_requests=1, improvements=1),
    ]
    found = figures(runs)
    assert (found.figure("tokens").value, found.figure("tokens").n) == (120, 1)
    assert (found.figure("cost_usd").value, found.figure("cost_usd").n) == (0.5, 1)
    assert found.figure("help_requests").value == 2
    assert found.figure("improvements").value == 1
    assert figures(runs[1:]).figure("cost_usd") == Figure(name="cost_usd", value=None, n=0)


def ideas(*kinds: tuple[str | None, bool]) -> tuple[TriedIdea, ...]:
    return tuple(
        TriedIdea(step=i, categories=(kind,) if kind else (), improved=improved)
        for i, (kind, improved) in enumerate(kinds, start=1)
    )


def test_categories_are_counted_and_the_share_of_each_that_improved():
    runs = [
        run("A", ideas=ideas(("model choice", True), ("training", False), (None, False))),
        run("B", ideas=ideas(("model choice", False))),
    ]
    found = figures(runs)
    by_kind = {each.category: each for each in found.categories}
    assert list(by_kind)[-1] is None
    assert len(by_kind) == 8
    chosen = by_kind["model choice"]
    assert (chosen.ideas, chosen.share.value, chosen.improved.value) == (2, 50, 50)
    assert (chosen.share.n, chosen.improved.n) == (4, 2)
    assert by_kind["training"].improved.value == 0
    assert by_kind["ensembling"].improved.value is None
    assert sum(each.share.value for each in found.categories) == pytest.approx(100)
    assert found.figure("improving_share").value == 25
    assert found.figure("improving_share").n == 4


def test_an_idea_counts_for_its_foremost_category():
    both = TriedIdea(step=1, categories=("training", "ensembling"), improved=True)
    by_kind = {each.category: each.ideas for each in figures([run(ideas=(both,))]).categories}
    assert by_kind["training"] == 1
    assert by_kind["ensembling"] == 0


# ------------------------------------------------------------------------- what is counted


def test_runs_that_failed_or_have_not_ended_are_counted_and_not_dropped():
    flag = Flag(code="network", line=1, message="…")
    runs = [
        run("A", seed=0, rank=0.8, flags=(flag,)),
        run("A", seed=1, outcome="failed"),
        run("A", seed=2, outcome=None),
    ]
    cells = [Cell("A", A, seed) for seed in range(5)]
    counts = figures(runs, expected=cells).counts
    assert (counts.runs, counts.failed, counts.unended, counts.invalid) == (3, 1, 1, 2)
    assert (counts.missing, counts.flagged) == (2, 1)
    assert value(runs, "avg_at_k") == pytest.approx(80 / 3)


def test_a_contender_none_of_whose_runs_began_is_there_with_nothing():
    found = figures_of([run("t", "a", rank=0.5)], expected=[Cell("t", B, 0)])
    nothing = found.contenders[1]
    assert nothing.contender == B
    assert nothing.counts.missing == 1
    assert all(figure.value is None and figure.n == 0 for figure in nothing.figures)
    assert all(not curve.points for curve in nothing.curves)
    assert found.comparisons == ()


def test_every_figure_is_there_in_the_order_of_the_definitions():
    assert [figure.name for figure in figures(PAPER).figures] == list(DEFINITIONS)


# --------------------------------------------------------------------------------- curves


def test_a_curve_follows_the_solution_best_by_validation_never_by_test():
    history = (
        moment(2, 0.5, rank=0.2),
        moment(4, 0.7, rank=0.6, medal="bronze"),
        moment(6, 0.6, rank=1.0, medal="gold"),  # better by test, worse by validation
        moment(8, 0.8, rank=0.4),
    )
    found = figures([run(rank=0.4, steps=9, history=history)])
    by_step = {point.at: point.value for point in found.curve("score", "step").points}
    assert [by_step[at] for at in range(10)] == pytest.approx(
        [0, 0, 20, 20, 60, 60, 60, 60, 40, 40]
    )
    medal = {point.at: point.value for point in found.curve("any_medal_rate", "step").points}
    assert [medal[at] for at in range(10)] == [0, 0, 0, 0, 100, 100, 100, 100, 0, 0]
    valid = {point.at: point.value for point in found.curve("valid_rate", "step").points}
    assert [valid[at] for at in (0, 1, 2, 9)] == [0, 0, 100, 100]


def test_an_unscored_solution_counts_until_a_scored_one_is_there_and_never_after():
    history = (moment(1, None, rank=0.1), moment(2, 0.5, rank=0.2), moment(3, None, rank=0.9))
    curve = figures([run(rank=0.2, steps=4, history=history)]).curve("score", "step")
    assert [point.value for point in curve.points] == pytest.approx([0, 10, 20, 20, 20])


def test_a_gain_below_the_least_difference_of_the_task_is_none():
    history = (moment(1, 0.5, rank=0.5), moment(2, 0.505, rank=0.9))
    curve = figures([run(rank=0.5, steps=2, history=history, min_delta=0.01)]).curve(
        "score", "step"
    )
    assert [point.value for point in curve.points] == pytest.approx([0, 50, 50])


def test_curves_over_time_hold_to_the_end_of_the_longest_run():
    runs = [
        run("A", rank=0.4, duration_s=50.0, history=(moment(1, 0.1, rank=0.4, at_s=25.0),)),
        run("B", rank=0.8, duration_s=200.0, history=(moment(1, 0.1, rank=0.8, at_s=100.0),)),
    ]
    points = figures(runs).curve("score", "seconds").points
    by_time = {point.at: point.value for point in points}
    assert [by_time[at] for at in (0, 24, 26, 98, 100, 200)] == pytest.approx(
        [0, 0, 20, 20, 60, 60]
    )
    assert points[-1].at == 200
    assert all(point.low <= point.value <= point.high for point in points)


def test_long_sessions_have_few_points_and_the_last_step():
    curve = figures([run(steps=1234, history=(moment(1234, 0.5, rank=1.0),))]).curve(
        "score", "step"
    )
    assert len(curve.points) <= POINTS + 2
    assert (curve.points[-1].at, curve.points[-1].value) == (1234, 100)


# ------------------------------------------------------------------------------ intervals


def test_with_one_run_there_is_no_interval():
    figure = figures([run(rank=0.5)]).figure("avg_at_k")
    assert (figure.low, figure.high) == (None, None)


def test_the_interval_of_one_run_a_task_is_that_of_scipy():
    rng = np.random.default_rng(3)
    values = rng.uniform(0, 1, 30).tolist()
    ours = figures([run(f"t{i:02}", rank=v) for i, v in enumerate(values)]).figure("human_rank")
    theirs = stats.bootstrap((values,), np.mean, method="percentile", rng=rng).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.high, abs=0.01)


def test_tasks_are_resampled_and_seeds_within_them():
    rng = np.random.default_rng(4)
    table = [list(rng.uniform(0, 1, size)) for size in (1, 2, 3, 5, 4)]
    sample = sample_of(tuple(f"t{i}" for i, seeds in enumerate(table) for _ in seeds))
    ours = sample.mean("x", [v for seeds in table for v in seeds])
    draws = []
    for _ in range(4000):
        chosen = [table[i] for i in rng.integers(0, len(table), len(table))]
        draws.append(fmean(fmean(rng.choice(seeds, len(seeds))) for seeds in chosen))
    low, high = np.quantile(draws, [0.025, 0.975])
    assert ours.value == pytest.approx(fmean(map(fmean, table)))
    assert ours.low == pytest.approx(low, abs=0.02)
    assert ours.high == pytest.approx(high, abs=0.02)


def test_the_interval_of_the_best_is_over_tasks_alone():
    rng = np.random.default_rng(6)
    best = rng.uniform(0.2, 1, 12).tolist()
    runs = [run(f"t{i:02}", seed=s, rank=v - s / 10) for i, v in enumerate(best) for s in range(3)]
    ours = figures(runs).figure("best_at_k")
    theirs = stats.bootstrap((best,), np.mean, method="percentile", rng=rng).confidence_interval
    assert ours.value == pytest.approx(100 * fmean(best))
    assert ours.low == pytest.approx(100 * theirs.low, abs=1.5)
    assert ours.high == pytest.approx(100 * theirs.high, abs=1.5)


def test_a_ratio_over_all_runs_and_its_interval():
    sample = sample_of(("A", "A", "B", "C"))
    ratio = sample.ratio("x", [1, 0, 3, 0], [2, 0, 4, 0], scale=100)
    assert ratio.value == pytest.approx(100 * 4 / 6)
    assert 50 <= ratio.low <= ratio.value <= ratio.high <= 75
    assert ratio.n == 6


# ---------------------------------------------------------------------------- comparisons


def of(ideator: str, ranks: dict[str, list[float | None]]) -> list[RunMeasures]:
    return [
        run(t, ideator, s, rank) for t, values in ranks.items() for s, rank in enumerate(values)
    ]


def test_a_paired_comparison_by_hand():
    first = of("a", {"t1": [0.5, 0.7], "t2": [0.2, 0.2], "t3": [0.9], "t4": [0.1], "only": [1.0]})
    second = of("b", {"t1": [0.4, 0.6], "t2": [0.5, 0.3], "t3": [0.9], "t4": [0.1, 0.9]})
    found = compare(first, second)
    # per task: +10, −20, 0, 0
    assert found.difference.value == pytest.approx((10 - 20 + 0 + 0) / 4)
    assert (found.tasks, found.pairs, found.difference.n) == (4, 6, 6)
    assert (found.only_first, found.only_second) == (1, 1)
    assert (found.wins, found.ties, found.losses) == (1, 2, 1)
    assert (found.test, found.p_value) == (
        "sign-flip",
        1.0,
    )  # ±10 ±20: all are as far from 0 or farther…
    assert found.effect == pytest.approx((1 - 2) / 3)


def test_few_tasks_are_tested_exactly():
    ranks = [0.5, 0.6, 0.7]
    first = of("a", {f"t{i}": [rank] for i, rank in enumerate(ranks)})
    second = of("b", {f"t{i}": [rank - (i + 1) / 10] for i, rank in enumerate(ranks)})
    found = compare(first, second)
    assert found.p_value == 2 / 8
    assert found.effect == 1
    assert (found.wins, found.losses) == (3, 0)
    back = compare(second, first)
    assert (back.p_value, back.effect, back.wins) == (2 / 8, -1, 0)


@given(st.lists(st.integers(-5, 5).map(lambda i: i / 10), min_size=2, max_size=8))
@settings(deadline=None, max_examples=25)
def test_the_exact_test_is_that_of_scipy(differences):
    first = [run(f"t{i}", "a", rank=0.5 + d) for i, d in enumerate(differences)]
    second = [run(f"t{i}", "b", rank=0.5) for i, _ in enumerate(differences)]
    ours = compare(first, second).p_value
    theirs = stats.permutation_test(
        (np.array(differences) * 10,), lambda x: abs(np.sum(np.round(x))),
        permutation_type="samples", n_resamples=np.inf, alternative="greater",
    )  # fmt: skip
    assert ours == pytest.approx(theirs.pvalue)


def test_many_tasks_are_tested_by_wilcoxon():
    rng = np.random.default_rng(5)
    first, second = rng.uniform(0.2, 1, (2, 30)) - np.array([[0.0], [0.2]])
    found = compare(
        [run(f"t{i:02}", "a", rank=v) for i, v in enumerate(first.tolist())],
        [run(f"t{i:02}", "b", rank=v) for i, v in enumerate(second.tolist())],
    )
    assert found.test == "wilcoxon"
    assert found.p_value == pytest.approx(stats.wilcoxon(first, second).pvalue)
    ranks = stats.rankdata(abs(first - second))
    assert found.effect == pytest.approx((ranks * np.sign(first - second)).sum() / ranks.sum())


def test_equal_contenders_differ_by_chance():
    runs = {f"t{i}": [0.1, 0.5] for i in range(20)}
    found = compare(of("a", runs), of("b", runs))
    assert (found.p_value, found.effect, found.difference.value, found.ties) == (1.0, 0.0, 0.0, 20)
    assert not found.significant


def test_the_least_difference_makes_ties():
    first, second = of("a", {"t1": [0.51], "t2": [0.9]}), of("b", {"t1": [0.50], "t2": [0.5]})
    found = compare(first, second, min_delta=2.0)
    assert (found.wins, found.ties, found.losses) == (1, 1, 0)


def test_without_a_common_cell_there_is_nothing_to_compare():
    found = compare(of("a", {"x": [0.5]}), of("b", {"y": [0.5, 0.6]}))
    assert (found.test, found.p_value, found.effect, found.difference.value) == ("none",) + (
        None,
    ) * 3
    assert (found.pairs, found.only_first, found.only_second) == (0, 1, 2)


def test_three_contenders_are_corrected_by_holm():
    tasks = range(10)
    runs = [
        *(run(f"t{i}", "a", rank=0.9) for i in tasks),
        *(run(f"t{i}", "b", rank=0.5 + i / 100) for i in tasks),
        *(run(f"t{i}", "c", rank=0.5 + (i % 3) / 100) for i in tasks),
    ]
    found = {(c.first.ideator, c.second.ideator): c for c in compare_all(runs)}
    assert set(found) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert found["a", "b"].p_value == 2 / 2**10
    assert found["a", "b"].p_holm == 3 * 2 / 2**10
    assert found["a", "b"].significant
    assert all(c.p_holm >= c.p_value for c in found.values())


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03, None]) == pytest.approx([0.03, 0.06, 0.06, None])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_earlier_contender_comes_first_in_whatever_order_runs_come():
    runs = [run(rank=0.5, ideator=name) for name in "cab"]
    pairs = [(c.first.ideator, c.second.ideator) for c in compare_all(runs)]
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]


def test_the_shift_of_categories_is_over_cells_that_both_have():
    first = [run("A", "a", rank=0.5, ideas=ideas(("training", True), ("ensembling", True)))]
    second = [
        run("A", "b", rank=0.5, ideas=ideas(("training", True))),
        run("Z", "b", rank=0.5, ideas=ideas(("ensembling", True))),
    ]
    shifts = {s.category: s.difference.value for s in compare(first, second).shifts}
    assert shifts["training"] == -50
    assert shifts["ensembling"] == 50
    assert shifts["model choice"] == 0


def test_a_cell_that_was_run_twice_is_matched_in_order():
    first = [run("A", "a", 0, 0.9, folder="x"), run("A", "a", 0, 0.1, folder="y")]
    second = [run("A", "b", 0, 0.5, folder="x")]
    found = compare(first, second)
    assert (found.pairs, found.only_first, found.difference.value) == (1, 1, pytest.approx(40))


# ----------------------------------------------------------------------- for any runs

RANKS = st.one_of(st.none(), st.integers(0, 20).map(lambda i: i / 20))


@st.composite
def some_runs(draw: st.DrawFn, ideator: str = "a") -> list[RunMeasures]:
    cells = draw(
        st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(0, 3)), min_size=1, unique=True)
    )
    kinds = st.sampled_from(["training", "ensembling", None])
    return [
        run(
            *(task, ideator, seed, draw(RANKS)),
            medal=draw(st.sampled_from(["gold", "silver", "bronze", None])),
            above_median=draw(st.booleans()),
            steps=draw(st.integers(0, 6)),
            history=tuple(
                moment(step, draw(st.integers(0, 5)), rank=step / 10)
                for step in range(draw(st.integers(0, 3)))
            ),
            ideas=ideas(*draw(st.lists(st.tuples(kinds, st.booleans()), max_size=3))),
        )
        for task, seed in cells
    ]


@given(some_runs(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=15)
def test_the_order_of_runs_does_not_matter(runs, random):
    shuffled = random.sample(runs, len(runs))
    assert figures_of(shuffled) == figures_of(runs)


@given(some_runs(), some_runs("b"))
@settings(deadline=None, max_examples=12)
def test_a_further_contender_changes_no_others_figures(runs, others):
    alone = figures_of(runs).contenders[0]
    assert figures_of([*others, *runs]).contenders[0] == alone


@given(some_runs())
@settings(deadline=None, max_examples=25)
def test_what_holds_for_all_figures(runs):
    found = figures(runs)
    assert found.figure("best_at_k").value >= found.figure("avg_at_k").value - 1e-9
    rates = [found.figure(f"{kind}_rate").value for kind in ("gold", "silver", "bronze")]
    assert sum(rates) == pytest.approx(found.figure("any_medal_rate").value)
    assert found.figure("any_medal_rate").value <= found.figure("valid_rate").value + 1e-9
    every = [*found.figures, *(f for c in found.categories for f in (c.share, c.improved))]
    for figure in every:
        assert figure.value is None or math.isfinite(figure.value)
        assert (figure.low is None) == (figure.high is None)
        assert figure.low is None or figure.low <= figure.high
    for curve in found.curves:
        assert [p.at for p in curve.points] == sorted(p.at for p in curve.points)


@given(some_runs(), some_runs("b"))
@settings(deadline=None, max_examples=15)
def test_turned_around_a_comparison_says_the_opposite(runs, others):
    one, other = compare(runs, others), compare(others, runs)
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert (one.pairs, one.only_first, one.p_value) == (
        other.pairs,
        other.only_second,
        other.p_value,
    )
    if one.difference.value is not None:
        assert one.difference.value == pytest.approx(-other.difference.value)
        assert one.effect == pytest.approx(-other.effect)


def test_figures_can_be_written_and_read_back():
    found = figures_of([*PAPER, *of("b", {"A": [0.5]})])
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
