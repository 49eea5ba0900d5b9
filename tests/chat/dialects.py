"""The three dialects that the misbehaving server speaks: what a good answer looks like in each, and
how each says that something is wrong, in the words of the real servers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

USAGE = {"input": 100, "cached": 40, "written": 10, "output": 30, "reasoning": 20}
"""Tokens: of 100 that went in, 40 were cached and 10 written to the cache."""


@dataclass(frozen=True)
class Reply:
    """What the model says."""

    text: str = "Hello there."
    reasoning: str = ""
    call: tuple[str, str, str] | None = None
    """Id, name, arguments."""
    finish: str = "stop"
    """One of stop, length, refused, tool_calls."""
    usage: bool = True


def _sse(event: dict[str, Any], *, named: bool = False) -> str:
    head = f"event: {event['type']}\n" if named else ""
    return f"{head}data: {json.dumps(event)}\n\n"


class ChatCompletions:
    path = "/chat/completions"
    finish: ClassVar = {"stop": "stop", "length": "length", "refused": "content_filter"}
    refused: ClassVar = {
        "temperature": "Unsupported value: 'temperature' does not support 0.5 with this model. "
        "Only the default (1) value is supported.",
        "stop": "Unsupported parameter: 'stop' is not supported with this model.",
        "seed": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are "
        "not permitted', 'input': 7}]",
        "effort": "Unrecognized request argument supplied: reasoning_effort",
        "json_schema": "Cannot use custom grammar constraints with tools.",
        "tools": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to '
        "be set",
    }
    overflow = (
        400,
        "This model's maximum context length is 4096 tokens. However, your messages resulted in "
        "5000 tokens. Please reduce the length of the messages.",
        "context_length_exceeded",
    )

    def events(self, reply: Reply) -> list[str]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": part} for part in _halves(reply.reasoning)]
        deltas += [{"content": part} for part in _halves(reply.text)]
        if reply.call is not None:
            identity, name, arguments = reply.call
            first, second = _halves(arguments)
            start = {"index": 0, "id": identity, "type": "function"}
            function = {"name": name, "arguments": first}
            deltas.append({"tool_calls": [{**start, "function": function}]})
            deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": second}}]})
        finish = "tool_calls" if reply.call else self.finish[reply.finish]
        chunks = [_chunk([{"index": 0, "delta": d, "finish_reason": None}]) for d in deltas]
        chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
        if reply.usage:
            chunks.append(_chunk([], usage=self._usage()))
        return [*map(_sse, chunks), "data: [DONE]\n\n"]

    def _usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": USAGE["input"],
            "completion_tokens": USAGE["output"],
            "total_tokens": USAGE["input"] + USAGE["output"],
            "prompt_tokens_details": {
                "cached_tokens": USAGE["cached"],
                "cache_write_tokens": USAGE["written"],
            },
            "completion_tokens_details": {"reasoning_tokens": USAGE["reasoning"]},
        }

    def error(self, message: str, code: str = "") -> dict[str, Any]:
        return {"error": {"message": message, "type": "invalid_request_error", "code": code}}

    def error_in_stream(self, message: str, code: str) -> str:
        return _sse(self.error(message, code))


class Responses:
    path = "/responses"
    refused: ClassVar = {
        "temperature": "Unsupported parameter: 'temperature' is not supported with this model.",
        "effort": "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        "json_schema": "Invalid parameter: 'text.format' of type 'json_schema' is not supported "
        "with this model.",
        "tools": "Unsupported parameter: 'tools' is not supported with this model.",
    }
    overflow = (
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        "context_length_exceeded",
    )

    def events(self, reply: Reply) -> list[str]:
        output: list[dict[str, Any]] = []
        if reply.reasoning:
            summary = [{"type": "summary_text", "text": reply.reasoning}]
            output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
        if reply.text:
            kind = "refusal" if reply.finish == "refused" else "output_text"
            key = "refusal" if reply.finish == "refused" else "text"
            content = [{"type": kind, key: reply.text, "annotations": []}]
            output.append(
                {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
            )
        if reply.call is not None:
            identity, name, arguments = reply.call
            call = {"call_id": identity, "name": name, "arguments": arguments}
            output.append({"type": "function_call", "id": "fc_1", **call})
        cut = reply.finish == "length"
        response = {
            "id": "resp_1",
            "object": "response",
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "error": None,
            "output": output,
            "usage": self._usage() if reply.usage else None,
        }
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {**response, "output": [], "usage": None}},
            *(
                {"type": "response.output_text.delta", "delta": part, "output_index": 0}
                for part in _halves(reply.text)
            ),
            *({"type": "response.output_item.done", "item": item} for item in output),
            {"type": f"response.{response['status']}", "response": response},
        ]
        return [_sse(event, named=True) for event in events]

    def _usage(self) -> dict[str, Any]:
        return {
            "input_tokens": USAGE["input"],
            "output_tokens": USAGE["output"],
            "total_tokens": USAGE["input"] + USAGE["output"],
            "input_tokens_details": {
                "cached_tokens": USAGE["cached"],
                "cache_write_tokens": USAGE["written"],
            },
            "output_tokens_details": {"reasoning_tokens": USAGE["reasoning"]},
        }

    def error(self, message: str, code: str = "") -> dict[str, Any]:
        return {"error": {"message": message, "type": "invalid_request_error", "code": code}}

    def error_in_stream(self, message: str, code: str) -> str:
        error = {"code": code, "message": message}
        response = {"id": "resp_1", "status": "failed", "error": error, "output": []}
        return _sse({"type": "response.failed", "response": response}, named=True)


class Messages:
    path = "/messages"
    finish: ClassVar = {"stop": "end_turn", "length": "max_tokens", "refused": "refusal"}
    refused: ClassVar = {
        "temperature": "`temperature` is deprecated for this model.",
        "stop": "stop_sequences: Extra inputs are not permitted",
        "json_schema": "output_config.format: Extra inputs are not permitted",
        "effort": "This model does not support the effort parameter.",
        "tools": "'claude-0' does not support tools.",
    }
    overflow = (400, "prompt is too long: 5000 tokens > 4096 maximum", "invalid_request_error")

    def events(self, reply: Reply) -> list[str]:
        blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        if reply.reasoning:
            deltas = [{"type": "thinking_delta", "thinking": p} for p in _halves(reply.reasoning)]
            deltas.append({"type": "signature_delta", "signature": "c2ln"})
            blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
        if reply.text:
            deltas = [{"type": "text_delta", "text": part} for part in _halves(reply.text)]
            blocks.append(({"type": "text", "text": ""}, deltas))
        if reply.call is not None:
            identity, name, arguments = reply.call
            deltas = [
                {"type": "input_json_delta", "partial_json": part} for part in _halves(arguments)
            ]
            block = {"type": "tool_use", "id": identity, "name": name, "input": {}}
            blocks.append((block, deltas))
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        begun = {**message, "model": "m", "stop_reason": None}
        finish = "tool_use" if reply.call else self.finish[reply.finish]
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": begun | self._usage(reply, output=1)},
            {"type": "ping"},
        ]
        for index, (block, deltas) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events += [
                {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
            ]
            events.append({"type": "content_block_stop", "index": index})
        end = {"type": "message_delta", "delta": {"stop_reason": finish, "stop_sequence": None}}
        events.append(end | self._usage(reply, output=USAGE["output"]))
        events.append({"type": "message_stop"})
        return [_sse(event, named=True) for event in events]

    def _usage(self, reply: Reply, output: int) -> dict[str, Any]:
        if not reply.usage:
            return {}
        counts = {
            "input_tokens": USAGE["input"] - USAGE["cached"] - USAGE["written"],
            "cache_read_input_tokens": USAGE["cached"],
            "cache_creation_input_tokens": USAGE["written"],
            "output_tokens": output,
            "output_tokens_details": {"thinking_tokens": USAGE["reasoning"]},
        }
        return {"usage": counts}

    def error(self, message: str, code: str = "") -> dict[str, Any]:
        error = {"type": code or "invalid_request_error", "message": message}
        return {"type": "error", "error": error}

    def error_in_stream(self, message: str, code: str) -> str:
        return _sse(self.error(message, code), named=True)


Dialect = ChatCompletions | Responses | Messages
DIALECTS: tuple[Dialect, ...] = (ChatCompletions(), Responses(), Messages())


def _chunk(choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return {**head, "choices": choices, **more}


def _halves(text: str) -> tuple[str, str]:
    """Streams cut anywhere."""
    return text[: len(text) // 2], text[len(text) // 2 :]
