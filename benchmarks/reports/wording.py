"""Numbers in words, the same in the terminal and on the page. `–` stands where there is none."""

from __future__ import annotations

from collections.abc import Mapping

from mle_ideator.benchmarks.leaderboards import MEDALS
from mle_ideator.benchmarks.measures.figures import Figure
from mle_ideator.benchmarks.measures.values import RunMeasures
from mle_ideator.benchmarks.reports.by_task import Kind, score_of
from mle_ideator.benchmarks.reports.values import ReportedRun

NONE = "–"
_PERCENT = ("_rate", "_share")
_OF_POINTS = ("avg_at_k", "best_at_k", "difference", "share", "improved", "shift")


def figure_text(figure: Figure) -> str:
    """The value, in the unit of its figure."""
    return NONE if figure.value is None else _in_unit(figure.name, figure.value)


def interval_text(figure: Figure) -> str:
    """`[55.0, 70.1]`, or nothing."""
    if figure.value is None or figure.low is None or figure.high is None:
        return ""
    return f"[{_in_unit(figure.name, figure.low)}, {_in_unit(figure.name, figure.high)}]"


def _in_unit(name: str, value: float) -> str:
    if name.endswith(_PERCENT) or name in _OF_POINTS:
        return f"{value:.1f}"
    if name == "human_rank":
        return f"{value:.3f}"
    if name == "cost_usd":
        return f"${value:.3f}" if value < 10 else f"${value:,.2f}"
    if name.endswith("tokens"):
        return count_text(value)
    if name in ("duration_s", "seconds_to_first_valid"):
        return seconds_text(value)
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def count_text(value: float) -> str:
    """`950`, `12.3k`, `4.56M`."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.0f}"


def seconds_text(seconds: float) -> str:
    """`4.1s`, `41s`, `12m05s`, `3h20m`."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"


def score_text(value: float | None) -> str:
    return NONE if value is None else f"{value:.5g}"


def medals_text(medals: Mapping[str, int]) -> str:
    """`1 gold, 2 bronze`; `none`, or `–` without a leaderboard."""
    if not medals:
        return NONE
    return ", ".join(f"{medals[m]} {m}" for m in MEDALS if medals.get(m)) or "none"


def p_text(p: float | None) -> str:
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def counted(number: int, what: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def outcome_text(run: RunMeasures) -> str:
    """Why it ended, in a few words."""
    match run.outcome:
        case None:
            return "has not ended"
        case "finished" | "interrupted" | "failed":
            return run.outcome
        case limit:
            return f"limit on {limit}"


def state_text(run: ReportedRun) -> str:
    """`valid` or `invalid`, or what kept it from coming to that."""
    if run.measures.valid:
        return "valid"
    return {"done": "invalid", "unended": "not ended"}.get(run.state, run.state)


def run_score(run: RunMeasures, kind: Kind) -> str:
    """A run's final score of a kind."""
    score = score_of(run.scores, kind)
    return score_text(score.value if score else None)
