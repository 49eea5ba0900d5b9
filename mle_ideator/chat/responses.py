"""OpenAI's Responses API. Nothing is kept at the provider: each call brings all messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mle_ideator.chat.clients import Reading
from mle_ideator.chat.endings import finish_of
from mle_ideator.chat.failures import Failure, failure_told
from mle_ideator.chat.openai_client import OpenAIEndpoint
from mle_ideator.chat.prices import Price, usage_of
from mle_ideator.chat.turns import arguments_text, joined
from mle_ideator.messages import CallOptions, Completion, Message, Tool, ToolCall
from mle_ideator.types import Usage

_ENDS = {"response.completed", "response.incomplete", "response.failed"}


class Responses(OpenAIEndpoint):
    """One model by the Responses API."""

    async def _answer(
        self, messages: Sequence[Message], options: CallOptions, reading: Reading
    ) -> Completion:
        from openai.types.responses import Response

        request = self._request(messages, options)
        items: list[Any] = []
        async with await self._client().responses.create(**request) as stream:
            reading.began = True
            whole = await self._whole(stream.response)
            if whole is not None:
                response = Response.construct(**whole)
                return self._completion(response, items, request["max_output_tokens"])
            async for event in stream:
                if event.type == "response.output_item.done":
                    items.append(event.item)
                elif event.type == "error":
                    raise self._told_in_stream(event)
                elif event.type in _ENDS:
                    return self._completion(event.response, items, request["max_output_tokens"])
        raise Failure("broken", "the stream ended before the answer did", billed=True)

    # ------------------------------------------------------------------------------ asking

    def _request(self, messages: Sequence[Message], options: CallOptions) -> dict[str, Any]:
        wanted = {
            "model": self._address.model,
            "input": [item for message in joined(messages) for item in _items(message)],
            "max_output_tokens": self._limit(options),
            "temperature": options.temperature,
            "reasoning": self._reasoning(options),
            "tools": [_tool(tool) for tool in options.tools],
            "text": options.json_schema and {"format": _schema(options.json_schema)},
            "store": False,
        }
        asked = {name: value for name, value in wanted.items() if value not in (None, [])}
        return asked | self._streaming()

    def _reasoning(self, options: CallOptions) -> dict[str, str] | None:
        if options.effort is None:
            return None
        summary = {} if "reasoning.summary" in self._without else {"summary": "auto"}
        return {"effort": options.effort, **summary}

    def _says_otherwise(self, word: str) -> bool:
        # Summaries are for verified organisations only; reasoning works without.
        if word == "reasoning.summary":
            self._without.add(word)
            return True
        return super()._says_otherwise(word)

    # ----------------------------------------------------------------------------- reading

    def _completion(self, response: Any, items: Sequence[Any], most: int) -> Completion:
        if response.status == "failed" or response.error:
            raise self._told_in_stream(response.error)
        output = response.output or items
        parts = [part for item in output for part in (getattr(item, "content", None) or ())]
        said = [part for part in parts if part.type in ("output_text", "refusal")]
        calls = tuple(
            ToolCall(item.call_id or item.id or f"call_{i}", item.name, item.arguments)
            for i, item in enumerate(output)
            if item.type == "function_call"
        )
        reason = getattr(response.incomplete_details, "reason", None)
        refused = reason == "content_filter" or any(part.type == "refusal" for part in said)
        usage = _usage(response.usage, self.price)
        return Completion(
            text="".join(p.refusal if p.type == "refusal" else p.text for p in said),
            reasoning="\n\n".join(_shown_reasoning(output)),
            calls=calls,
            usage=usage,
            # llama.cpp calls an answer that it cut complete.
            finish_reason=finish_of(
                "refusal" if refused else response.status or "completed",
                calls=bool(calls),
                output_tokens=usage.output_tokens,
                most=most,
            ),
        )

    def _told_in_stream(self, error: Any) -> Failure:
        body = {name: getattr(error, name, None) for name in ("message", "code", "param", "type")}
        host, key = self._address.host, str(self._key)
        return self._learnt(failure_told(body, host=host, key=key, billed=True))


def _items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        output = {"call_id": message.call_id, "output": message.text}
        return [{"type": "function_call_output", **output}]
    said = [{"role": message.role, "content": message.text}] if message.text else []
    called = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments_text(call),
        }
        for call in message.calls
    ]
    return said + called


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    strict = schema.get("additionalProperties") is False
    return {"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}


def _shown_reasoning(output: Iterable[Any]) -> list[str]:
    thoughts = [item for item in output if item.type == "reasoning"]
    parts = [part for item in thoughts for part in (item.summary or item.content or ())]
    return [part.text for part in parts]


def _usage(told: Any, price: Price | None) -> Usage:
    of_input = getattr(told, "input_tokens_details", None)
    of_output = getattr(told, "output_tokens_details", None)
    return usage_of(
        price,
        input_tokens=getattr(told, "input_tokens", None),
        output_tokens=getattr(told, "output_tokens", None),
        cached=getattr(of_input, "cached_tokens", None),
        written=getattr(of_input, "cache_write_tokens", None),
        reasoning=getattr(of_output, "reasoning_tokens", None),
    )
