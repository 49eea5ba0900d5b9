"""Anthropic's Messages API, on its official client.

`anthropic:MODEL` asks Anthropic, or the server that `ANTHROPIC_BASE_URL` names;
`anthropic:MODEL@URL` asks the server at that URL. The key is `ANTHROPIC_API_KEY`. What is marked as
stable in the messages is kept in the provider's cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from mle_ideator.chat.calls import PatientModel
from mle_ideator.chat.clients import HttpEndpoint, Reading, tls
from mle_ideator.chat.endings import finish_of
from mle_ideator.chat.failures import Failure
from mle_ideator.chat.prices import Price, count_of, price_of, usage_of
from mle_ideator.chat.specs import Address, needs
from mle_ideator.chat.turns import arguments_of
from mle_ideator.messages import CallOptions, Completion, Message, Tool, ToolCall
from mle_ideator.types import Usage

HOST = "api.anthropic.com"
MOST_MARKS = 4
"""Cache marks that one request may have."""

_LEAST_BUDGET = 1024
_THINKING_TOKENS = {"low": 1024, "medium": 4096, "high": 16384}
"""For models that know budgets for thinking, and no effort."""


def anthropic(argument: str) -> PatientModel:
    """`MODEL` or `MODEL@URL` by Messages, which knows no seed. Raises `UsageError`."""
    needs("anthropic", "anthropic")
    address = Address("anthropic", argument, f"https://{HOST}", "ANTHROPIC_BASE_URL")
    key = address.key("ANTHROPIC_API_KEY", official=HOST)
    return PatientModel(Messages(address, key, price_of(address.model)), refused={"seed"})


class Messages(HttpEndpoint):
    """One model by the Messages API."""

    def _new_client(self) -> Any:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        return AsyncAnthropic(
            api_key=self._key.value or "none",
            base_url=self._address.url.removesuffix("/v1"),
            timeout=self._timeout(),
            http_client=DefaultAsyncHttpxClient(verify=tls()),
            max_retries=0,
        )

    def _sdk_error(self) -> type[Exception]:
        from anthropic import AnthropicError

        return AnthropicError

    async def _answer(
        self, messages: Sequence[Message], options: CallOptions, reading: Reading
    ) -> Completion:
        from anthropic.types import Message as Whole

        request = self._request(messages, options)
        answer = _Answer()
        async with await self._client().messages.create(**request) as stream:
            reading.began = True
            whole = await self._whole(stream.response)
            if whole is not None:
                answer.add_whole(Whole.construct(**whole))
            else:
                async for event in stream:
                    answer.add(event)
        return answer.completion(self.price, request["max_tokens"])

    # ------------------------------------------------------------------------------ asking

    def _request(self, messages: Sequence[Message], options: CallOptions) -> dict[str, Any]:
        blocks = _blocks(messages)
        wanted: dict[str, Any] = {
            "model": self._address.model,
            "max_tokens": self._limit(options),
            "system": [block for role, block in blocks if role == "system"],
            "messages": _turns((role, block) for role, block in blocks if role != "system"),
            "stop_sequences": list(options.stop),
            "tools": [_tool(tool) for tool in options.tools],
            "thinking": self._thinking(options),
        }
        asked = {k: v for k, v in wanted.items() if v not in (None, [])} | self._streaming()
        # The client's own arguments differ from version to version.
        asked["extra_body"] |= self._extra(options)
        return asked

    def _thinking(self, options: CallOptions) -> dict[str, Any] | None:
        if options.effort is None:
            return None
        if "effort" not in self._without:
            return {"type": "adaptive", "display": "summarized"}
        budget = min(_THINKING_TOKENS[options.effort], self._limit(options) // 2)
        return {"type": "enabled", "budget_tokens": budget} if budget >= _LEAST_BUDGET else None

    def _extra(self, options: CallOptions) -> dict[str, Any]:
        output: dict[str, Any] = {}
        if options.effort is not None and "effort" not in self._without:
            output["effort"] = options.effort
        if options.json_schema is not None:
            output["format"] = {"type": "json_schema", "schema": options.json_schema}
        extra = {"temperature": options.temperature, "output_config": output}
        return {name: value for name, value in extra.items() if value not in (None, {})}

    def _says_otherwise(self, word: str) -> bool:
        if word != "effort" or word in self._without:
            return super()._says_otherwise(word)
        self._without.add(word)
        return True


def _blocks(messages: Sequence[Message]) -> list[tuple[str, dict[str, Any]]]:
    """What is said, block by block, each with the role of who says it."""
    marked = _marked(messages)
    result: list[tuple[str, dict[str, Any]]] = []
    for number, message in enumerate(messages):
        blocks = _blocks_of(message)
        if number in marked and blocks:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
        role = "user" if message.role == "tool" else message.role
        result += [(role, block) for block in blocks]
    return result


def _blocks_of(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        said = message.text if message.text.strip() else "(nothing)"
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": said}]
    # Blank text is refused.
    text = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return text + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call)}
        for call in message.calls
    ]


def _marked(messages: Sequence[Message]) -> set[int]:
    """Where caches end: after the first stable message, and after the last ones."""
    stable = [number for number, message in enumerate(messages) if message.stable]
    return set(stable if len(stable) <= MOST_MARKS else [stable[0], *stable[1 - MOST_MARKS :]])


def _turns(blocks: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The roles take turns."""
    return [
        {"role": role, "content": [block for _, block in turn]}
        for role, turn in groupby(blocks, key=lambda pair: pair[0])
    ]


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    }


# ------------------------------------------------------------------------------------ reading


class _Answer:
    """An answer, put together from the events of its stream."""

    def __init__(self) -> None:
        self._blocks: dict[int, Any] = {}
        self._pieces: dict[int, list[str]] = {}
        self._usage: dict[str, Any] = {}
        self._finish: str | None = None
        self._ended = False

    def add(self, event: Any) -> None:
        if event.type == "message_start":
            self._count(event.message.usage)
        elif event.type == "content_block_start":
            self._blocks[event.index] = event.content_block
            self._pieces[event.index] = []
        elif event.type == "content_block_delta":
            piece = _piece(event.delta)
            self._pieces[event.index].append(piece)
        elif event.type == "message_delta":
            self._finish = event.delta.stop_reason or self._finish
            self._count(event.usage)
        elif event.type == "message_stop":
            self._ended = True

    def add_whole(self, message: Any) -> None:
        self._blocks = dict(enumerate(message.content))
        self._pieces = {index: [] for index in self._blocks}
        self._count(message.usage)
        self._finish = message.stop_reason
        self._ended = True

    def _count(self, usage: Any) -> None:
        """Later counts replace earlier ones."""
        if hasattr(usage, "model_dump"):
            told = usage.model_dump(warnings=False)
            self._usage |= {name: value for name, value in told.items() if value is not None}

    def completion(self, price: Price | None, most: int) -> Completion:
        if not self._ended or self._finish is None:
            raise Failure("broken", "the stream ended before the answer did", billed=True)
        usage = _usage(self._usage, price)
        calls = any(block.type == "tool_use" for block in self._blocks.values())
        return Completion(
            text="".join(self._of_type("text")),
            reasoning="\n\n".join(self._of_type("thinking")),
            calls=tuple(
                ToolCall(block.id, block.name, "".join(self._pieces[i]) or json.dumps(block.input))
                for i, block in sorted(self._blocks.items())
                if block.type == "tool_use"
            ),
            usage=usage,
            finish_reason=finish_of(
                self._finish, calls=calls, output_tokens=usage.output_tokens, most=most
            ),
        )

    def _of_type(self, kind: str) -> list[str]:
        return [
            str(getattr(block, kind) or "") + "".join(self._pieces[i])
            for i, block in sorted(self._blocks.items())
            if block.type == kind
        ]


def _piece(delta: Any) -> str:
    for name in ("text", "thinking", "partial_json"):
        if isinstance(getattr(delta, name, None), str):
            return str(getattr(delta, name))
    return ""


def _usage(told: dict[str, Any], price: Price | None) -> Usage:
    fresh = count_of(told.get("input_tokens"))
    cached = count_of(told.get("cache_read_input_tokens", 0))
    written = count_of(told.get("cache_creation_input_tokens", 0))
    whole = None
    if fresh is not None and cached is not None and written is not None:
        whole = fresh + cached + written
    of_output = told.get("output_tokens_details")
    return usage_of(
        price,
        input_tokens=whole,
        output_tokens=told.get("output_tokens"),
        cached=cached,
        written=written,
        reasoning=of_output.get("thinking_tokens") if isinstance(of_output, dict) else None,
    )
