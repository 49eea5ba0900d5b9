"""The official `openai` client, for both of its APIs."""

from __future__ import annotations

from typing import Any

from mle_ideator.chat.clients import HttpEndpoint, tls


class OpenAIEndpoint(HttpEndpoint):
    """One model behind the official `openai` client."""

    def _new_client(self) -> Any:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        return AsyncOpenAI(
            api_key=self._key.value or "none",
            base_url=self._address.url,
            timeout=self._timeout(),
            http_client=DefaultAsyncHttpxClient(verify=tls()),
            max_retries=0,
        )

    def _sdk_error(self) -> type[Exception]:
        from openai import OpenAIError

        return OpenAIError
