"""From a spec to an object: `name`, `name:argument`, or `package.module:Class`.

Built-ins and plugins come in through the same door, the entry points `mle_ideator.<group>`. The
part after the colon of a registered name is handed to its factory as one string, and is that
factory's business: `fixed:ideas.yaml`, `openai:MODEL@URL`.

A chat model may stand where an agent is asked for: `codeact` acts with it, `prompted` advises.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import msgspec

from mle_ideator.errors import UsageError, unknown

Group = Literal["implementers", "ideators", "chat_models", "sandboxes", "task_sources"]

_KINDS = {
    "implementers": "implementer",
    "ideators": "ideator",
    "chat_models": "chat model",
    "sandboxes": "sandbox",
    "task_sources": "task source",
}
_OF_CHAT_MODELS = {"implementers": "codeact", "ideators": "prompted"}


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
    if group in _OF_CHAT_MODELS and name in registered("chat_models"):
        return _load(points[_OF_CHAT_MODELS[group]], spec), spec
    _look_here_too()
    if colon and ("." in name or (name.isidentifier() and find_spec(name))):
        return _import(name, argument, spec), None
    known = {*points, *(registered("chat_models") if group in _OF_CHAT_MODELS else ())}
    raise UsageError(unknown(_KINDS[group], name, known))


def create(group: Group, spec: str, options: Mapping[str, Any] | None = None) -> Any:
    """The object that a spec names.

    Its factory gets what stands after the colon, if there is one, and `options` as an object of the
    type that it names in its attribute `Options`. Raises `UsageError`.
    """
    factory, argument = find(group, spec)
    kind = _KINDS[group]
    named = {"options": typed_options(options, factory, f"{kind} {spec!r}")} if options else {}
    given = () if argument is None else (argument,)
    try:
        signature(factory).bind(*given, **named)
    except TypeError as error:
        needs = "takes no argument" if given else "needs an argument"
        raise UsageError(f"{kind} {spec!r} {needs} after the colon.") from error
    return factory(*given, **named)


def typed_options(options: Mapping[str, Any], factory: Any, what: str) -> Any:
    kind = getattr(factory, "Options", None)
    if kind is None:
        raise UsageError(f"{what} takes no options, but got {', '.join(options)}.")
    known = [field.name for field in msgspec.structs.fields(kind)]
    for key in options:
        if key not in known:
            raise UsageError(unknown(f"option of {what}", key, known))
    try:
        return msgspec.convert(dict(options), kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"options of {what}: {error}.") from error


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
