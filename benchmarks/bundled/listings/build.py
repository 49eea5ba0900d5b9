"""Generated: offers of household goods whose titles hold brand, size and pack, each written freely.

    log price = the product's price a unit + 0.85·log(size) + 0.93·log(pieces in the pack)
              + brand (deviation 0.45) + condition (new 0, opened −0.2, used −0.55)
              + 0.08 with free shipping + 0.03·(rating − 4) + normal noise of deviation 0.13

Sizes are told in one of several units, packs in one of several ways, both anywhere in the title,
among words that say nothing. Brands stand nowhere else. The oracle knows all but the noise.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

ROWS, TEST_ROWS = 9_000, 3_500
TARGET, EXPECTED = "price", "expected"
PRODUCTS = {
    "cleaning": ["dish soap", "glass cleaner", "laundry gel", "floor polish", "descaler"],
    "food": ["coffee beans", "green tea", "olive oil", "oat flakes", "chestnut honey"],
    "garden": ["lawn seed", "garden hose", "potting soil", "jute twine", "plant feed"],
    "hardware": ["wood glue", "wall paint", "copper cable", "masking tape", "chain oil"],
    "care": ["shower gel", "hand cream", "hair wax", "bath salt", "sun lotion"],
}
UNITS = {
    "g": ["coffee beans", "green tea", "oat flakes", "chestnut honey", "lawn seed", "hair wax"],
    "m": ["garden hose", "jute twine", "copper cable", "masking tape"],
}
"""What is sold by weight or by length; all else is sold by volume."""
WRITTEN = {
    "ml": [("{:g}ml", 1.0), ("{:g} ml", 1.0), ("{:g} L", 0.001), ("{:g}l", 0.001), ("{:g}cl", 0.1)],
    "g": [("{:g}g", 1.0), ("{:g} g", 1.0), ("{:g} kg", 0.001), ("{:g}kg", 0.001)],
    "m": [("{:g}m", 1.0), ("{:g} m", 1.0), ("{:g} metres", 1.0), ("{:g} cm", 100.0)],
}
SIZES = {
    "ml": [100, 150, 200, 250, 330, 400, 500, 750, 1000, 1500, 2000, 2500, 5000],
    "g": [50, 80, 100, 125, 200, 250, 400, 500, 750, 1000, 1500, 2000, 3000],
    "m": [2, 3, 5, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75],
}
PACKS = ["{}x", "{}-pack", "pack of {}", "set of {}", "{} pcs", "x{}"]
FILLERS = ["top", "NEW", "original", "best price", "fast delivery", "great", "premium", "eco", "!!"]
FILLERS += ["from stock", "with invoice", "sale", "unused gift", "1a", "24h"]
CONDITIONS = {"new": 0.0, "opened": -0.2, "used": -0.55}
SYLLABLES = [
    "al",
    "bo",
    "cra",
    "dro",
    "en",
    "fi",
    "gra",
    "hel",
    "in",
    "jo",
    "ka",
    "lum",
    "mo",
    "nor",
]
SYLLABLES += ["ost", "pra", "qui", "ro", "sil", "tor", "ul", "ver", "wes", "xa", "yr", "zen"]
BRANDS = 80


def build(root: Path, rng: np.random.Generator) -> Frames:
    offers = simulate(rng).drop(columns=EXPECTED).drop_duplicates("title")
    return Frames(*random_split(offers, TEST_ROWS, rng))


def simulate(rng: np.random.Generator) -> pd.DataFrame:
    """All offers, with what they are worth beside their price."""
    brands = _brands(rng)
    goods = [(kind, name) for kind, names in PRODUCTS.items() for name in names]
    unit_price = 2.0 + 0.7 * rng.standard_normal(len(goods))
    of_brand = 0.45 * rng.standard_normal(BRANDS)
    rows = []
    for _ in range(ROWS):
        good, brand = rng.integers(len(goods)), rng.integers(BRANDS)
        kind, name = goods[good]
        unit = next((unit for unit, names in UNITS.items() if name in names), "ml")
        nth, pieces = rng.integers(len(SIZES[unit])), _pieces(rng)
        size = SIZES[unit][nth]
        worth = unit_price[good] + of_brand[brand] + 0.93 * np.log(pieces)
        worth += 0.85 * np.log(size / SIZES[unit][6])
        title = _title(rng, brands[brand], name, unit, size, pieces)
        rows.append((title, kind, *_circumstances(rng, worth)))
    columns = ["title", "category", "condition", "free_shipping", "rating", "photos", "days_online"]
    return pd.DataFrame(rows, columns=[*columns, EXPECTED, TARGET])


def _circumstances(rng: np.random.Generator, worth: float) -> tuple[object, ...]:
    """All columns but the first two; what they do to the worth is in the last two."""
    condition = list(CONDITIONS)[np.searchsorted([0.7, 0.85], rng.random())]
    free, rating = int(rng.random() < 0.4), round(5 - 1.5 * rng.random() * rng.random(), 1)
    worth += CONDITIONS[condition] + 0.08 * free + 0.03 * (rating - 4)
    price = np.exp(worth + 0.13 * rng.standard_normal())
    photos, days = int(rng.integers(1, 11)), int(rng.integers(90))
    return condition, free, rating, photos, days, np.exp(worth), round(float(price), 2)


def _pieces(rng: np.random.Generator) -> int:
    return 1 if rng.random() < 0.5 else (2, 3, 4, 5, 6, 8, 10, 12)[rng.integers(8)]


def _title(
    rng: np.random.Generator, brand: str, name: str, unit: str, size: int, pieces: int
) -> str:
    form, factor = WRITTEN[unit][rng.integers(len(WRITTEN[unit]))]
    parts = [brand.upper() if rng.random() < 0.3 else brand, name, form.format(size * factor)]
    if pieces > 1:
        parts.append(PACKS[rng.integers(len(PACKS))].format(pieces))
    parts += [FILLERS[rng.integers(len(FILLERS))] for _ in range(rng.integers(4))]
    return " ".join(parts[place] for place in rng.permutation(len(parts)))


def _brands(rng: np.random.Generator) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < BRANDS:
        picked = rng.integers(len(SYLLABLES), size=rng.integers(2, 4))
        made["".join(SYLLABLES[place] for place in picked).capitalize()] = None
    return list(made)
