"""A chat model of one's own: Ollama's native API (`POST /api/chat`).

`ollama:MODEL` asks the server on this machine, `ollama:MODEL@URL` another one. An endpoint makes
one try and says what kind of failure it met; `PatientModel` retries, keeps the cap on cost, and
leaves out the options that are named as refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx2

from mle_ideator.chat.calls import CallFailed, PatientModel
from mle_ideator.chat.prices import FREE, Price, usage_of
from mle_ideator.errors import UsageError
from mle_ideator.messages import CallOptions, Completion, Message

LOCAL = "http://127.0.0.1:11434"


def ollama(argument: str) -> PatientModel:
    """The model of a spec. This endpoint knows nothing of tools and reasoning effort."""
    return PatientModel(Ollama(argument), refused={"tools", "effort"})


class Ollama:
    """One model of one Ollama server, as an `Endpoint`."""

    price: Price | None = FREE

    def __init__(self, argument: str) -> None:
        self.model, _, url = argument.partition("@")
        if not self.model:
            raise UsageError("ollama needs a model: write ollama:MODEL or ollama:MODEL@URL.")
        self.name = f"ollama:{argument}"
        self.context_tokens: int | None = None
        self.url = f"{url or LOCAL}/api/chat"

    async def send(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """One try. Raises `CallFailed`."""
        try:
            async with httpx2.AsyncClient(timeout=httpx2.Timeout(600, connect=10)) as client:
                response = await client.post(self.url, json=self._request(messages, options))
        except httpx2.HTTPError as error:
            raise CallFailed("broken", f"no answer from {self.url}: {error}") from error
        if response.status_code != 200:
            raise CallFailed(_kind(response.status_code), response.text[:300])
        try:
            return _completion(response.json())
        except (ValueError, KeyError, TypeError) as error:
            raise CallFailed("broken", f"what came from {self.url} is no answer") from error

    async def aclose(self) -> None:
        """Nothing is held between calls."""

    def _request(self, messages: Sequence[Message], options: CallOptions) -> dict[str, Any]:
        settings = {
            "num_predict": options.max_tokens,
            "temperature": options.temperature,
            "seed": options.seed,
            "stop": list(options.stop) or None,
        }
        return {
            "model": self.model,
            "stream": False,
            "messages": [{"role": m.role, "content": m.text} for m in messages],
            "options": {name: value for name, value in settings.items() if value is not None},
        } | ({"format": options.json_schema} if options.json_schema else {})


def _kind(status: int) -> Any:
    """Only `busy` and `broken` pass by themselves, and are tried again."""
    if status in (429, 503):
        return "busy"
    return "broken" if status >= 500 else "wrong"


def _completion(answer: dict[str, Any]) -> Completion:
    message = answer["message"]
    return Completion(
        text=message["content"],
        reasoning=message.get("thinking") or "",
        usage=usage_of(
            FREE,
            input_tokens=answer.get("prompt_eval_count"),
            output_tokens=answer.get("eval_count"),
        ),
        finish_reason="length" if answer.get("done_reason") == "length" else "stop",
    )
