"""What tokens cost: one dated data file, and a person's own beside it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import msgspec
import yaml

from mle_ideator.errors import UsageError
from mle_ideator.types import Usage, Value

OVERRIDE = "MLE_IDEATOR_PRICES"
"""Environment variable that names a file of the same form; its entries win."""


class Price(Value, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Input read from the provider's cache; without it as `input`."""
    written: float | None = None
    """Input written to the cache; without it as `input`."""

    def cost(self, *, fresh: int, cached: int = 0, written: int = 0, output: int) -> float:
        """What so many tokens cost. The three kinds of input tokens are counted apart."""
        rate = self.input
        dollars = (
            fresh * rate
            + cached * (rate if self.cached is None else self.cached)
            + written * (rate if self.written is None else self.written)
            + output * self.output
        )
        return dollars / 1e6

    def at_most(self, input_tokens: int, output_tokens: int) -> float:
        """An upper bound, whatever the cache does."""
        rate = max(self.input, self.written or 0.0)
        return (input_tokens * rate + output_tokens * self.output) / 1e6


FREE = Price(input=0.0, output=0.0)


class PriceList(Value, frozen=True):
    """The file: when its prices were read, and each model's price by the start of its name."""

    as_of: str
    models: dict[str, Price]


def price_of(model: str) -> Price | None:
    """The price under the longest listed name that the model's name starts with."""
    prices = {**_read(Path(__file__).with_name("prices.yaml")).models, **_own().models}
    fitting = [name for name in prices if model == name or model.startswith(f"{name}-")]
    return prices[max(fitting, key=len)] if fitting else None


def usage_of(
    price: Price | None,
    *,
    input_tokens: int | None,
    output_tokens: int | None,
    cached: int = 0,
    written: int = 0,
    reasoning: int | None = 0,
) -> Usage:
    """The usage of one call. `input_tokens` holds the cached and the written ones too.

    What a provider does not tell is `None`; the cost then is unknown, too.
    """
    known = price is not None and input_tokens is not None and output_tokens is not None
    cost = (
        price.cost(
            fresh=max(0, input_tokens - cached - written),
            cached=cached,
            written=written,
            output=output_tokens,
        )
        if known and price and input_tokens is not None and output_tokens is not None
        else None
    )
    return Usage(
        calls=1,
        input_tokens=input_tokens,
        cached_tokens=None if input_tokens is None else cached,
        output_tokens=output_tokens,
        reasoning_tokens=None if output_tokens is None else reasoning,
        cost_usd=cost,
        at_most_usd=cost,
    )


def _own() -> PriceList:
    named = os.environ.get(OVERRIDE)
    return _read(Path(named)) if named else PriceList("", {})


@cache
def _read(file: Path) -> PriceList:
    try:
        return msgspec.convert(yaml.safe_load(file.read_bytes()), PriceList, strict=False)
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"prices in {file} can not be read: {reason}.") from error
