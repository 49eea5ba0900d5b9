"""`kaggle.yaml`, beside the downloaded files: what they do not tell."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from mle_ideator.errors import TaskError

DECLARATION = "kaggle.yaml"


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it may be left out."""

    competition: str | None = None
    """As in kaggle.com/competitions/NAME; without it, the folder's name."""
    target: str | None = None
    """Without it, the column that only train.csv has and the sample submission asks for."""
    metric: str | None = None
    """A metric of docs/grading.md, whose direction is its own; without it, one that fits."""
    id_column: str | None = None
    """Without it, the first column of the sample submission."""
    holdout: float = 0.2
    """Share of the labelled rows kept from the agents to grade on."""
    train: str | None = None
    """File names, where they are not the usual ones."""
    test: str | None = None
    sample: str | None = None


def read_declaration(folder: Path) -> Declaration:
    """Raises `TaskError` in one line."""
    file = folder / DECLARATION
    if not file.exists():
        return Declaration()
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        return msgspec.convert(values, Declaration)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise TaskError(f"{file} can not be used: {' '.join(str(error).split())}") from error
