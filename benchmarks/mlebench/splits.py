"""MLE-bench's lists of competitions, and a person's own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import yaml

from mle_ideator.errors import TaskError

Complexity = Literal["low", "medium", "high"]


class Complexities(msgspec.Struct, frozen=True):
    """MLE-bench's 75 competitions, as its authors split them."""

    low: tuple[str, ...]
    """MLE-bench Lite."""
    medium: tuple[str, ...]
    high: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(sorted((*self.low, *self.medium, *self.high), key=str.lower))


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person's own: what ideators are trained on, and what they are tested on."""

    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()


def complexities() -> Complexities:
    file = Path(__file__).with_name("competitions.yaml")
    return msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), Complexities)


def read_split(file: Path) -> Split:
    """A YAML file with the lists `train` and `test` of competition ids. Raises `TaskError`."""
    try:
        split = msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), Split)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        why = " ".join(str(error).split())
        raise TaskError(f"{file} is no list of competitions (train, test): {why}") from error
    names = [*split.train, *split.test]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        what = f"has {', '.join(twice)} more than once" if twice else "lists no competition"
        raise TaskError(f"{file} {what}")
    return split
