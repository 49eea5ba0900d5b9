"""What is counted, in the form that Prometheus reads."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from mle_ideator.ideators.serving.admission import Places
from mle_ideator.types import Usage

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Counts requests by what came of them, how long they took, and what models used."""

    def __init__(self, places: Places) -> None:
        self._all = all_ = CollectorRegistry()
        self._requests = Counter(
            "mle_ideator_requests", "Requests by outcome.", ["route", "outcome"], registry=all_
        )
        self._seconds = Histogram(
            "mle_ideator_answer_seconds",
            "From the request's headers to its answer, waiting included; what was answered only.",
            ["route"],
            buckets=_SECONDS,
            registry=all_,
        )
        self._tokens = Counter(
            "mle_ideator_tokens",
            "Tokens as far as they are known; cached are part of input, reasoning of output.",
            ["kind"],
            registry=all_,
        )
        self._cost = Counter(
            "mle_ideator_cost_usd", "What answers cost, as far as it is known.", registry=all_
        )
        self._unknown = Counter(
            "mle_ideator_unknown_usage", "Answers whose tokens are not known.", registry=all_
        )
        in_flight = Gauge("mle_ideator_in_flight", "Requests at work.", registry=all_)
        in_flight.set_function(lambda: places.at_work)
        queued = Gauge("mle_ideator_queued", "Requests that wait for a turn.", registry=all_)
        queued.set_function(lambda: places.waiting)

    def count(self, route: str, outcome: str, answered_after_s: float | None = None) -> None:
        self._requests.labels(route, outcome).inc()
        if answered_after_s is not None:
            self._seconds.labels(route).observe(answered_after_s)

    def spend(self, usage: Usage) -> None:
        if usage.tokens is None:
            self._unknown.inc()
        known = usage.known
        for kind in ("input", "cached", "output", "reasoning"):
            self._tokens.labels(kind).inc(getattr(known, f"{kind}_tokens"))
        self._cost.inc(known.cost_usd or 0.0)

    def response(self) -> Response:
        return Response(generate_latest(self._all), media_type=CONTENT_TYPE_PLAIN_0_0_4)
