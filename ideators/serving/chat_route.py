"""The language of OpenAI's Chat Completions, for the model behind a prompted ideator.

What would change the answer and can not be heeded is refused by name; what changes nothing (`user`,
`metadata` …) is accepted. A streamed answer comes in one piece once it is whole, so that what goes
wrong still has a status of its own.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta
from starlette.responses import Response

from mle_ideator.ideators.serving.answers import Refused, as_json, invalid
from mle_ideator.messages import CallOptions, Completion, Message, Tool, ToolCall
from mle_ideator.types import Usage

_Effort = Literal["low", "medium", "high"] | None
_Tokens = Annotated[int, Meta(ge=1)]
_REASONS = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}


class _Loose(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a request, of which more is sent than matters."""


class _Part(_Loose, frozen=True, kw_only=True):
    type: str
    text: str = ""


class _Function(_Loose, frozen=True, kw_only=True):
    name: str
    arguments: str = ""
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object"})


class _Call(_Loose, frozen=True, kw_only=True):
    id: str
    function: _Function


class _Tool(_Loose, frozen=True, kw_only=True):
    type: Literal["function"]
    function: _Function


class _Message(_Loose, frozen=True, kw_only=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str = ""

    def message(self) -> Message:
        content = self.content or ""
        return Message(
            role="system" if self.role == "developer" else self.role,
            text=content if isinstance(content, str) else "".join(part.text for part in content),
            calls=tuple(
                ToolCall(call.id, call.function.name, call.function.arguments)
                for call in self.tool_calls or ()
            ),
            call_id=self.tool_call_id,
        )


class _JsonSchema(_Loose, frozen=True, kw_only=True):
    schema: dict[str, Any]


class _Format(_Loose, frozen=True, kw_only=True):
    type: str
    json_schema: _JsonSchema | None = None


class _StreamOptions(_Loose, frozen=True, kw_only=True):
    include_usage: bool = False


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to `POST /v1/chat/completions`."""

    messages: list[_Message]
    model: str = ""
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: _Tokens | None = None
    max_completion_tokens: _Tokens | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    tools: list[_Tool] | None = None
    tool_choice: Any = None
    response_format: _Format | None = None
    n: int | None = None
    # These change nothing in the answer.
    user: Any = None
    metadata: Any = None
    store: Any = None
    service_tier: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None

    def unsupported(self) -> str:
        """What is wished for in the right form and can not be heeded; empty if nothing is."""
        contents = [m.content for m in self.messages if isinstance(m.content, list)]
        kinds = {part.type for parts in contents for part in parts}
        form = self.response_format.type if self.response_format else "text"
        unheeded = {
            "n": self.n not in (None, 1),
            "tool_choice": self.tool_choice not in (None, "auto"),
            "reasoning_effort": self.reasoning_effort not in (None, "low", "medium", "high"),
            f"response_format.type {form}": form not in ("text", "json_schema"),
            **{f"messages.content.type {kind}": kind != "text" for kind in sorted(kinds)},
        }
        return next((name for name, is_so in unheeded.items() if is_so), "")

    def conversation(self) -> list[Message]:
        return [message.message() for message in self.messages]

    def options(self) -> CallOptions:
        default = CallOptions()
        shape = self.response_format and self.response_format.json_schema
        return CallOptions(
            max_tokens=self.max_completion_tokens or self.max_tokens or default.max_tokens,
            temperature=self.temperature,
            effort=cast(_Effort, self.reasoning_effort),
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
            seed=self.seed,
            tools=tuple(
                Tool(tool.function.name, tool.function.description, tool.function.parameters)
                for tool in self.tools or ()
            ),
            json_schema=shape.schema if shape else None,
        )


def read(body: bytes) -> Ask:
    """Raises `Refused`."""
    try:
        ask = msgspec.json.decode(body, type=Ask)
    except (msgspec.DecodeError, RecursionError) as error:
        found = re.fullmatch(r"Object contains unknown field `(\w+)`", str(error))
        if found:
            raise _unsupported(found[1]) from error
        raise invalid(error) from error
    if name := ask.unsupported():
        raise _unsupported(name)
    if not ask.messages:
        raise Refused(422, "invalid", "messages must not be empty.")
    form = ask.response_format
    if form and form.type == "json_schema" and form.json_schema is None:
        raise Refused(422, "invalid", "response_format.json_schema is missing.")
    return ask


def _unsupported(name: str) -> Refused:
    message = f"the parameter {name!r} is not supported here; leave it out."
    return Refused(400, "unsupported_parameter", message)


def written(ask: Ask, completion: Completion, model: str) -> Response:
    """The answer, whole or as a stream of events."""
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}
    if not ask.stream:
        return as_json(_whole(head, completion))
    with_usage = ask.stream_options is not None and ask.stream_options.include_usage
    events = "".join(f"data: {text}\n\n" for text in _events(head, completion, with_usage))
    return Response(events, media_type="text/event-stream")


def models(name: str, context_tokens: int | None) -> Response:
    """The one model that is there, with the size of its context as vLLM tells it."""
    card = {"id": name, "object": "model", "created": 0, "owned_by": "mle-ideator"}
    if context_tokens is not None:
        card["max_model_len"] = context_tokens
    return as_json({"object": "list", "data": [card]})


def _whole(head: dict[str, Any], completion: Completion) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", **_said(completion)},
        "finish_reason": _reason(completion),
    }
    usage = _usage(completion.usage)
    return {"object": "chat.completion", **head, "choices": [choice], "usage": usage}


def _events(head: dict[str, Any], completion: Completion, with_usage: bool) -> Iterator[str]:
    said = _said(completion)
    for index, call in enumerate(said.get("tool_calls", ())):
        call["index"] = index
    for delta, reason in (
        ({"role": "assistant", "content": ""}, None),
        (said, None),
        ({}, _reason(completion)),
    ):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield _chunk(head, choices=[choice])
    if with_usage:
        yield _chunk(head, choices=[], usage=_usage(completion.usage))
    yield "[DONE]"


def _chunk(head: dict[str, Any], **rest: Any) -> str:
    return msgspec.json.encode({"object": "chat.completion.chunk", **head, **rest}).decode()


def _said(completion: Completion) -> dict[str, Any]:
    said: dict[str, Any] = {"content": completion.text}
    if completion.reasoning:
        said["reasoning_content"] = completion.reasoning
    if completion.calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in completion.calls
        ]
    return said


def _reason(completion: Completion) -> str:
    return _REASONS.get(completion.finish_reason, "content_filter")


def _usage(usage: Usage) -> dict[str, Any] | None:
    """Unknown usage is told as none."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
