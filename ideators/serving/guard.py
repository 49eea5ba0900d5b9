"""Who may ask: a bearer token from a file, and on an open loopback port only local programs."""

from __future__ import annotations

import hmac
from pathlib import Path

from starlette.datastructures import Headers

from mle_ideator.errors import UsageError
from mle_ideator.ideators.serving.addresses import host_in, is_loopback
from mle_ideator.ideators.serving.answers import Refused
from mle_ideator.types import Value


class Guard(Value, frozen=True, kw_only=True):
    """What a request needs to be let in."""

    token: str | None = None
    local_only: bool = False
    """Refuse names other than those of this machine: a web page that a browser shows can send
    requests to a port of the machine, by a name of its own that leads there."""

    def check(self, headers: Headers) -> None:
        """Raises `Refused`."""
        if self.token is not None and not self._has_token(headers):
            raise Refused(401, "unauthorised", "this server wants its token: Bearer TOKEN.")
        if self.local_only and not is_loopback(host_in(headers.get("host", ""))):
            raise Refused(421, "foreign_host", "without a token this server is local only.")

    def admits(self, headers: Headers) -> bool:
        try:
            self.check(headers)
        except Refused:
            return False
        return True

    def _has_token(self, headers: Headers) -> bool:
        """Compared in constant time. Of two nobody knows which one a proxy has looked at."""
        told = headers.getlist("authorization")
        scheme, _, given = (told[0] if told else "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), str(self.token).encode())
        return same and scheme.lower() == "bearer" and len(told) == 1

    def __repr__(self) -> str:
        return f"Guard(token={'set' if self.token else None}, local_only={self.local_only})"


def guard_for(host: str, token_file: Path | None, no_token: bool) -> Guard:
    """Raises `UsageError` where the port would be open to others."""
    if token_file is not None and no_token:
        raise UsageError("--token-file and --no-token exclude each other.")
    if token_file is not None:
        return Guard(token=_token_in(token_file))
    if not no_token and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines, so a token is needed: give --token-file "
            "FILE, or --no-token if something else keeps strangers out."
        )
    return Guard(local_only=not no_token)


def loose(token_file: Path | None) -> str:
    """A warning if others can read the token; empty if not."""
    if token_file is None or not token_file.stat().st_mode & 0o044:
        return ""
    return f"warning: others can read {token_file}; chmod 600 mends that."


def _token_in(file: Path) -> str:
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not plain ASCII"
        raise UsageError(f"token file {file} can not be read: {reason}.") from error
    if not token or any(not char.isprintable() or char == " " for char in token):
        raise UsageError(f"token file {file} must hold one token, without spaces.")
    return token
