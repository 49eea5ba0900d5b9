"""One monotonic clock; time left is never negative; a reserve is kept for the end."""

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.limits import Clock, Limits, seconds


class Hand:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_is_left_counts_down_to_zero_and_no_further():
    hand = Hand()
    clock = Clock(Limits(steps=5, help_requests=2, time_s=100, step_time_s=60), hand)
    assert clock.remaining(0, 0).seconds == 90  # a tenth is kept back
    assert clock.remaining(0, 0).step_seconds == 60
    hand.now += 70
    left = clock.remaining(3, 2)
    assert (left.steps, left.help_requests, left.seconds, left.step_seconds) == (2, 0, 20, 20)
    hand.now += 1000
    assert clock.remaining(3, 2).seconds == 0
    assert clock.left_s == 0


def test_the_reserve_grows_with_the_slowest_solution_up_to_half():
    clock = Clock(Limits(time_s=100), Hand())
    clock.solution_took(20)
    clock.solution_took(2)
    assert clock.reserve_s == 30
    clock.solution_took(1000)
    assert clock.reserve_s == 50


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 90), ("90s", 90), ("15m", 900), ("8h", 28800), ("1h30m", 5400), (" 1.5 m ", 90)],
)
def test_durations(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "5x", "-3", "1h30", "h"])
def test_no_durations(text):
    with pytest.raises(UsageError, match="is no duration"):
        seconds(text)


@pytest.mark.parametrize(
    "limits",
    [
        {"steps": 0},
        {"time_s": -1},
        {"time_s": float("nan")},
        {"help_requests": -1},
        {"cost_usd": 0.0},
        {"cost_usd": float("inf")},
    ],
)
def test_senseless_limits_are_refused(limits):
    with pytest.raises(UsageError, match="limit"):
        Limits(**limits)
