"""From a spec to an object: `name`, `name:argument`, or `package.module:Class`.

Built-ins and plugins come in through the same door, the entry points `mle_ideator.<group>`. The
part after the colon of a registered name is handed to its factory as one string, and is that
factory's business: `fixed:ideas.yaml`, `openai:MODEL@URL`.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from mle_ideator.errors import UsageError, unknown

Group = Literal["implementers", "ideators", "sandboxes", "task_sources"]


@cache
def registered(group: Group) -> dict[str, EntryPoint]:
    """Everything installed for a group, by name. Read once: looking through packages is slow."""
    return {point.name: point for point in entry_points(group=f"mle_ideator.{group}")}


def find(group: Group, spec: str) -> tuple[Any, str | None]:
    """The class or factory that a spec names, and the argument for it (`None` without a colon).

    Raises `UsageError` with the nearest known name.
    """
    name, colon, argument = spec.partition(":")
    points = registered(group)
    if name in points:
        return _load(points[name], spec), argument if colon else None
    _look_here_too()
    if colon and ("." in name or (name.isidentifier() and find_spec(name))):
        return _import(name, argument, spec), None
    raise UsageError(unknown(group[:-1].replace("_", " "), name, points))


def create(group: Group, spec: str) -> Any:
    """The object that a spec names, made without arguments or with the one after the colon."""
    factory, argument = find(group, spec)
    try:
        return factory() if argument is None else factory(argument)
    except TypeError as error:
        kind = group[:-1].replace("_", " ")
        needs = "takes no argument" if argument is not None else "needs an argument"
        raise UsageError(f"{kind} {spec!r} {needs} after the colon ({error}).") from error


def _load(point: EntryPoint, spec: str) -> Any:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{spec!r} can not be loaded: {error}.") from error


def _look_here_too() -> None:
    """A person's own class may lie in the working directory; what is installed comes first."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


def _import(module: str, attribute: str, spec: str) -> Any:
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        raise UsageError(f"{spec!r} can not be imported: {error}.") from error
    except AttributeError as error:
        raise UsageError(f"{spec!r} can not be imported: {module} has no {attribute!r}.") from error
