"""Ideas read from a file, in order: for demonstrations, comparisons and tests."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from mle_ideator.errors import UsageError
from mle_ideator.plain_text import joined_lines
from mle_ideator.types import HelpState, Idea, Proposal


class FixedIdeator:
    """Gives the n-th idea of a file to a session's n-th help request; the last one repeats.

    The spec is `fixed:FILE`. FILE is a YAML or JSON list of mappings, each with the texts
    `analysis`, `action` and `rationale`. `n` is counted from the trajectory, so sessions that share
    one ideator do not disturb each other. Raises `UsageError` for a file that is no such list.
    """

    def __init__(self, argument: str = "") -> None:
        self._ideas = _read(argument)

    async def propose(self, state: HelpState) -> Proposal:
        given = sum(step.idea is not None for step in state.situation.trajectory)
        return Proposal(self._ideas[min(given, len(self._ideas) - 1)])


def _read(argument: str) -> list[Idea]:
    if not argument:
        raise UsageError("the fixed ideator needs a file of ideas: write fixed:FILE")
    try:
        ideas = msgspec.convert(yaml.safe_load(Path(argument).read_text("utf-8-sig")), list[Idea])
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the ideas in {argument}: {joined_lines(error)}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{argument} is no YAML or JSON list of ideas (analysis, action, rationale): "
            f"{joined_lines(error)}"
        ) from error
    if not ideas:
        raise UsageError(f"{argument} holds no ideas; it needs at least one")
    if not all(text.strip() for i in ideas for text in (i.analysis, i.action, i.rationale)):
        raise UsageError(f"{argument}: analysis, action and rationale must not be empty")
    return ideas
