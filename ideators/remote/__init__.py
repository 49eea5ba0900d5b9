"""An ideator that `mle-ideator serve` hosts elsewhere: `http://host:8100`, `https://host/prefix`.

`ideator` asks it, `replies` reads what comes back, `breaker` leaves a server alone that is gone.
"""

from mle_ideator.ideators.remote.ideator import RemoteIdeator, RemoteOptions, over_http, over_https

__all__ = ["RemoteIdeator", "RemoteOptions", "over_http", "over_https"]
