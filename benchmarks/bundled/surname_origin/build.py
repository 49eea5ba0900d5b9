"""faker/providers/person/*: lists of surnames, one Python module a locale."""

import importlib
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.building import Frames, random_split

LOCALES = {
    "algerian": ["fr_DZ"],
    "azerbaijani": ["az_AZ"],
    "croatian": ["hr_HR"],
    "dutch": ["nl_NL", "nl_BE"],
    "english": ["en_GB", "en_US", "en_NZ"],
    "estonian": ["et_EE"],
    "finnish": ["fi_FI"],
    "french": ["fr_FR", "fr_CA", "fr_QC", "fr_CH", "fr_BE"],
    "ghanaian": ["tw_GH"],
    "german": ["de_DE", "de_AT", "de_CH"],
    "indian": ["en_IN"],
    "indonesian": ["id_ID"],
    "irish": ["ga_IE"],
    "italian": ["it_IT"],
    "kenyan": ["en_KE"],
    "pakistani": ["en_PK"],
    "polish": ["pl_PL"],
    "scandinavian": ["sv_SE", "da_DK", "no_NO"],
    "slovak": ["sk_SK"],
    "slovenian": ["sl_SI"],
    "spanish": ["es_ES", "es_MX", "es_CL", "es_AR", "es_CO"],
    "uzbek": ["uz_UZ"],
    "zulu": ["zu_ZA"],
}
MOST, TEST_ROWS = 500, 3_000
# Letters that Unicode does not take apart into a plain letter and an accent.
PLAIN = str.maketrans({"ł": "l", "ø": "o", "ı": "i", "ə": "e", "ß": "ss", "æ": "ae", "đ": "d"})


def build(root: Path, rng: np.random.Generator) -> Frames:
    by_origin = {origin: _names(locales) for origin, locales in LOCALES.items()}
    counts = Counter(name for names in by_origin.values() for name in names)
    rows: list[tuple[str, str]] = []
    for origin, names in by_origin.items():
        own = sorted(name for name in names if counts[name] == 1)
        kept = rng.permutation(len(own))[:MOST]
        rows += [(own[index], origin) for index in kept]
    frame = pd.DataFrame(rows, columns=["surname", "origin"])
    return Frames(*random_split(frame, TEST_ROWS, rng, by="origin"))


def _names(locales: list[str]) -> set[str]:
    """All surnames of these locales in plain lower-case letters, as on a boarding card."""
    found: set[str] = set()
    for locale in locales:
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        for attribute, names in vars(provider).items():
            if "last_names" in attribute and isinstance(names, (tuple, list, dict)):
                found.update(_plain(str(name)) for name in names)
    return {name for name in found if len(name) > 2 and name.isascii()}


def _plain(name: str) -> str:
    parts = unicodedata.normalize("NFKD", name.lower().translate(PLAIN))
    return "".join(part for part in parts if not unicodedata.combining(part))
