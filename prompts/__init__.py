"""The texts that agents read, one Jinja template a message: `<room>/<message>.md.j2`.

Code decides what is said, a template how. A name that a template does not get is an error, not an
empty string.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, **values: Any) -> str:
    """The message `name` (for instance `session/observation`), without blank ends."""
    return _environment().get_template(f"{name}.md.j2").render(values).strip()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__name__, "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - plain text for agents, not HTML
    )
