"""What makes two help states the same: all that can decide what an idea does there.

It counts: the task (its text, columns, metric, rows and baseline, which tell its data), the
implementer and its options, the kind of sandbox, its options and limits, the longest time of a
cell, the selection policy; each action with the words beside it, how it ended, what it showed and
the idea that it brought; each solution's code and its validation and public score; the best one;
the workspace's solution.py and all else in it; the request.

It does not: when, how long, at what cost; the seed of the session (a rollout has its own), its
ideator, its limits but the one above; what was left of them; machines, their libraries and paths;
private scores of solutions; that the session was broken off and gone on with. Of texts that are
shown, times, durations, rates, memory addresses, numbers of notebook cells and the folders of
absolute paths do not count. Of files, owners, times and permissions of others than the owner do
not, nor what lies in a folder that a library keeps for itself (`__pycache__`, `catboost_info`,
`.ipynb_checkpoints`).
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Any

import msgspec

from mle_ideator.journal import Event, Resumed, Solved, Started, Stepped
from mle_ideator.rl.states.recorded import Listing, Recorded
from mle_ideator.sandboxes.workspaces.snapshots import Entry
from mle_ideator.types import Action, HelpRequest, Score, Scores, SeekHelp, Step, Task

VERSION = 1
"""Of what is counted: another version names states otherwise."""
_TASK = (
    *("id", "description", "type", "metric", "id_column", "targets", "prediction", "classes"),
    *("rows", "public_feedback", "min_delta"),
)
_CONFIG = ("implementer", "implementer_options", "sandbox_options", "sandbox_limits", "selection")
_KEPT_BY_LIBRARIES = {"__pycache__", "catboost_info", ".ipynb_checkpoints"}
_DIGITS = 9
_NUMBER = r"\d+(?:[.,]\d+)?(?:e[-+]?\d+)?"
_UNIT = r"(?:ns|[uµμ]s|ms|s|secs?|seconds?|mins?|minutes?|h|hours?)"
_TIMES = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?",
    r"\b\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d+)?\b",
    rf"(?<![\d.,]){_NUMBER} ?[a-zA-Z]*/(?:s|sec|second|it)\b",
    rf"(?<![\w.,]){_NUMBER} ?{_UNIT}\b",
    rf"\b(?:took|elapsed|time|duration|runtime)\b[ :=]{{1,3}}{_NUMBER}(?: ?{_UNIT}\b)?",
)
_TIME = re.compile("|".join(_TIMES), re.IGNORECASE)
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_CELL = re.compile(r"\bIn ?\[\d+\]")
_FOLDERS = re.compile(r"(?<![\w/.:~-])/(?:[^\s/'\"<>:,;()\[\]]+/)+")


def identity_of(state: Recorded) -> str:
    """SHA-256, in hex, of all that counts."""
    counted = {
        "version": VERSION,
        "task": _of_task(state.started.task),
        "with": _of_setup(state),
        "steps": [_of_step(e.step) for e in state.events if isinstance(e, Stepped)],
        "solutions": [_of_solved(e) for e in state.events if isinstance(e, Solved)],
        "code": state.asked.code,
        "workspace": _of_files(state.listing) if state.listing else [],
        "request": _of_request(state.asked.request),
    }
    return hashlib.sha256(msgspec.json.encode(counted, order="deterministic")).hexdigest()


@lru_cache(maxsize=512)  # states share most of their steps with the one they were reached from
def timeless(text: str) -> str:
    """A shown text without what differs between two runs of the same."""
    for pattern, instead in ((_TIME, "<time>"), (_ADDRESS, "<address>"), (_CELL, "In[]")):
        text = pattern.sub(instead, text)
    return _FOLDERS.sub("/", text)


def _of_task(task: Task) -> dict[str, Any]:
    counted = {name: getattr(task, name) for name in _TASK}
    return counted | {"baseline": [*_of_scores(task.baseline), _of_score(task.baseline.private)]}


def _of_setup(state: Recorded) -> dict[str, Any]:
    config = state.started.config
    limits = config.get("limits") or {}
    return {
        **{name: config.get(name) for name in _CONFIG},
        "sandbox": _last_sandbox(state.events),
        "sandbox_argument": str(config.get("sandbox", "")).partition(":")[2],
        "step_time_s": limits.get("step_time_s"),
    }


def _last_sandbox(events: tuple[Event, ...]) -> str:
    return [event for event in events if isinstance(event, Started | Resumed)][-1].sandbox.kind


def _of_step(step: Step) -> list[Any]:
    shown = step.observation
    return [
        _of_action(step.action),
        timeless(step.thought),
        *(shown.status, shown.limits_hit, timeless(shown.text)),
        step.idea,
        step.solution,
    ]


def _of_action(action: Action) -> Any:
    """Whoever asks for help, what is asked is the same."""
    return _of_request(action.request) if isinstance(action, SeekHelp) else action


def _of_request(request: HelpRequest) -> list[str]:
    return [timeless(text) for text in (request.problem, request.attempts, request.goal)]


def _of_solved(event: Solved) -> list[Any]:
    solution = event.solution
    return [solution.step, solution.code, *_of_scores(solution.scores), event.best]


def _of_scores(scores: Scores) -> list[str | None]:
    return [_of_score(scores.validation), _of_score(scores.public)]


def _of_score(score: Score | None) -> str | None:
    """Processors differ in the last digits."""
    return None if score is None else f"{score.value:.{_DIGITS}g}"


def _of_files(listing: Listing) -> list[Any]:
    pairs = zip(listing.manifest.entries, listing.digests, strict=True)
    return sorted(
        [entry.path, entry.kind, _of_mode(entry), entry.target, digest or ""]
        for entry, digest in pairs
        if _KEPT_BY_LIBRARIES.isdisjoint(entry.path.split("/"))
    )


def _of_mode(entry: Entry) -> int:
    """A link has none of its own."""
    return 0 if entry.kind == "link" else entry.mode & 0o700
