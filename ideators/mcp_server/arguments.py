"""What a foreign agent tells of its work: the arguments of the tool `seek_help`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from mle_ideator.errors import UsageError, unknown
from mle_ideator.types import Value

_Said = Annotated[str, Meta(pattern=r"\S")]
_Count = Annotated[int, Meta(ge=1)]
_Amount = Annotated[float, Meta(gt=0, lt=1e6)]


class Attempt(Value, frozen=True, kw_only=True):
    """One earlier attempt."""

    what: Annotated[_Said, Meta(description="What was done, in a sentence or two.")]
    score: Annotated[
        float | None,
        Meta(
            description="Its validation score in the task's metric. Leave it out if the attempt "
            "failed or gave no score, and say so in `what`."
        ),
    ] = None
    code: Annotated[
        str | None, Meta(description="Its code, whole, so that one can build on it.")
    ] = None
    idea: Annotated[
        str | None,
        Meta(
            description="If it carried out an idea of this tool: that idea's action, word for "
            "word, so that it is not given again."
        ),
    ] = None


class Arguments(Value, frozen=True, kw_only=True):
    """The situation in a foreign agent's words."""

    problem: Annotated[
        _Said, Meta(description="What is in the way: what stalls, fails or puzzles you.")
    ]
    attempts: Annotated[
        _Said, Meta(description="What you tried against it, and what came of each try.")
    ]
    goal: Annotated[_Said, Meta(description="What you want to reach next.")]
    task: Annotated[
        _Said,
        Meta(
            description="The task, as whole as you have it: what is predicted from what, the "
            "files, the columns with their kinds, what is peculiar about the data."
        ),
    ]
    metric: Annotated[
        _Said, Meta(description="Name of the metric, for instance rmse, auc or macro_f1.")
    ]
    higher_is_better: Annotated[
        bool, Meta(description="Is a larger value of the metric better? For rmse: false.")
    ]
    train_rows: Annotated[
        _Count, Meta(description="Rows of the training data; an estimate will do.")
    ]
    test_rows: Annotated[_Count | None, Meta(description="Rows to be predicted, if you know.")] = (
        None
    )
    task_type: Annotated[
        str | None,
        Meta(
            description="tabular-regression, tabular-classification, text-classification, "
            "image-classification, time-series, or another in this form."
        ),
    ] = None
    target: Annotated[str | None, Meta(description="Name of the column to be predicted.")] = None
    code: Annotated[
        str | None,
        Meta(
            description="Your current solution, whole. It and the code of the last entry of "
            "`history` stand in for each other if one is left out."
        ),
    ] = None
    history: Annotated[
        tuple[Attempt, ...],
        Meta(
            description="Your attempts so far, the oldest first, failed ones included. An idea "
            "may ask you to revert to #k: that is the k-th of them, counted from 1."
        ),
    ] = ()
    log: Annotated[
        str | None,
        Meta(description="The latest output: scores, warnings, the end of a traceback."),
    ] = None
    python: Annotated[str | None, Meta(description="Python version that solutions run on.")] = None
    libraries: Annotated[
        tuple[str, ...],
        Meta(description="Libraries that solutions may use, such as `scikit-learn 1.8`."),
    ] = ()
    cores: Annotated[_Count | None, Meta(description="CPU cores that solutions have.")] = None
    memory_gib: Annotated[_Amount | None, Meta(description="Memory that solutions have.")] = None
    minutes_left: Annotated[
        _Amount | None, Meta(description="Minutes left for the whole task.")
    ] = None


def schema() -> dict[str, Any]:
    """The JSON schema of the arguments, without references: not every client follows them."""
    whole = msgspec.json.schema(Arguments)
    resolved: dict[str, Any] = _resolved({"$ref": whole["$ref"]}, whole["$defs"])
    return resolved


def read_arguments(given: Mapping[str, Any]) -> Arguments:
    """The arguments as models write them: `null` for what they leave out, JSON inside of a string,
    numbers as strings. Raises `UsageError` in one line that says what to mend."""
    told = {name: _unpacked(name, value) for name, value in given.items() if value is not None}
    for name in told:
        if name not in Arguments.__struct_fields__:
            raise UsageError(unknown("argument", name, Arguments.__struct_fields__))
    fields = msgspec.structs.fields(Arguments)
    if missing := [field.name for field in fields if field.required and field.name not in told]:
        raise UsageError(f"missing: {', '.join(missing)}.")
    for place in _true_false_numbers(told):
        raise UsageError(f"{place}: expected a number, got true or false.")
    try:
        arguments = msgspec.convert(told, Arguments, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(_readable(str(error))) from error
    for index, attempt in enumerate(arguments.history):
        if attempt.score is not None and not math.isfinite(attempt.score):
            raise UsageError(
                f"history[{index}].score: {attempt.score} is no score; leave it out and say in "
                "`what` how the attempt failed."
            )
    return arguments


def _resolved(part: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_resolved(value, definitions) for value in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _resolved(definitions[part["$ref"].rpartition("/")[2]], definitions)
    return {key: _resolved(value, definitions) for key, value in part.items()}


def _unpacked(name: str, value: Any) -> Any:
    """A list that a client packed into a string."""
    if name not in ("history", "libraries") or not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _true_false_numbers(told: Mapping[str, Any]) -> Iterator[str]:
    """Where `True` would be read as 1."""
    numbers = ("train_rows", "test_rows", "cores", "memory_gib", "minutes_left")
    yield from (name for name in numbers if isinstance(told.get(name), bool))
    history = told.get("history")
    for index, entry in enumerate(history if isinstance(history, list) else ()):
        if isinstance(entry, dict) and isinstance(entry.get("score"), bool):
            yield f"history[{index}].score"


def _readable(message: str) -> str:
    """`Expected `float`, got `array` - at `$.history[0].score`` as one sentence, place first."""
    what, _, where = message.partition(" - at ")
    place = where.strip("`").removeprefix("$").removeprefix(".")
    if "matching regex" in what:
        what = "it must not be empty"
    return f"{place}: {what}." if place else f"{what}."
