"""`vllm:MODEL@URL`: a model on a vLLM server, or on any server of one's own that is compatible with
OpenAI's (llama.cpp, SGLang, Ollama). It costs nothing. `vllm:MODEL` runs vLLM in this process.
"""

from __future__ import annotations

from pathlib import Path

from mle_ideator.chat.calls import PatientModel
from mle_ideator.chat.chat_completions import ChatCompletions
from mle_ideator.chat.prices import FREE
from mle_ideator.chat.specs import Address, needs, split
from mle_ideator.protocols import ChatModel


def vllm(argument: str) -> ChatModel:
    """A model by `MODEL@URL`, with the key in `VLLM_API_KEY` if it wants one, or by a name or a
    folder in this process. Raises `UsageError`."""
    if split(argument)[1] is None or Path(argument).expanduser().exists():
        from mle_ideator.chat.vllm_engine import in_process

        return in_process(argument)
    needs("openai", "openai")
    address = Address("vllm", argument, "")
    key = address.key("VLLM_API_KEY", official="")
    return PatientModel(ChatCompletions(address, key, FREE, local=True))
