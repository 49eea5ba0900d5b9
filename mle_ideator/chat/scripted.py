"""A chat model that plays recorded replies: for tests, demonstrations, offline sessions.

`scripted:FILE`, where FILE is YAML or JSON: a list of replies, or a mapping that says more,

    latency_s: 0.05            # every reply takes so long
    context_tokens: 8000       # more input than this overflows
    replies:
      - a text
      - {text: …, reasoning: …, calls: [{name: …, arguments: {…}}], finish_reason: length,
         usage: {input_tokens: 900, output_tokens: 12}, latency_s: 2, expect: a regex}
      - {error: busy}          # or broken, or overflow
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from mle_ideator.errors import AgentError, ContextOverflow, UsageError
from mle_ideator.messages import CallOptions, Completion, Message, ToolCall
from mle_ideator.plain_text import joined_lines
from mle_ideator.types import Usage, Value

BYTES_A_TOKEN = 4
"""What a token has on average; good enough where nothing is counted."""


class ScriptedCall(Value, frozen=True, kw_only=True):
    """A tool call; arguments are JSON as a text, or a mapping that is written as such."""

    name: str
    arguments: str | dict[str, Any] = ""
    id: str | None = None


class Reply(Value, frozen=True, kw_only=True):
    """One recorded answer, or the failure that came in its place."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish_reason: Literal["stop", "length", "tool_calls", "refused"] | None = None
    usage: Usage | None = None
    """Estimated from the texts where it is not given."""
    latency_s: float | None = None
    expect: str | None = None
    """A regex that the last message must contain, so that a recording notices when it is stale."""
    error: Literal["busy", "broken", "overflow"] | None = None


class Script(Value, frozen=True, kw_only=True):
    """The whole file."""

    replies: tuple[str | Reply, ...]
    latency_s: float = 0.0
    context_tokens: int | None = None


class ScriptedModel:
    """The n-th call gets the n-th reply, whoever calls; after the last one the last repeats.

    Options are accepted and change nothing: a recorded reply is what it is. It costs nothing.
    """

    priced = True

    def __init__(self, file: str) -> None:
        self.name = f"scripted:{file}"
        script = _read(file)
        self.context_tokens = script.context_tokens
        self._latency_s = script.latency_s
        self._replies = [Reply(text=r) if isinstance(r, str) else r for r in script.replies]
        self._numbers = itertools.count()

    async def complete(
        self, messages: Sequence[Message], options: CallOptions = CallOptions()
    ) -> Completion:
        """The next reply. Raises what the script says, or `AgentError` if it does not fit."""
        size = _tokens_in(messages)
        if self.context_tokens is not None and size > self.context_tokens:
            raise ContextOverflow(
                f"{self.name}: {size} tokens are more than its {self.context_tokens}."
            )
        number = next(self._numbers)
        reply = self._replies[min(number, len(self._replies) - 1)]
        self._check(reply, number + 1, messages)
        start = time.monotonic()
        await asyncio.sleep(self._latency_s if reply.latency_s is None else reply.latency_s)
        self._fail(reply)
        return Completion(
            text=reply.text,
            reasoning=reply.reasoning,
            calls=_calls(reply, number + 1),
            usage=_usage(reply, size, time.monotonic() - start),
            finish_reason=reply.finish_reason or ("tool_calls" if reply.calls else "stop"),
        )

    def _check(self, reply: Reply, number: int, messages: Sequence[Message]) -> None:
        last = messages[-1].text if messages else ""
        if reply.expect is not None and not re.search(reply.expect, last):
            raise AgentError(
                f"{self.name}: call {number} does not fit its script, which expects "
                f"{reply.expect!r} in the last message: {joined_lines(last)[:300]!r}"
            )

    def _fail(self, reply: Reply) -> None:
        if reply.error == "overflow":
            raise ContextOverflow(f"{self.name}: the script says that the context overflows.")
        if reply.error is not None:
            raise AgentError(f"{self.name}: the script says that the model is {reply.error}.")


# -------------------------------------------------------------------------------- the answer


def _calls(reply: Reply, number: int) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            id=call.id or f"call-{number}-{place}",
            name=call.name,
            arguments=_text_of(call.arguments),
        )
        for place, call in enumerate(reply.calls, 1)
    )


def _usage(reply: Reply, input_tokens: int, waited_s: float) -> Usage:
    if reply.usage is not None:
        return msgspec.structs.replace(reply.usage, calls=1, waited_s=waited_s)
    called = (_text_of(call.arguments) for call in reply.calls)
    reasoning = _tokens(reply.reasoning)
    output = _tokens(reply.text, *called) + reasoning
    return Usage(
        calls=1,
        input_tokens=input_tokens,
        output_tokens=output,
        reasoning_tokens=reasoning,
        waited_s=waited_s,
    )


def _tokens_in(messages: Sequence[Message]) -> int:
    return sum(_tokens(m.text, *(call.arguments for call in m.calls)) for m in messages)


def _tokens(*texts: str) -> int:
    """About as many tokens as the texts have."""
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return -(-size // BYTES_A_TOKEN)


def _text_of(arguments: str | dict[str, Any]) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


# ---------------------------------------------------------------------------------- the file


def _read(file: str) -> Script:
    what = f"the scripted model's file {file}"
    try:
        entries = yaml.safe_load(Path(file).read_text("utf-8-sig"))
        read = msgspec.convert(entries, Script | tuple[str | Reply, ...])
    except OSError as error:
        raise UsageError(f"{what} can not be read: {error.strerror}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} is no list of replies: {joined_lines(error)}.") from error
    script = read if isinstance(read, Script) else Script(replies=read)
    if not script.replies:
        raise UsageError(f"{what} holds no replies; it needs at least one.")
    for reply in script.replies:
        _check_regex(reply, what)
    return script


def _check_regex(reply: str | Reply, what: str) -> None:
    if isinstance(reply, Reply) and reply.expect is not None:
        try:
            re.compile(reply.expect)
        except re.error as error:
            raise UsageError(f"{what}: {reply.expect!r} is no regex: {error}.") from error
