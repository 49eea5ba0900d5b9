"""Prices: the file that is shipped, a person's own, and the arithmetic."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from mle_ideator.chat import prices
from mle_ideator.chat.prices import FREE, OVERRIDE, Price, price_of, usage_of
from mle_ideator.errors import UsageError
from mle_ideator.types import Usage

FILE = yaml.safe_load(Path(prices.__file__).with_name("prices.yaml").read_text())


def test_the_file_is_dated():
    assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", FILE["as_of"])


@pytest.mark.parametrize("model", FILE["models"])
def test_entries_are_plausible(model):
    price = price_of(model)
    assert price is not None
    assert 0 < price.input < price.output < 1000
    assert price.cached is None or price.cached < price.input
    assert price.written is None or price.input < price.written < 2 * price.input
    assert (price.long_over is None) == (price.long_input == 1.0)


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("gpt-5-2025-08-07", "gpt-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("gpt-5-pro", None),
        ("gpt-5-codex", None),
        ("claude-opus-4-99", None),
        ("my-finetune", None),
        ("", None),
    ],
)
def test_editions_have_the_price_of_their_model_and_others_none(model, listed):
    assert price_of(model) == (price_of(listed) if listed else None)


def test_cost_to_the_cent():
    """10 M fresh, 20 M cached, 4 M written, 2 M out."""
    price = Price(input=3.0, cached=0.3, written=3.75, output=15.0)
    dollars = price.cost(fresh=10_000_000, cached=20_000_000, written=4_000_000, output=2_000_000)
    assert round(dollars, 2) == 30.00 + 6.00 + 15.00 + 30.00


def test_without_prices_for_the_cache_input_is_input():
    price = Price(input=2.0, output=8.0)
    assert price.cost(fresh=0, cached=500_000, written=500_000, output=0) == pytest.approx(2.0)


def test_long_calls_cost_more():
    price = Price(input=2.0, cached=0.2, output=10.0, long_over=1000, long_input=2, long_output=1.5)
    assert price.cost(fresh=1000, output=100) == pytest.approx(0.003)
    assert price.cost(fresh=1, cached=1000, output=100) == pytest.approx(
        (2 * (1 * 2.0 + 1000 * 0.2) + 1.5 * 100 * 10.0) / 1e6
    )


def test_the_bound_holds_whatever_the_cache_does():
    price = Price(input=3.0, cached=0.3, written=3.75, output=15.0)
    bound = price.at_most(1000, 100)
    for cached, written in ((0, 0), (1000, 0), (0, 1000), (300, 300)):
        fresh = 1000 - cached - written
        assert price.cost(fresh=fresh, cached=cached, written=written, output=100) <= bound
    assert bound == pytest.approx((1000 * 3.75 + 100 * 15) / 1e6)


def test_usage_of_a_call():
    price = Price(input=3.0, cached=0.3, written=3.75, output=15.0)
    usage = usage_of(
        price, input_tokens=1000, output_tokens=100, cached=600, written=300, reasoning=50
    )
    assert usage.cost_usd == pytest.approx((100 * 3 + 600 * 0.3 + 300 * 3.75 + 100 * 15) / 1e6)
    assert usage.at_most_usd == usage.cost_usd
    assert (usage.input_tokens, usage.cached_tokens, usage.reasoning_tokens) == (1000, 600, 50)


@pytest.mark.parametrize(("inside", "out"), [(None, 10), (10, None), (None, None)])
def test_unknown_tokens_make_an_unknown_cost(inside, out):
    usage = usage_of(Price(input=1.0, output=1.0), input_tokens=inside, output_tokens=out)
    assert usage.cost_usd is None
    assert usage.at_most_usd is None
    assert (usage.input_tokens, usage.output_tokens) == (inside, out)


def test_what_is_free_costs_nothing_even_if_nothing_is_told():
    usage = usage_of(FREE, input_tokens=None, output_tokens=None)
    assert (usage.cost_usd, usage.input_tokens) == (0.0, None)


def test_unknown_cached_tokens_cost_the_full_price():
    usage = usage_of(Price(input=1.0, output=1.0), input_tokens=10, output_tokens=0, cached=None)
    assert usage.cached_tokens is None
    assert usage.cost_usd == pytest.approx(10 / 1e6)


def test_no_price_is_an_unknown_cost():
    assert usage_of(None, input_tokens=10, output_tokens=10).cost_usd is None


ODD = ["3", 4.5, 3.0, -1, float("nan"), True, [3], {}, 10**30]
PRICE = Price(input=1.0, cached=0.1, written=2.0, output=10.0)


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_count_is_unknown(odd):
    usage = usage_of(PRICE, input_tokens=odd, output_tokens=5, cached=odd)
    assert (usage.input_tokens, usage.cached_tokens, usage.cost_usd) == (None, None, None)
    usage = usage_of(PRICE, input_tokens=5, output_tokens=odd, reasoning=odd)
    assert (usage.output_tokens, usage.reasoning_tokens, usage.cost_usd) == (None, None, None)
    usage = usage_of(PRICE, input_tokens=10, output_tokens=0, cached=odd, written=odd)
    assert usage.cached_tokens is None
    assert usage.cost_usd == pytest.approx(10 / 1e6)
    assert msgspec.json.decode(msgspec.json.encode(usage), type=Usage) == usage


@pytest.mark.parametrize(("cached", "written"), [(11, 0), (0, 11), (6, 6)])
def test_parts_that_are_larger_than_their_whole(cached, written):
    """It is not known what such numbers mean: the bound counts."""
    usage = usage_of(PRICE, input_tokens=10, output_tokens=1, cached=cached, written=written)
    assert (usage.input_tokens, usage.cached_tokens) == (10, None)
    assert (usage.cost_usd, usage.at_most_usd) == (None, None)
    usage = usage_of(PRICE, input_tokens=1, output_tokens=1, reasoning=2)
    assert (usage.output_tokens, usage.reasoning_tokens, usage.cost_usd) == (1, None, None)


# ------------------------------------------------------------------------------ one's own file


def own(tmp_path, monkeypatch, text):
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    monkeypatch.setenv(OVERRIDE, str(file))
    return file


def test_one_s_own_prices_win_and_add(tmp_path, monkeypatch):
    text = "as_of: 2027-01\nmodels:\n  gpt-5: {input: 9, output: 9}\n  mine: {input: 1, output: 2}"
    own(tmp_path, monkeypatch, text)
    assert price_of("gpt-5") == price_of("gpt-5-2025-08-07") == Price(input=9.0, output=9.0)
    assert price_of("mine") == Price(input=1.0, output=2.0)
    assert price_of("gpt-5-mini") is not None


@pytest.mark.parametrize(
    "text",
    [
        "models: {m: {input: 1, output: 2}}",
        "as_of: x\nmodels: {m: {input: 1}}",
        "as_of: x\nmodels: {m: {input: 1, output: 2, cashed: 3}}",
        "as_of: x\nmodels: {m: {input: -1, output: 2}}",
        "as_of: x\nmodels: {m: {input: .nan, output: 2}}",
        "as_of: x\nmodels: {m: {input: cheap, output: 2}}",
        "as_of: [",
        "",
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path, monkeypatch, text):
    file = own(tmp_path, monkeypatch, text)
    with pytest.raises(UsageError, match=re.escape(str(file))) as caught:
        price_of("m")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(OVERRIDE, str(tmp_path / "none.yaml"))
    with pytest.raises(UsageError, match=r"none\.yaml"):
        price_of("m")
