"""What both sides agree on: the form of a help state and of its answer, and how they are told."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Any

import msgspec

from mle_ideator import __version__
from mle_ideator.types import HelpState, Proposal

SCHEMA_HEADER = "mle-ideator-schema"
VERSION_HEADER = "mle-ideator-version"


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """The JSON schema of a request to `POST /v1/ideas`, and of its answer."""
    return {
        "request": msgspec.json.schema(HelpState),
        "answer": msgspec.json.schema(Proposal),
    }


@cache
def digest() -> str:
    """Twelve characters that differ where the schemas do, whatever their words say."""
    forms = _without_words(schemas())
    return sha256(msgspec.json.encode(forms, order="deterministic")).hexdigest()[:12]


def headers() -> dict[str, str]:
    """By these an answer says what it was written by."""
    return {VERSION_HEADER: __version__, SCHEMA_HEADER: digest()}


def _without_words(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _without_words(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [_without_words(item) for item in schema] if isinstance(schema, list) else schema
