"""What watches a run, so that one that collapses is noticed: bounds on the metrics of its steps.

A bound is held against the median over the last steps, so that one odd step is no alarm. An alarm
is told once, and again if it returns after it was over. Nothing is stopped here: whoever trains
decides what to do about an alarm that `stops`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from statistics import median
from typing import Any, Literal, NamedTuple

import msgspec

from mle_ideator.errors import UsageError
from mle_ideator.rl.training.guard_texts import ADVICE
from mle_ideator.types import Value

Side = Literal["below", "above"]

_ALWAYS_FINITE = ("loss", "grad_norm", "entropy", "kl")
"""Where one of these is no number, the weights may be none, too: told at once."""
_OF_ANSWERS = ("masked_rate", "entropy", "kl", "idea_tokens", "cut_rate")
"""What a step has to tell even if none of its answers could be executed."""


class Watch(Value, frozen=True, kw_only=True):
    """The bounds of one metric; `None`: no bound. `…_share` is of the median of the first steps."""

    warn_below: float | None = None
    stop_below: float | None = None
    warn_above: float | None = None
    stop_above: float | None = None
    warn_below_share: float | None = None
    stop_below_share: float | None = None
    window: int | None = None
    """Steps that the median is taken over; without it, the guards'."""

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise UsageError("the window of a guard must be at least 1 step.")
        for better, worse in (("warn_below", "stop_below"), ("stop_above", "warn_above")):
            low, high = getattr(self, worse), getattr(self, better)
            if low is not None and high is not None and low > high:
                raise UsageError(f"guard: {worse} is {low:g} and {better} {high:g}: swap them.")


class GuardConfig(Value, frozen=True, kw_only=True):
    """What is watched. A metric that a trainer does not report is not. The defaults are our choice;
    they stop only runs that can not recover by themselves."""

    window: int = 10
    """Steps that medians are taken over; before that many, no bound is held."""
    entropy: Watch = Watch(warn_below=0.1, stop_below=0.01, warn_below_share=0.2)
    """Mean entropy of a token, in nats. A run whose entropy fell to 0.07 was seen to earn less from
    then on; at 0.01 all answers are the same, and no group has a variance to learn from."""
    kl: Watch = Watch(warn_above=1.0, stop_above=10.0)
    """Mean distance of a token from the reference, in nats. Ideas stay literate up to about 1; at
    10 hardly a token is one that the reference would have written."""
    idea_tokens: Watch = Watch(warn_below=12.0, warn_below_share=0.4)
    """Mean length of an answer. The tags alone take about 12 tokens of a usual vocabulary."""
    cut_rate: Watch = Watch(warn_above=0.3, stop_above=0.95)
    """Share of answers at the limit of tokens: they are invalid, whatever they say."""
    diversity: Watch = Watch(warn_below=0.25, stop_below=0.13)
    """Different ideas to a help state, as a share of its answers: 0.25 is two of eight. One of
    eight, 0.125, leaves nothing to learn."""
    distinct_operations: Watch = Watch(warn_below=2.0, warn_below_share=0.3)
    """Operations that the ideas of a step name. A policy that has learnt only one does not read."""
    best_of_group: Watch = Watch(warn_below=0.05)
    """Mean of each group's best reward. With none that improves there is only form to learn."""
    noop_rate: Watch = Watch(warn_above=0.6, stop_above=0.95)
    """Share without an idea, or after which the score is the same to the last digit. Some are
    normal (what was asked for is there already); to do nothing is safe: it earns 0, not −1."""
    invalid_rate: Watch = Watch(warn_above=0.5)
    """Share that is no well-formed idea. A model without warm-up begins near 1 and may learn."""
    zero_variance: Watch = Watch(warn_above=0.8, stop_above=0.99, window=30)
    """Share of groups whose rewards are all the same: their executions taught nothing."""
    masked_rate: Watch = Watch(warn_above=0.2, stop_above=0.99, window=3)
    """Share without a reward as the runtime broke. All of them: sandbox or cluster is down."""
    proxy_bias: Watch = Watch(warn_above=0.05)
    """By how much more often audited ideas improved than the proxy reward predicted."""

    def __post_init__(self) -> None:
        if self.window < 1:
            raise UsageError("the window of the guards must be at least 1 step.")

    @property
    def watches(self) -> dict[str, Watch]:
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "window"}


class Alarm(Value, frozen=True, kw_only=True):
    """A metric that is beyond a bound."""

    step: int
    name: str
    value: float
    """The median over the window; the value itself where it is no number."""
    bound: float | None
    """`None` where it is no number."""
    text: str
    """One line: what is wrong, what it means, what to do."""
    stops: bool


class _Hit(NamedTuple):
    """The worst bound that a value is beyond."""

    bound: float
    side: Side
    stops: bool


class _Seen(msgspec.Struct):
    """What is remembered of one metric."""

    recent: list[float] = []
    first: list[float] = []
    level: int = 0
    """What was told in this episode: 0 nothing, 1 a warning, 2 a stop."""
    calm: int = 0
    """Looks since the median was last beyond a bound."""


class Guards:
    """Looks at each step once, in order."""

    def __init__(self, config: GuardConfig | None = None) -> None:
        self.config = config or GuardConfig()
        self._seen = {name: _Seen() for name in (*self.config.watches, *_ALWAYS_FINITE)}

    def look(self, step: int, metrics: Mapping[str, float]) -> list[Alarm]:
        """The alarms that begin, or get worse, at this step."""
        alarms = list(self._not_finite(step, metrics))
        executed = metrics.get("masked_rate", 0.0) < 1.0
        for name, watch in self.config.watches.items():
            value = metrics.get(name)
            if value is None or not isfinite(value) or not (executed or name in _OF_ANSWERS):
                continue
            if alarm := self._looked(step, name, value, watch):
                alarms.append(alarm)
        return alarms

    def state_dict(self) -> dict[str, Any]:
        """Plain values: what has to be remembered for the next steps to be told alike."""
        state: dict[str, Any] = msgspec.to_builtins(self._seen)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; what is watched now and was not then begins anew.

        Raises `UsageError` if it is none.
        """
        try:
            seen = msgspec.convert(dict(state), dict[str, _Seen])
        except msgspec.ValidationError as error:
            raise UsageError(f"this is no state of guards: {error}.") from error
        self._seen.update({name: seen[name] for name in self._seen if name in seen})

    # ------------------------------------------------------------------------------------------

    def _not_finite(self, step: int, metrics: Mapping[str, float]) -> Iterator[Alarm]:
        for name in _ALWAYS_FINITE:
            value = metrics.get(name)
            if value is None:
                continue
            seen = self._seen[name]
            if isfinite(value):
                seen.level = 0 if seen.level == 3 else seen.level
            elif seen.level < 3:
                seen.level = 3
                text = f"{name} is {value}: {ADVICE['not finite']}"
                yield Alarm(step=step, name=name, value=value, bound=None, text=text, stops=True)

    def _looked(self, step: int, name: str, value: float, watch: Watch) -> Alarm | None:
        seen, window = self._seen[name], watch.window or self.config.window
        seen.recent = [*seen.recent, value][-window:]
        if len(seen.first) < window:
            seen.first = [*seen.first, value]
        if len(seen.recent) < window:
            return None
        middle = median(seen.recent)
        hit = _worst(middle, watch, median(seen.first))
        if hit is None:
            seen.calm += 1
            seen.level = 0 if seen.calm >= window else seen.level
            return None
        seen.calm = 0
        level = 1 + hit.stops
        if level <= seen.level:
            return None
        seen.level = level
        text = _told(name, middle, hit, window)
        return Alarm(
            step=step, name=name, value=middle, bound=hit.bound, text=text, stops=hit.stops
        )


def _worst(value: float, watch: Watch, first: float) -> _Hit | None:
    """A bound to stop at comes before one to warn at."""
    for stops, word in ((True, "stop"), (False, "warn")):
        share = getattr(watch, f"{word}_below_share")
        lows = (getattr(watch, f"{word}_below"), None if share is None else share * first)
        low = max((bound for bound in lows if bound is not None), default=None)
        high = getattr(watch, f"{word}_above")
        if low is not None and value < low:
            return _Hit(low, "below", stops)
        if high is not None and value > high:
            return _Hit(high, "above", stops)
    return None


def _told(name: str, value: float, hit: _Hit, window: int) -> str:
    steps = "the last step" if window == 1 else f"the last {window} steps"
    return (
        f"{name} is {value:.3g} (median of {steps}), {hit.side} {hit.bound:.3g}: "
        f"{ADVICE[f'{name} {hit.side}']}"
    )
