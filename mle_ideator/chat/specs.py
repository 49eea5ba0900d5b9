"""`MODEL` or `MODEL@URL`: which model, behind which address, with which key."""

from __future__ import annotations

import os
import re
from importlib import import_module
from urllib.parse import SplitResult, urlsplit

from mle_ideator.errors import UsageError

_AT = re.compile(r"@(?=https?://)")


class Key:
    """An API key that does not show itself."""

    def __init__(self, value: str, variable: str) -> None:
        self.value = value
        self.variable = variable
        """The environment variable that it was taken from, or would be."""

    def __repr__(self) -> str:
        return f"Key(from {self.variable})"

    def __str__(self) -> str:
        return f"the key in {self.variable}" if self.value else f"no key ({self.variable} is unset)"


class Address:
    """A model behind an address."""

    def __init__(self, provider: str, argument: str, default_url: str) -> None:
        model, *given = _AT.split(argument, maxsplit=1)
        if not model:
            raise UsageError(f"'{provider}:{argument}' names no model; write {provider}:MODEL@URL.")
        self.model = model
        self.name = f"{provider}:{argument}"
        self.url = (given[0] if given else default_url).rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not _port_is_good(parts):
            raise UsageError(f"{self.url!r} is no URL; write for instance http://host:8000/v1.")
        if parts.username or parts.password:
            raise UsageError(f"put no password into the URL of {provider}; set its key instead.")
        self.host = parts.netloc

    def key(self, variable: str, *, official: str) -> Key:
        """The key from `MLE_IDEATOR_KEY_<HOST>`, so that hosts can have keys of their own, or from
        `variable`. Only the official host can not do without."""
        own = "MLE_IDEATOR_KEY_" + re.sub(r"\W", "_", self.host).upper()
        named = own if os.environ.get(own) else variable
        value = os.environ.get(named, "").strip()
        if not value and self.host == official:
            raise UsageError(f"{self.name} needs an API key: export {variable}=… first.")
        if not value.isascii() or not value.isprintable():
            raise UsageError(f"{named} holds characters that no API key has: set it again.")
        return Key(value, named)


def _port_is_good(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def needs(package: str, extra: str) -> None:
    """Import an optional package, before any clock runs; `UsageError` if it is not installed."""
    try:
        import_module(package)
    except ImportError as error:
        raise UsageError(
            f"the package {package!r} is missing ({error}): run pip install 'mle-ideator[{extra}]'."
        ) from error
