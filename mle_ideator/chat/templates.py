"""A tokenizer's chat template: from messages to tokens, and from what was written to its parts.

For models that run in this process; a server does this by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import jinja2
import msgspec

from mle_ideator.chat.calls import CallFailed
from mle_ideator.chat.prices import FREE, usage_of
from mle_ideator.chat.turns import (
    arguments_of,
    as_function,
    as_turn,
    joined,
    split_reasoning,
    without_system,
)
from mle_ideator.errors import UsageError
from mle_ideator.messages import CallOptions, Completion, Message, ToolCall
from mle_ideator.plain_text import joined_lines

_THOUGHT = "<think>"


class Prompt(NamedTuple):
    """What the model reads."""

    tokens: list[int]
    in_thought: bool
    """Does it end within reasoning, so that the reply starts there?"""


class Written(NamedTuple):
    """A reply taken apart."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]


class ChatTemplate:
    """The template of a Hugging Face tokenizer. Raises `UsageError` if it has none."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer = tokenizer
        try:
            self._source = str(tokenizer.get_chat_template(tools=[{}]))
        except ValueError as error:
            raise UsageError(
                f"{name} has no chat template: a base model does not answer messages. "
                "Take its instruction-tuned form."
            ) from error

    @property
    def refuses(self) -> set[str]:
        """The fields of `CallOptions` that it has no place for."""
        places = {"tools": "tools", "effort": "reasoning_effort"}
        return {option for option, place in places.items() if place not in self._source}

    def prompt(self, messages: Sequence[Message], options: CallOptions) -> Prompt:
        """The messages as tokens. Control tokens in them are text, not control.

        What the template refuses is told another way: a system message within the first user
        message, calls and results of tools as plain text. Raises `CallFailed`.
        """
        asked: dict[str, Any] = {}
        if options.tools:
            asked["tools"] = [as_function(tool) for tool in options.tools]
        if options.effort:
            asked["reasoning_effort"] = options.effort
        turns, text = self._accepted(messages, asked)
        encoded = self._render(turns, asked, return_dict=True, sanitize_control_tokens=True)
        return Prompt(list(encoded["input_ids"]), text.rstrip().endswith(_THOUGHT))

    def completion(
        self, reply: str, prompt: Prompt, options: CallOptions, *, tokens: int, ended: bool
    ) -> Completion:
        """A reply to a prompt, of so many tokens; if the model did not end it, it was cut."""
        written = read_reply(reply, in_thought=prompt.in_thought, with_tools=bool(options.tools))
        thought = len(self._tokenizer.encode(written.reasoning, add_special_tokens=False))
        return Completion(
            text=written.text,
            reasoning=written.reasoning,
            calls=written.calls,
            usage=usage_of(
                FREE,
                input_tokens=len(prompt.tokens),
                output_tokens=tokens,
                reasoning=min(thought, tokens),
            ),
            finish_reason=("tool_calls" if written.calls else "stop") if ended else "length",
        )

    def _accepted(
        self, messages: Sequence[Message], asked: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], str]:
        """The messages as the template takes them, and the text that it makes of them."""
        plain = messages if "tool_calls" in self._source else [_told(m) for m in messages]
        ways: list[Callable[[Sequence[Message]], list[Message]]] = [joined, without_system]
        refusal = "it loses the system message"
        for way in ways if any(m.role == "system" for m in messages) else ways[:1]:
            told = way(plain)
            turns = [as_turn(message, arguments_of) for message in told]
            try:
                text = self._render(turns, asked, tokenize=False)
            except jinja2.TemplateError as error:
                refusal = str(error)
                continue
            if told[0].role != "system" or told[0].text.strip() in text:
                return turns, text
        raise CallFailed("wrong", f"its chat template refuses the messages: {refusal}")

    def _render(self, turns: list[dict[str, Any]], asked: dict[str, Any], **how: Any) -> Any:
        return self._tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, **asked, **how
        )


def _told(message: Message) -> Message:
    """Without calls: what was called, and what came of it, in words."""
    called = [f"{call.name}({call.arguments})" for call in message.calls]
    text = "\n\n".join(part for part in (message.text, *called) if part)
    return Message("user" if message.role == "tool" else message.role, text)


def opened(name: str, **source: str) -> tuple[Any, Any]:
    """Config and tokenizer, read by transformers. Raises `UsageError`."""
    transformers = import_module("transformers")
    try:
        config = transformers.AutoConfig.from_pretrained(**source)
        return config, transformers.AutoTokenizer.from_pretrained(**source)
    except Exception as error:  # readers of other people's files raise anything
        raise UsageError(f"{name} can not be read: {joined_lines(error)}") from error


def context_of(config: Any, tokenizer: Any) -> int | None:
    """Tokens in and out together; a tokenizer that does not know says 10^30."""
    inner = config.get_text_config()
    known = [getattr(inner, "max_position_embeddings", None), tokenizer.model_max_length]
    return min((size for size in known if size and size < 10**9), default=None)


def room_after(size: int, context_tokens: int | None, most: int) -> int:
    """How many tokens can be written after so many, at most `most`. Raises `CallFailed`."""
    if context_tokens is None:
        return most
    if size >= context_tokens:
        raise CallFailed("overflow", f"{size} tokens leave no room in its {context_tokens}")
    return min(most, context_tokens - size)


# ----------------------------------------------------------------------------- reply to parts

_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|\Z)", re.DOTALL)


def read_reply(reply: str, *, in_thought: bool, with_tools: bool) -> Written:
    """Reasoning stands before `</think>`, tool calls in `<tool_call>` as JSON (Qwen, Hermes, …).

    What is no such call stays text.
    """
    reasoning, text = split_reasoning(f"{_THOUGHT}{reply}" if in_thought else reply)
    calls: list[ToolCall] = []
    for found in _CALL.finditer(text) if with_tools else ():
        call = _call(found.group(1), len(calls) + 1)
        if call is not None:
            calls.append(call)
            text = text.replace(found.group(0), "")
    return Written(text.strip() if calls else text, reasoning, tuple(calls))


def _call(text: str, number: int) -> ToolCall | None:
    try:
        said = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    if not isinstance(name := said.get("name"), str):
        return None
    arguments = said.get("arguments", said.get("parameters", {}))
    written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return ToolCall(f"call-{number}", name, written)
