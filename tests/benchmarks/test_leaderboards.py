"""What a score is worth: medals, the median, HumanRank, as MLE-bench and MLE-Dojo count them."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_ideator.benchmarks.leaderboards import (
    MEDALS,
    Leaderboard,
    Medal,
    direction_of,
    medal_places,
    read_scores,
)
from mle_ideator.types import Score

TEN = (0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
BOARD = Leaderboard(scores=TEN, higher_is_better=True)
STRICT = Leaderboard(scores=TEN, higher_is_better=True, rule="strict")
MIRRORED = Leaderboard(scores=tuple(-score for score in TEN), higher_is_better=False)


@pytest.mark.parametrize(
    ("entries", "places"),
    [
        (1, (1, 1, 1)),
        (2, (1, 1, 1)),
        (5, (1, 1, 2)),
        (10, (1, 2, 4)),
        (99, (9, 19, 39)),
        (100, (10, 20, 40)),
        (249, (10, 49, 99)),
        (250, (10, 50, 100)),
        (500, (11, 50, 100)),
        (999, (11, 50, 100)),
        (1000, (12, 50, 100)),
        (1500, (13, 75, 150)),
        (13610, (37, 680, 1361)),
    ],
)
def test_last_places_of_medals(entries: int, places: tuple[int, int, int]):
    assert tuple(medal_places(entries)[medal] for medal in MEDALS) == places


def test_places_are_as_mle_bench_computes_them_with_floats():
    for entries in (*range(1, 3000), 13610, 49_999):
        assert tuple(medal_places(entries).values()) == with_floats(entries), entries


def with_floats(entries: int) -> tuple[int, int, int]:
    """mle-bench's `get_thresholds`, whose products are truncated."""
    tenth, fifth, two_fifths = int(entries * 0.1), int(entries * 0.2), int(entries * 0.4)
    if entries < 100:
        return max(1, tenth), max(1, fifth), max(1, two_fifths)
    if entries < 250:
        return 10, max(1, fifth), max(1, two_fifths)
    gold = 10 + int(entries * 0.002)
    return (gold, 50, 100) if entries < 1000 else (gold, int(entries * 0.05), tenth)


@pytest.mark.parametrize(
    ("score", "medal", "above"),
    [
        (0.95, "gold", True),
        (0.9, "gold", True),
        (0.8999951, "gold", True),  # rounded to five decimals it is .9
        (0.899, "bronze", True),  # gold and silver both end at .9
        (0.85, "bronze", True),
        (0.8, "bronze", True),
        (0.799, None, True),
        (0.75, None, True),
        (0.65, None, True),  # by float error only: (.7 + .6) / 2 is a little less
        (0.64, None, False),
        (0.0, None, False),
    ],
)
def test_ten_entries(score: float, medal: Medal | None, above: bool):
    assert BOARD.medal(Score(score, True)) == medal
    assert BOARD.above_median(Score(score, True)) is above
    mirrored = Score(-score, False)
    assert MIRRORED.medal(mirrored) == medal
    assert MIRRORED.above_median(mirrored) is above


def test_strictly_nothing_is_rounded_and_the_median_is_exact():
    assert STRICT.median == 0.65
    assert not STRICT.above_median(Score(0.65, True))
    assert STRICT.above_median(Score(0.6500000001, True))
    assert STRICT.medal(Score(0.9, True)) == "gold"
    assert STRICT.medal(Score(0.8999951, True)) == "bronze"


def test_the_median_is_pandas_own():
    for scores in ((1.0,), (3.0, 1.0), TEN, TEN[:7], (0.3, 0.2, 0.1, 0.1)):
        board = Leaderboard(scores=scores, higher_is_better=True)
        assert board.median == pd.Series(scores).median()


@pytest.mark.parametrize(
    ("score", "rank"), [(0.95, 1.0), (0.9, 1.0), (0.85, 0.8), (0.2, 0.1), (0.1, 0.0)]
)
def test_human_rank(score: float, rank: float):
    assert BOARD.human_rank(Score(score, True)) == rank
    assert MIRRORED.human_rank(Score(-score, False)) == rank


@pytest.mark.parametrize("score", [None, Score(math.nan, True), Score(math.inf, True)])
def test_no_score_earns_nothing(score: Score | None):
    for board in (BOARD, STRICT):
        assert board.medal(score) is None
        assert not board.above_median(score)
        assert board.human_rank(score) == 0.0


def test_a_whole_number_is_a_score():
    assert STRICT.medal(Score(1, True)) == "gold"


@pytest.mark.parametrize("scores", [(), (0.1, 0.2), (math.nan,), (math.inf, 1.0)])
def test_what_is_no_leaderboard(scores: tuple[float, ...]):
    with pytest.raises(ValueError, match="best first"):
        Leaderboard(scores=scores, higher_is_better=True)


numbers = st.decimals(-1000, 1000, places=5, allow_nan=False).map(float)
boards = st.lists(numbers, min_size=1, max_size=300)


@settings(deadline=None)
@given(boards, numbers, st.booleans(), st.sampled_from(["mlebench", "strict"]))
def test_on_any_board(entries: list[float], value: float, higher: bool, rule: str):
    board = Leaderboard(
        scores=tuple(sorted(entries, reverse=higher)), higher_is_better=higher, rule=rule
    )
    mirrored = Leaderboard(
        scores=tuple(-entry for entry in board.scores), higher_is_better=not higher, rule=rule
    )
    score, mirror = Score(value, higher), Score(-value, not higher)
    assert mirrored.medal(mirror) == board.medal(score)
    assert mirrored.above_median(mirror) == board.above_median(score)
    assert mirrored.human_rank(mirror) == board.human_rank(score)
    assert 0 <= board.human_rank(score) <= 1
    best = Score(board.scores[0], higher)
    assert board.medal(best) == "gold"
    assert board.human_rank(best) == 1
    better = Score(value + (1 if higher else -1), higher)
    assert worth(board, better) >= worth(board, score)
    if not best.better_than(score):
        assert board.medal(score) == "gold"


def worth(board: Leaderboard, score: Score) -> tuple[int, bool, float]:
    medal = board.medal(score)
    rank = 0 if medal is None else 3 - MEDALS.index(medal)
    return rank, board.above_median(score), board.human_rank(score)


@settings(deadline=None)
@given(boards)
def test_gold_is_not_easier_than_silver_nor_silver_than_bronze(entries: list[float]):
    board = Leaderboard(scores=tuple(sorted(entries)), higher_is_better=False)
    assert board.threshold("gold") <= board.threshold("silver") <= board.threshold("bronze")


def test_reading_a_competitions_own_leaderboard(tmp_path: Path):
    file = tmp_path / "leaderboard.csv"
    file.write_text("teamId,score\n1,0.9\n2,0.9\n3,\n4,nan\n5,0.5\n")
    assert read_scores(file) == (0.9, 0.9, 0.5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:e0\nsize 3\n", "git lfs pull"),
        ("rank,points\n1,0.9\n", "no column `score`"),
        ("", "no column `score`"),
        ("score\n\n", "no score"),
        ("score\nbest\n", "could not convert"),
    ],
)
def test_a_file_that_is_no_leaderboard(tmp_path: Path, text: str, why: str):
    file = tmp_path / "leaderboard.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=why):
        read_scores(file)


def test_the_direction_is_told_by_the_whole_order():
    assert direction_of(TEN) is True
    assert direction_of(reversed(TEN)) is False
    # The first two rows alone, equal or out of order, would tell nothing or the contrary.
    falling = [0.8, 0.9, *(0.7 - place / 1000 for place in range(100))]
    assert direction_of(falling) is True
    assert direction_of([0.5, 0.5]) is None
    assert direction_of([0.5]) is None
    assert direction_of([0.1, 0.9, 0.2, 0.8]) is None
