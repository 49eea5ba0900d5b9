"""How a proxy is used in training."""

from __future__ import annotations

from mle_ideator.errors import UsageError
from mle_ideator.types import Value


class ProxyConfig(Value, frozen=True, kw_only=True):
    """Without a file all ideas are executed."""

    file: str | None = None
    """A proxy, as `Proxy.save` writes it."""
    false_skip: float = 0.02
    """What is skipped so that at most this share of all ideas that improve is lost, as measured on
    tasks that the proxy had not seen. Those are what training is about: keep it small."""
    threshold: float | None = None
    """Or: skip what is predicted to improve with less than this."""
    audit: float = 0.1
    """Share of the skipped ideas that are executed all the same; 0 measures nothing."""
    weighted: bool = True
    """Do audited ideas count 1 / `audit` times? Then the mean reward has no bias, and more
    variance; else they count as they are, and what is lost is measured."""

    def __post_init__(self) -> None:
        for name in ("false_skip", "audit", "threshold"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise UsageError(f"proxy {name!r} must lie between 0 and 1.")
        if self.weighted and self.audit == 0:
            raise UsageError(
                "proxy: without an audit nothing can be weighted; set audit above 0, or weighted "
                "to false and live with the bias."
            )
