"""What tokens cost: one dated data file, and a person's own beside it."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import msgspec
import yaml

from mle_ideator.errors import UsageError
from mle_ideator.plain_text import joined_lines
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


_MOST_TOKENS = 2**53
"""Numbers that are larger than this are no counts, and no JSON reader keeps them whole."""

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
    input_tokens: object,
    output_tokens: object,
    cached: object = 0,
    written: object = 0,
    reasoning: object = 0,
) -> Usage:
    """The usage of one call, as a provider tells it: anything may come where a number should.

    `input_tokens` holds the cached and the written ones too. What is not told, or no count, is
    `None`; so are parts that are larger than their whole, and then the cost is unknown, as it is
    without the number of tokens. Without the number of cached ones none counts as cached.
    """
    taken_in, output = count_of(input_tokens), count_of(output_tokens)
    read, new, thought = count_of(cached), count_of(written), count_of(reasoning)
    fresh, said = _rest(taken_in, read, new), _rest(output, thought)
    cost = 0.0 if price == FREE else None
    if price is not None and output is not None and fresh is not None and said is not None:
        cost = price.cost(fresh=fresh, cached=read or 0, written=new or 0, output=output)
    return Usage(
        calls=1,
        input_tokens=taken_in,
        cached_tokens=None if fresh is None else read,
        output_tokens=output,
        reasoning_tokens=None if said is None else thought,
        cost_usd=cost,
        at_most_usd=cost,
    )


def count_of(told: object) -> int | None:
    """A provider's number of tokens; `None` for what is no count."""
    return told if type(told) is int and 0 <= told < _MOST_TOKENS else None


def _rest(whole: int | None, *parts: int | None) -> int | None:
    """What is in none of the parts; `None` if that is not known, or they are larger than all."""
    rest = None if whole is None else whole - sum(part or 0 for part in parts)
    return None if rest is None or rest < 0 else rest


def _own() -> PriceList:
    named = os.environ.get(OVERRIDE)
    return _read(Path(named)) if named else PriceList("", {})


@cache
def _read(file: Path) -> PriceList:
    try:
        return msgspec.convert(yaml.safe_load(file.read_bytes()), PriceList, strict=False)
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
        reason = joined_lines(error)
        raise UsageError(f"prices in {file} can not be read: {reason}.") from error
