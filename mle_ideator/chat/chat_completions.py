"""Chat Completions, by OpenAI and by the many servers that speak it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from mle_ideator.chat.clients import Reading
from mle_ideator.chat.endings import finish_of, gave_up
from mle_ideator.chat.failures import Failure
from mle_ideator.chat.openai_client import OpenAIEndpoint
from mle_ideator.chat.prices import Price, usage_of
from mle_ideator.chat.specs import Address, Key
from mle_ideator.chat.turns import (
    arguments_text,
    as_function,
    as_turn,
    joined,
    split_reasoning,
    without_system,
)
from mle_ideator.messages import CallOptions, Completion, Message, ToolCall
from mle_ideator.types import Usage

_LIMITS = ("max_tokens", "max_completion_tokens")


class ChatCompletions(OpenAIEndpoint):
    """One model by Chat Completions. A `local` one is not OpenAI's."""

    def __init__(
        self, address: Address, key: Key, price: Price | None, *, local: bool = False
    ) -> None:
        super().__init__(address, key, price)
        self._local = local
        self._knows_context = not local

    async def _answer(
        self, messages: Sequence[Message], options: CallOptions, reading: Reading
    ) -> Completion:
        from openai.types.chat import ChatCompletion

        if not self._knows_context:
            self._knows_context = True
            self.context_tokens = await self._served_context()
        request = self._request(messages, options)
        most = request[self._limit_word()]
        answer = _Answer()
        async with await self._client().chat.completions.create(**request) as stream:
            reading.began = True
            whole = await self._whole(stream.response)
            if whole is not None:
                answer.add(ChatCompletion.construct(**whole))
            else:
                async for chunk in stream:
                    answer.add(chunk)
            answer.check(stream.response.headers.get("content-type", ""))
        return answer.completion(self.price, most, local=self._local)

    # ------------------------------------------------------------------------------ asking

    def _request(self, messages: Sequence[Message], options: CallOptions) -> dict[str, Any]:
        turns = without_system(messages) if "system" in self._without else joined(messages)
        wanted = {
            "model": self._address.model,
            "messages": [as_turn(turn, arguments_text) for turn in turns],
            self._limit_word(): self._limit(options),
            "stream_options": {"include_usage": True},
            "temperature": options.temperature,
            "reasoning_effort": options.effort,
            "stop": list(options.stop),
            "seed": options.seed,
            "tools": [as_function(tool) for tool in options.tools],
            "response_format": options.json_schema and _schema(options.json_schema),
        }
        if self._without & {"stream_options", "stream"}:
            del wanted["stream_options"]
        return {k: v for k, v in wanted.items() if v not in (None, [])} | self._streaming()

    def _limit_word(self) -> str:
        first, second = _LIMITS if self._local else reversed(_LIMITS)
        return second if first in self._without else first

    def _says_otherwise(self, word: str) -> bool:
        if word not in (*_LIMITS, "stream_options", "system"):
            return super()._says_otherwise(word)
        self._without.add(word)
        return not self._without.issuperset(_LIMITS)

    async def _served_context(self) -> int | None:
        """The context's size as vLLM or llama.cpp tell it among their models."""
        from openai import OpenAIError

        with contextlib.suppress(OpenAIError, TimeoutError, AttributeError, TypeError, ValueError):
            async with asyncio.timeout(5.0):
                page = await self._client().models.list()
            for model in page.data:
                if model.id == self._address.model or len(page.data) == 1:
                    told = model.model_dump()
                    size = told.get("max_model_len") or (told.get("meta") or {}).get("n_ctx")
                    return int(size) if size else None
        return None


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    # OpenAI is strict only about schemas that name everything.
    strict = schema.get("additionalProperties") is False
    described = {"name": "answer", "schema": schema, "strict": strict}
    return {"type": "json_schema", "json_schema": described}


# ------------------------------------------------------------------------------------ reading


class _Answer:
    """An answer, put together from what the stream brings."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[dict[str, str]] = []
        self._places: dict[int, int] = {}
        self._finish: str | None = None
        self._refusal = False
        self._usage: Any = None

    def add(self, chunk: Any) -> None:
        """Add a piece of the answer, or the whole. Of several answers only the first counts."""
        self._usage = getattr(chunk, "usage", None) or self._usage
        for choice in getattr(chunk, "choices", None) or []:
            if not getattr(choice, "index", 0):
                said = getattr(choice, "delta", None) or getattr(choice, "message", None)
                self._add_said(said)
                self._finish = getattr(choice, "finish_reason", None) or self._finish

    def _add_said(self, said: Any) -> None:
        refusal = getattr(said, "refusal", None)
        self._refusal = self._refusal or bool(refusal)
        self._text.append(getattr(said, "content", None) or refusal or "")
        shown = getattr(said, "reasoning_content", None)
        self._reasoning.append(shown or getattr(said, "reasoning", None) or "")
        for number, part in enumerate(getattr(said, "tool_calls", None) or []):
            self._add_call(number, part)

    def _add_call(self, number: int, part: Any) -> None:
        """Pieces of a call have its index; some servers number all calls 0 and give new ids."""
        told = getattr(part, "index", None)
        index = number if told is None else told
        place = self._places.get(index)
        if place is None or (part.id and self._calls[place]["id"] not in ("", part.id)):
            place = self._places[index] = len(self._calls)
            self._calls.append({"id": "", "name": "", "arguments": ""})
        call = self._calls[place]
        call["id"] = part.id or call["id"]
        if part.function is not None:
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""

    def check(self, content_type: str) -> None:
        """Raise if this is no whole answer."""
        if gave_up(self._finish):
            raise Failure("broken", f"the server gave up ({self._finish})", billed=True)
        if self._finish is not None:
            return
        if "event-stream" not in content_type:
            raise Failure(
                "wrong",
                f"{content_type or 'something'} came where an event stream should: is the URL "
                "right? Most end in /v1.",
            )
        raise Failure("broken", "the stream ended before the answer did", billed=True)

    def completion(self, price: Price | None, most: int, *, local: bool) -> Completion:
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        if local and not reasoning:
            reasoning, text = split_reasoning(text)
        calls = tuple(
            ToolCall(call["id"] or f"call_{i}", call["name"], call["arguments"])
            for i, call in enumerate(self._calls)
        )
        usage = _usage(self._usage, price)
        reason = "refusal" if self._refusal else str(self._finish)
        return Completion(
            text=text,
            reasoning=reasoning,
            calls=calls,
            usage=usage,
            finish_reason=finish_of(
                reason, calls=bool(calls), output_tokens=usage.output_tokens, most=most
            ),
        )


def _usage(told: Any, price: Price | None) -> Usage:
    of_input = getattr(told, "prompt_tokens_details", None)
    of_output = getattr(told, "completion_tokens_details", None)
    cached = getattr(of_input, "cached_tokens", None)
    return usage_of(
        price,
        input_tokens=getattr(told, "prompt_tokens", None),
        output_tokens=getattr(told, "completion_tokens", None),
        cached=getattr(told, "prompt_cache_hit_tokens", None) if cached is None else cached,
        written=getattr(of_input, "cache_write_tokens", None),
        reasoning=getattr(of_output, "reasoning_tokens", None),
    )
