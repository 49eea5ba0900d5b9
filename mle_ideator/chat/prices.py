"""What tokens cost: one dated data file, and a person's own beside it."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import msgspec
import yaml

from mle_ideator.errors import UsageError
from mle_ideator.types import Usage, Value

OVERRIDE = "MLE_IDEATOR_PRICES"
"""Environment variable that names a file of the same form; its entries win."""

_EDITION = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|latest|preview)$")
"""What providers add to a model's name without changing its price."""


class Price(Value, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Input read from the provider's cache; without it as `input`."""
    written: float | None = None
    """Input written to the cache; without it as `input`."""
    long_over: int | None = None
    """Calls with more input tokens than this cost more, by the two factors below."""
    long_input: float = 1.0
    long_output: float = 1.0

    def __post_init__(self) -> None:
        rates = (self.input, self.output, self.cached or 0.0, self.written or 0.0)
        if not all(0 <= rate < 1e6 for rate in rates):
            raise ValueError("a price must be 0 or more")

    def cost(self, *, fresh: int, cached: int = 0, written: int = 0, output: int) -> float:
        """What so many tokens cost. The three kinds of input tokens are counted apart."""
        rate = self.input
        taken_in = (
            fresh * rate
            + cached * (rate if self.cached is None else self.cached)
            + written * (rate if self.written is None else self.written)
        )
        long = self.long_over is not None and fresh + cached + written > self.long_over
        factors = (self.long_input, self.long_output) if long else (1.0, 1.0)
        return (taken_in * factors[0] + output * self.output * factors[1]) / 1e6

    def at_most(self, input_tokens: int, output_tokens: int) -> float:
        """An upper bound, whatever the cache does."""
        all_written = self.cost(fresh=0, written=input_tokens, output=output_tokens)
        return max(all_written, self.cost(fresh=input_tokens, output=output_tokens))


FREE = Price(input=0.0, output=0.0)
"""For models on machines of one's own."""


class PriceList(Value, frozen=True):
    """The file: when its prices were read, and each model's price by its name."""

    as_of: str
    models: dict[str, Price]


def price_of(model: str) -> Price | None:
    """The price listed for a model, or for the model that this is a dated edition of.

    Nothing is guessed from similar names: `gpt-5-pro` costs ten times as much as `gpt-5`.
    """
    prices = {**_read(Path(__file__).with_name("prices.yaml")).models, **_own().models}
    return prices.get(model) or prices.get(_EDITION.sub("", model))


def usage_of(
    price: Price | None,
    *,
    input_tokens: int | None,
    output_tokens: int | None,
    cached: int | None = 0,
    written: int = 0,
    reasoning: int | None = 0,
) -> Usage:
    """The usage of one call. `input_tokens` holds the cached and the written ones too.

    What a provider does not tell is `None`. Without the number of tokens the cost is unknown, too;
    without the number of cached ones none counts as cached.
    """
    cost = 0.0 if price == FREE else None
    if price is not None and input_tokens is not None and output_tokens is not None:
        read = cached or 0
        cost = price.cost(
            fresh=max(0, input_tokens - read - written),
            cached=read,
            written=written,
            output=output_tokens,
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
