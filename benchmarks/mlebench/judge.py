"""Grades one submission with a competition's own `grade(submission, answers)`.

A script that runs in a process of its own, with any Python that has what the grader imports: it
knows nothing of mle-ideator. An order comes as JSON on standard input, a verdict goes as JSON to
standard output. Texts of exceptions that were raised while the answers were known stay here.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import resource
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the grader prints is no verdict
    order = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (order["memory"], order["memory"]))
    json.dump(verdict(order), reply)
    reply.close()
    os._exit(0)  # whatever threads the grader has left


def verdict(order: dict[str, Any]) -> dict[str, Any]:
    try:
        grade = grade_function(order["grade_fn"], Path(order["entry"]), order["root"])
    except Exception as error:
        return {"outcome": "broken", "why": f"{type(error).__name__}: {error}"}
    try:
        answers = load_answers(Path(order["answers"]))
    except Exception as error:
        return {"outcome": "broken", "why": f"its answers can not be read: {type(error).__name__}"}
    try:
        submission = read_csv(Path(order["submission"]))
    except MemoryError:
        return {"outcome": "limit", "why": "took too much memory"}
    except Exception as error:
        return {"outcome": "refused", "why": type(error).__name__}
    try:
        return scored(grade(submission, answers))
    except MemoryError:
        return {"outcome": "limit", "why": "took too much memory"}
    except BaseException as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        outcome = "refused" if "InvalidSubmissionError" in names else "failed"
        return {"outcome": outcome, "why": type(error).__name__}


def scored(value: Any) -> dict[str, Any]:
    """NaN, infinities, booleans and texts are no scores."""
    try:
        number = None if type(value).__name__ in ("bool", "bool_", "str") else float(value)
    except (TypeError, ValueError):
        number = None
    if number is None or not math.isfinite(number):
        return {"outcome": "unscored", "why": f"{type(value).__name__} is no finite number"}
    return {"outcome": "score", "value": number}


def grade_function(spec: str, entry: Path, root: str | None) -> Callable[..., Any]:
    """`module:function`: of mle-bench's package if the entry is in that, else of the entry."""
    name, _, function = spec.partition(":")
    if root:
        sys.path.insert(0, root)
        module = importlib.import_module(name)
    else:
        module = from_folder(entry, name.rpartition(".")[2])
    found: Callable[..., Any] = getattr(module, function)
    return found


def from_folder(entry: Path, name: str) -> types.ModuleType:
    """As a module of a package that is the folder, so that it can import its neighbours."""
    stand_in_for_mlebench()
    package = types.ModuleType("_competition")
    package.__path__ = [str(entry)]
    sys.modules["_competition"] = package
    sys.path.insert(0, str(entry))
    return importlib.import_module(f"_competition.{name}")


def stand_in_for_mlebench() -> None:
    """The one name of mle-bench that a grader by itself needs, where that is not installed."""
    if importlib.util.find_spec("mlebench"):
        return
    helpers = types.ModuleType("mlebench.grade_helpers")
    helpers.InvalidSubmissionError = type("InvalidSubmissionError", (Exception,), {})  # type: ignore[attr-defined]
    sys.modules["mlebench"] = types.ModuleType("mlebench")
    sys.modules["mlebench.grade_helpers"] = helpers


def load_answers(path: Path) -> Any:
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    return read_csv(path)


def read_csv(path: Path) -> Any:
    """As mle-bench reads submissions and answers."""
    import pandas as pd

    try:
        return pd.read_csv(path, float_precision="round_trip")
    except pd.errors.EmptyDataError:
        return pd.DataFrame()


if __name__ == "__main__":
    main()
