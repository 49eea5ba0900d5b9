"""OpenAI's two APIs, on its official client: Chat Completions, which many servers offer as well,
and Responses.

`openai:MODEL` asks OpenAI, or the server that `OPENAI_BASE_URL` names; `openai:MODEL@URL` asks the
server at that URL. The key is `OPENAI_API_KEY`; a server of one's own needs none.
"""

from __future__ import annotations

from mle_ideator.chat.calls import PatientModel
from mle_ideator.chat.chat_completions import ChatCompletions
from mle_ideator.chat.prices import price_of
from mle_ideator.chat.responses import Responses
from mle_ideator.chat.specs import Address, Key, needs

HOST = "api.openai.com"


def openai(argument: str) -> PatientModel:
    """`MODEL` or `MODEL@URL` by Chat Completions. Raises `UsageError`."""
    address, key = _address("openai", argument)
    return PatientModel(
        ChatCompletions(address, key, price_of(address.model), local=address.host != HOST)
    )


def openai_responses(argument: str) -> PatientModel:
    """`MODEL` or `MODEL@URL` by Responses, which knows no stop sequences and no seed."""
    address, key = _address("openai-responses", argument)
    endpoint = Responses(address, key, price_of(address.model))
    return PatientModel(endpoint, refused={"stop", "seed"})


def _address(provider: str, argument: str) -> tuple[Address, Key]:
    needs("openai", "openai")
    address = Address(provider, argument, f"https://{HOST}/v1", "OPENAI_BASE_URL")
    return address, address.key("OPENAI_API_KEY", official=HOST)
