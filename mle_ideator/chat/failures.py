"""What went wrong with a try, read from the status, the headers and the words of many servers.

The wordings are those of OpenAI, Anthropic, vLLM, llama.cpp (server and Python), SGLang, TGI,
DeepSeek and Groq. What none of them says becomes one clear line and is not tried again, unless its
status says that it passes by itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx2

from mle_ideator.chat.calls import CallFailed
from mle_ideator.chat.retry_after import retry_after_s
from mle_ideator.plain_text import joined_lines

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_WORDLESS = "an error without words"

BUSY = {408, 409, 425, 429, 503, 529}
"""Statuses of a server that would answer later."""

_STATUS_OF_NAME = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "invalid_request_error": 400,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "invalid_prompt": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "BadRequestError": 400,
}
"""For errors whose status was 200, as it is inside a stream."""

_STATUS_OF_WORDS = (
    (re.compile(r"(?:invalid|incorrect|missing|no) api key|unauthori[sz]ed", re.IGNORECASE), 401),
    (re.compile(r"\bmodel\b.{0,80}\b(?:not found|not exist)", re.IGNORECASE), 404),
    (re.compile(r"overloaded|too many requests|rate limit", re.IGNORECASE), 503),
)
"""For those that have no name either."""

_NO_CREDIT = re.compile(
    r"insufficient[_ ](?:quota|balance|credit)|credit balance is too low"
    r"|billing_(?:error|hard|not)",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|request_too_large|string_above_max_length"
    r"|context (?:length|window|size|limit)|maximum (?:model|context) length"
    r"|(?:prompt|input|request) (?:is |was )?too (?:long|large)|reduce the length"
    r"|must be <= \d+|exceeds the maximum number of tokens",
    re.IGNORECASE,
)
_CONTEXT_SIZE = re.compile(
    r"(?:context (?:length|window|size)|(?:model|context) length|n_ctx)\D{0,12}?(\d{3,})"
    r"|> (\d{3,})|must be <= (\d{3,})|maximum number of tokens allowed \((\d{3,})\)"
    r"|(\d{3,}) maximum context length",
    re.IGNORECASE,
)
_LONGEST_ANSWER = re.compile(
    r"max\w*_tokens: \d+ > (\d+), which is the maximum"
    r"|max\w*_tokens is too large: \d+\. This model supports at most (\d+)"
    r"|valid range of max_tokens is \[\d+, (\d+)\]",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"unsupported|n[o']t (?:be )?(?:supported|permitted|allowed|available|enabled)"
    r"|(?:not|n't) support|unrecognized|unknown|unexpected|extra[_ ](?:inputs|forbidden)"
    r"|deprecated|only the default|only be set|must be|must have|cannot|can not|require"
    r"|invalid|input tag|does not match|failed to (?:parse|initialize)",
    re.IGNORECASE,
)
_WORDS = {
    "stream_options": r"stream_options",
    "stream": r"^stream$|verified to stream|['\"`]stream['\"`]|support stream(?:ing)?"
    r"|stream(?:ing)? (?:is|does) not (?:support|allow|permit|enable|available)\w*",
    "reasoning.summary": r"reasoning[._]summar\w+|reasoning summaries",
    "max_completion_tokens": r"max_completion_tokens",
    "max_tokens": r"max_tokens|max_output_tokens",
    "temperature": r"temperature",
    "stop": r"stop(?:_sequences|_words)?",
    "seed": r"seed",
    "json_schema": r"response_format|json_schema|output_config\.format|text\.format|grammar"
    r"|output_format|structured outputs?",
    "effort": r"reasoning(?:_effort|\.effort)?|thinking|effort",
    "tools": r"tools?(?:[_ ]choice)?|function[_ ]calling",
    "system": r"(?:system|developer) (?:role|message|prompt|instruction)s?"
    r"|(?:role|developer) '?system|support '?system",
}
_NO_OPTIONS = {"stream_options", "stream", "reasoning.summary", "system"}
"""Words of requests that no field of `CallOptions` stands for."""
_ABOUT_MESSAGES = re.compile(r"\bmessages?[.:\[]|input\[\d|tool_(?:use|result|call_id)\b")
"""What is wrong lies in what was said before, not in an option."""

_WORD = re.compile(
    "|".join(rf"(?P<w{i}>(?<!\w)(?:{words})(?!\w))" for i, words in enumerate(_WORDS.values())),
    re.IGNORECASE,
)


_LOOPBACK = re.compile(r"(?:localhost|127\.[\d.]+|0\.0\.0\.0|\[::1\])(?::\d+)?", re.IGNORECASE)
_START_S = 10.0
"""A server on this machine that refuses connections may be starting; else nobody will start it."""


class Failure(CallFailed):
    """A failed try, with what can be learned from it."""

    word: str | None = None
    """What of the request is refused: a key of the table of words."""
    context_tokens: int | None = None
    longest_answer: int | None = None
    """The most output tokens that the model can write."""


class Told(NamedTuple):
    """A server's words for what went wrong."""

    message: str
    kind: str = ""
    """Code and type, for instance `insufficient_quota`."""
    parameter: str = ""
    status: int | None = None


def failure_of(error: Exception, *, host: str, key: str, began: bool) -> Failure:
    """What an exception of an SDK, of its transport, or of our own reading means.

    `key` says where the API key was taken from; `began` whether an answer had begun to come.
    """
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    if status is None and body is None:
        return _of_transport(error, host, began)
    headers = getattr(getattr(error, "response", None), "headers", {})
    said = body if body else str(error)
    return failure_told(said, status, headers, host=host, key=key, billed=began)


def failure_told(
    body: object,
    status: int | None = None,
    headers: Mapping[str, str] = NO_HEADERS,
    *,
    host: str,
    key: str,
    billed: bool = False,
) -> Failure:
    """What a server's answer means. Inside a stream the status is unknown, or was good."""
    told = _read(body)
    status = status if status and status >= 400 else told.status
    if status is None and not billed:
        status = next((s for words, s in _STATUS_OF_WORDS if words.search(told.message)), None)
    failure = _of_answer(status, told, host, key, in_stream=billed)
    failure.retry_after_s = retry_after_s(headers, told.message)
    failure.billed = billed
    return failure


def _read(body: object) -> Told:
    """Read the body of an error, in any of the forms that servers use."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping | str):
        inner = body["error"]
        body = inner if isinstance(inner, Mapping) else {"message": inner}
    if not isinstance(body, Mapping):
        return Told(_line(body or _WORDLESS))
    message = body.get("message") or body.get("detail") or body.get("msg") or _WORDLESS
    size = f" (n_ctx {body['n_ctx']})" if "n_ctx" in body else ""
    code, kind = body.get("code"), body.get("type")
    names = " ".join(str(word) for word in (code, kind) if word)
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    named = [_STATUS_OF_NAME[word] for word in names.split() if word in _STATUS_OF_NAME]
    status = status or next(iter(named), None)
    return Told(_line(message) + size, names, str(body.get("param") or ""), status)


def _of_answer(status: int | None, told: Told, host: str, key: str, *, in_stream: bool) -> Failure:
    words = f"{told.kind} {told.message}"
    shown = f"{told.message} ({status})" if status else told.message
    if status == 402 or (status != 200 and _NO_CREDIT.search(words)):
        return Failure("wrong", f"no credit is left at {host}: {shown}")
    if status == 401:
        return Failure("wrong", f"{key} was refused by {host} (401): set one that is valid.")
    if status == 403:
        return Failure("wrong", f"{host} refuses access with {key}: {shown}")
    if status == 404:
        return Failure("wrong", f"{host} knows no such model or address: {shown}")
    if "tool_use_failed" in words:
        return Failure("broken", shown)
    if status in (None, 400, 413, 422, 429, 500, 501):
        found = _longest_answer(words, shown) or _overflow(status, words, shown)
        if found is None and status != 429 and not (in_stream and status is None):
            found = _refusal(status, told, shown)
        if found is not None:
            return found
    if status in BUSY:
        return Failure("busy", f"{host} is busy: {shown}")
    if status is None or status >= 500:
        return Failure("broken", f"{host} failed: {shown}")
    return Failure("wrong", f"{host} refused the request: {shown}")


def _of_transport(error: Exception, host: str, began: bool) -> Failure:
    causes = (error, error.__cause__, getattr(error.__cause__, "__cause__", None))
    cause = next((c for c in causes if isinstance(c, httpx2.HTTPError)), error)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        here = isinstance(cause, httpx2.ConnectError) and _LOOPBACK.fullmatch(host)
        text = f"no connection to {host}: {_line(cause)}{'; does its server run?' if here else ''}"
        return Failure("broken", text, passes_within_s=_START_S if here else math.inf)
    if isinstance(cause, httpx2.TimeoutException):
        return Failure("broken", f"{host} sent nothing for too long", billed=True)
    if isinstance(cause, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        return Failure("wrong", f"{host}: {_line(cause)}")
    if isinstance(cause, httpx2.HTTPError):
        return Failure("broken", f"the connection to {host} broke: {_line(cause)}", billed=True)
    text = f"{host} sent what can not be read: {type(error).__name__}, {_line(error)}"
    return Failure("broken", text, billed=began)


def _longest_answer(words: str, shown: str) -> Failure | None:
    found = _LONGEST_ANSWER.search(words)
    if found is None:
        return None
    failure = Failure("refused_option", shown, option="max_tokens")
    failure.word, failure.longest_answer = "max_tokens", _number(found)
    return failure


def _overflow(status: int | None, words: str, shown: str) -> Failure | None:
    if not _OVERFLOW.search(words) or (status == 429 and "too large" not in words):
        return None
    failure = Failure("overflow", shown)
    found = None if status == 429 else _CONTEXT_SIZE.search(words)
    failure.context_tokens = _number(found) if found else None
    return failure


def _refusal(status: int | None, told: Told, shown: str) -> Failure | None:
    found = _WORD.search(told.parameter)
    if found is None and ("unsupported" in told.kind or _REFUSAL.search(told.message)):
        found = _WORD.search(told.message)
    if found is None:
        return None
    word = list(_WORDS)[int(str(found.lastgroup)[1:])]
    if word != "system" and _ABOUT_MESSAGES.search(f"{told.parameter} {told.message}"):
        return None
    option = word if word not in _NO_OPTIONS else None
    option = "max_tokens" if word == "max_completion_tokens" else option
    failure = Failure("refused_option", shown, option=option)
    failure.word = word
    return failure


def _number(found: re.Match[str]) -> int:
    return int(next(group for group in found.groups() if group))


def _line(told: Any, most: int = 300) -> str:
    """One line of at most so many characters."""
    text = joined_lines(told) or type(told).__name__
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most} more)"
