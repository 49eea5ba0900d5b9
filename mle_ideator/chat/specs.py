"""`MODEL` or `MODEL@URL`: which model, behind which address, with which key."""

from __future__ import annotations

import os
import re
from importlib import import_module
from urllib.parse import SplitResult, urlsplit

from mle_ideator.errors import UsageError

_AT = re.compile(r"@(?=https?://)", re.IGNORECASE)
_LIKE_AN_ADDRESS = re.compile(
    r"@(?:[a-z][a-z0-9+.-]*:/|https?:|localhost\b|\[|(?:\d+\.){3}\d|[^@/\s]+:\d{1,5}(?:/|$)"
    r"|[\w.-]+\.[a-z]{2,}(?:/|$)|(?<!^.)[^@\s]*/)",
    re.IGNORECASE,
)
"""After the model, an address that lacks its scheme or has another; versions have an @, too."""


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

    def __init__(self, provider: str, argument: str, default_url: str, variable: str = "") -> None:
        """An argument without a URL means the one in an environment variable, or the default.

        Raises `UsageError`, without showing what may hold a secret."""
        model, given = split(argument)
        if not model:
            raise UsageError(f"'{provider}:@…' names no model; write {provider}:MODEL@URL.")
        told = os.environ.get(variable, "").strip() if given is None else ""
        where = variable if told else f"what follows the @ of {provider}:{model}@…"
        self.model = model
        self.name = f"{provider}:{argument}"
        self.url = (given or told or default_url).rstrip("/")
        self.host = _host(self.url, where)

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


def split(argument: str) -> tuple[str, str | None]:
    """The model, and what follows its `@` if that is an address or meant to be one."""
    found = _AT.search(argument) or _LIKE_AN_ADDRESS.search(argument)
    if found is None:
        return argument, None
    return argument[: found.start()], argument[found.start() + 1 :]


def _host(url: str, where: str) -> str:
    """The host and the port that a URL names. Secrets do not belong there, as it is logged."""
    parts = _parts(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{where} is no URL; write for instance http://localhost:8000/v1.")
    if "@" in parts.netloc:
        raise UsageError(f"{where} holds a password; leave it out, and set the API key instead.")
    if "?" in url or "#" in url:
        raise UsageError(f"{where} may have no part after a ? or #; set the API key instead.")
    return parts.netloc


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return None if parts.port == 0 or re.search(r"\s", url) else parts
    except ValueError:
        return None


def needs(package: str, extra: str) -> None:
    """Import an optional package, before any clock runs; `UsageError` if it is not installed."""
    try:
        import_module(package)
    except ImportError as error:
        raise UsageError(
            f"the package {package!r} is missing ({error}): run pip install 'mle-ideator[{extra}]'."
        ) from error
