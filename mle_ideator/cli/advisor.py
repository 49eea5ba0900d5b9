"""The ideator that a command names, with options given by `--set`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mle_ideator.config import RunConfig, load_config
from mle_ideator.protocols import Ideator
from mle_ideator.setups import ideator_of


def advisor(
    spec: str, overrides: Sequence[str] | None, options: Mapping[str, Any] | None = None
) -> Ideator:
    """Overrides (`key=value`) win over options. Raises `UsageError`."""
    named = [f"ideator_options.{override}" for override in overrides or ()]
    given = load_config(RunConfig, None, named).ideator_options
    return ideator_of(spec, {**(options or {}), **given})
