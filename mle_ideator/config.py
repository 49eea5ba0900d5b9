"""One typed config: defaults, then a YAML file, then dotted overrides. Unknown keys are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import yaml

from mle_ideator.errors import UsageError, unknown
from mle_ideator.limits import Limits
from mle_ideator.protocols import PRELOADED, SandboxLimits
from mle_ideator.types import Value

V = TypeVar("V", bound=Value)


class OwnData(Value, frozen=True, kw_only=True):
    """A person's own data, in place of a named task."""

    train: str
    """CSV, TSV or Parquet file with the target."""
    target: str
    """Column to be predicted."""
    test: str | None = None
    """Rows to predict; without it only the hold-out is scored."""
    metric: str | None = None
    """Name of the metric; without it one that fits the target."""
    id_column: str | None = None
    """Column that names the rows; without it one is made."""
    holdout: float = 0.2
    """Share of the training rows kept from the agents to grade on."""


class RunConfig(Value, frozen=True, kw_only=True):
    """Everything that decides a session."""

    task: str | None = None
    """Id of a task (`mle-ideator tasks`)."""
    data: OwnData | None = None
    """Or one's own data."""
    implementer: str = "offline"
    """Spec of the acting agent."""
    ideator: str = "offline"
    """Spec of the advising agent."""
    implementer_options: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the implementer is given besides, for instance `temperature`; it says what it takes."""
    ideator_options: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the ideator is given besides, for instance `ideas`."""
    help_policy: str = "agent"
    """Who seeks help: `agent` (the implementer), or also the runtime: `plateau-4`, `every-3`."""
    sandbox: str = "auto"
    """`auto` takes the strongest that works here."""
    sandbox_options: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the sandbox is given besides, for instance `image`; `docker` takes some."""
    sandbox_limits: SandboxLimits = SandboxLimits()
    """What agent code may use."""
    threads: int | None = None
    """What numerical libraries are told to use; without it, all cores."""
    gpus: str | None = None
    """`all`, none (`""`), or ids with commas between them; without it, what the sandbox gives."""
    preload: tuple[str, ...] = PRELOADED
    """Modules that are imported once, before any kernel, and then are there at once."""
    limits: Limits = Limits()
    """What the session may use."""
    keep_help_states: bool = False
    """Keep the workspace of each help request, so that ideators can be trained from there."""
    selection: Literal["validation", "public", "last"] = "validation"
    """By which score the final solution is chosen."""
    seed: int = 0
    """Decides everything random in agents, splits and models."""


def load_config(
    kind: type[V], file: Path | None = None, overrides: Sequence[str] = (), **options: Any
) -> V:
    """A config from a YAML file, `dotted.key=value` overrides, and options that are not `None`.

    Later ones win. Values of overrides are read as YAML. Raises `UsageError` in one line.
    """
    values = _read(file) if file else {}
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise UsageError(f"override {override!r} must be written key=value.")
        _put(values, key.strip().split("."), _value(override, text))
    for option, value in options.items():
        if value is not None:
            _put(values, option.split("__"), value)
    check_keys(kind, values)
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"config: {_readable(str(error))}.") from error


def dump_config(config: Value) -> str:
    """The config as YAML; reading it back gives the same config."""
    text: str = yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False, allow_unicode=True)
    return text


def check_keys(kind: type[Value], values: Mapping[str, Any], prefix: str = "") -> None:
    """Refuse a key that the config does not have, naming the nearest one."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in values.items():
        if key not in fields:
            raise UsageError(unknown("config key", f"{prefix}{key}", [prefix + f for f in fields]))
        inner = _struct_in(fields[key])
        if inner and isinstance(value, Mapping):
            check_keys(inner, value, f"{prefix}{key}.")


def _struct_in(annotation: Any) -> type[Value] | None:
    for option in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(option, type) and issubclass(option, Value):
            return option
    return None


def _read(file: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"config file {file} can not be read: {error}.") from error
    except yaml.YAMLError as error:
        where = re.sub(r"\s+", " ", str(error))
        raise UsageError(f"config file {file} is not YAML: {where}.") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UsageError(f"config file {file} must hold keys and values.")
    return values


def _value(override: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"the value of override {override!r} is not YAML.") from error


def _put(values: dict[str, Any], path: list[str], value: Any) -> None:
    for key in path[:-1]:
        inner = values.get(key)
        if not isinstance(inner, dict):
            inner = values[key] = {}
        values = inner
    values[path[-1]] = value


def _readable(message: str) -> str:
    """`Expected `int`, got `str` - at `$.limits.steps`` as one sentence."""
    what, _, where = message.partition(" - at ")
    return f"{where.strip('`').removeprefix('$.')}: {what}" if where else what
