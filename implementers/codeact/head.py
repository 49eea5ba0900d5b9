"""What stays the same all session, byte for byte: the rules and the task."""

from __future__ import annotations

import re

from mle_ideator.implementers.codeact.preview import preview
from mle_ideator.messages import Message
from mle_ideator.prompts import render
from mle_ideator.types import Situation

_MOST_CLASSES = 40


def head(situation: Situation, *, tools: bool) -> tuple[Message, ...]:
    """The system message, the same for all tasks, and the task with what the sandbox has."""
    task, libraries = situation.task, situation.sandbox.libraries
    described = render(
        "codeact/task",
        task=task,
        classes=task.classes[:_MOST_CLASSES],
        more_classes=max(0, len(task.classes) - _MOST_CLASSES),
        files=preview(task.inputs),
        sandbox=situation.sandbox,
        pandas_3=version(libraries.get("pandas")) >= (3,),
        numpy_2=version(libraries.get("numpy")) >= (2,),
        sklearn_1_6=version(libraries.get("scikit-learn")) >= (1, 6),
    )
    return Message("system", render("codeact/system", tools=tools)), Message("user", described)


def version(text: str | None) -> tuple[int, ...]:
    """`3.1.0rc1` as (3, 1, 0); what is not installed is older than everything."""
    numbers = re.match(r"\d+(?:\.\d+)*", text or "")
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
