"""Generated: disputed card payments; ids of many levels, and labels of train that went missing.

A payment is disputed with the log-odds

    −2.4 + merchant + customer + trade + 0.9·|log(amount / the merchant's usual amount)|
         + 0.8·[abroad] + 0.7·[at night] + channel (shop −0.4, phone 0.6, web 0.1, post 0.3)

where merchants have a deviation of 1.1 about their trade, trades of 0.5, customers of 0.7, and a
few merchants have most payments. In train.csv disputes are only those that were recorded: of those
by phone 55 % went missing, by post 40 %, else 8 %. The oracle knows every term.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames

ROWS, TEST_ROWS = 18_000, 6_000
MERCHANTS, CUSTOMERS = 1_800, 4_500
TARGET, EXPECTED = "disputed", "expected"
TRADES = ["books", "clothes", "electronics", "fuel", "furniture", "games", "groceries", "hotels"]
TRADES += ["jewels", "pharmacy", "restaurants", "shoes", "software", "sports", "tickets", "travel"]
COUNTRIES = ["AT", "BE", "CH", "DE", "DK", "ES", "FR", "IT", "NL", "PL", "SE", "UK"]
CHANNELS = {"phone": (0.6, 0.55), "post": (0.3, 0.4), "shop": (-0.4, 0.08), "web": (0.1, 0.08)}
"""Log-odds of a dispute, and the share of disputes that train.csv lost."""


def build(root: Path, rng: np.random.Generator) -> Frames:
    payments = simulate(rng).drop(columns=EXPECTED)
    train, test = payments.iloc[TEST_ROWS:].copy(), payments.iloc[:TEST_ROWS]
    lost = np.array([CHANNELS[channel][1] for channel in train["channel"]])
    train[TARGET] *= rng.random(len(train)) >= lost
    return Frames(train, test)


def simulate(rng: np.random.Generator) -> pd.DataFrame:
    """All payments with their true label, and the probability of it."""
    merchants, customers = _merchants(rng), _customers(rng)
    shares = 1 / np.arange(8, MERCHANTS + 8) ** 0.9
    at = np.searchsorted(np.cumsum(shares / shares.sum()), rng.random(ROWS)).clip(max=MERCHANTS - 1)
    by = rng.integers(CUSTOMERS, size=ROWS)
    shop, person = merchants.iloc[at].reset_index(), customers.iloc[by].reset_index()
    surprise = 0.5 * rng.standard_normal(ROWS)
    channel = np.array(list(CHANNELS))[np.searchsorted([0.2, 0.35, 0.65], rng.random(ROWS))]
    payments = pd.DataFrame(
        {
            "merchant": shop["code"],
            "trade": shop["trade"],
            "merchant_country": shop["country"],
            "customer": person["code"],
            "customer_country": person["country"],
            "customer_since": person["since"],
            "channel": channel,
            "weekday": rng.integers(1, 8, size=ROWS),
            "minute": rng.integers(1440, size=ROWS),
            "amount": (np.exp(shop["usual"] + surprise)).round(2),
        }
    )
    odds = (
        -2.4
        + shop["odds"]
        + person["odds"]
        + 0.9 * np.abs(surprise)
        + 0.8 * (shop["country"] != person["country"])
        + 0.7 * ((payments["minute"] < 300) | (payments["minute"] >= 1380))
        + np.array([CHANNELS[name][0] for name in channel])
    )
    payments[EXPECTED] = 1 / (1 + np.exp(-odds))
    payments[TARGET] = (rng.random(ROWS) < payments[EXPECTED]).astype(int)
    return payments


def _merchants(rng: np.random.Generator) -> pd.DataFrame:
    trade = rng.integers(len(TRADES), size=MERCHANTS)
    of_trade = 0.5 * rng.standard_normal(len(TRADES))
    usual = 2.5 + 1.5 * rng.random(len(TRADES))
    return pd.DataFrame(
        {
            "code": _codes("M", MERCHANTS, rng),
            "trade": np.array(TRADES)[trade],
            "country": np.array(COUNTRIES)[rng.integers(len(COUNTRIES), size=MERCHANTS)],
            "odds": of_trade[trade] + 1.1 * rng.standard_normal(MERCHANTS),
            "usual": usual[trade] + 0.9 * rng.standard_normal(MERCHANTS),
        }
    )


def _customers(rng: np.random.Generator) -> pd.DataFrame:
    odds = 0.7 * rng.standard_normal(CUSTOMERS)
    years = 24 * rng.random(CUSTOMERS) * (0.6 + 0.4 * (odds < 0))
    return pd.DataFrame(
        {
            "code": _codes("C", CUSTOMERS, rng),
            "country": np.array(COUNTRIES)[rng.integers(len(COUNTRIES), size=CUSTOMERS)],
            "since": 2024 - years.astype(int),
            "odds": odds,
        }
    )


def _codes(letter: str, count: int, rng: np.random.Generator) -> list[str]:
    """Different codes in no order."""
    return [f"{letter}{number:05d}" for number in rng.permutation(90_000)[:count]]
