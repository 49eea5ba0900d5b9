"""Plays recorded actions: for tests, demonstrations, and replaying a session without its agent."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from mle_ideator.errors import UsageError
from mle_ideator.types import Action, Decision, Finish, Situation


class ScriptedImplementer:
    """The n-th step is the n-th action of a YAML or JSON file; after the last one it finishes.

    An entry is an action as the journal writes it: `{type: execute, language: python, code: …}`,
    `{type: seek_help, request: {problem: …, attempts: …, goal: …}}`, `{type: finish}`.
    """

    def __init__(self, file: str) -> None:
        try:
            entries = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
            self._actions = msgspec.convert(entries, tuple[Action, ...])
        except OSError as error:
            raise UsageError(f"script {file} can not be read: {error.strerror}.") from error
        except (yaml.YAMLError, msgspec.ValidationError) as error:
            raise UsageError(f"script {file} is no list of actions: {error}.") from error

    async def act(self, situation: Situation) -> Decision:
        played = len(situation.trajectory)
        if played < len(self._actions):
            return Decision(self._actions[played])
        return Decision(Finish("the script ends here"))
