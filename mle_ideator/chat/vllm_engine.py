"""`vllm:NAME` and `vllm:FOLDER`: vLLM in this process, where calls at once are answered together.

The engine starts at the first call. `MLE_IDEATOR_VLLM` may hold engine arguments as JSON, for
instance `{"max_model_len": 16384, "tensor_parallel_size": 2}`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator.chat.calls import CallFailed, PatientModel
from mle_ideator.chat.prices import FREE, Price
from mle_ideator.chat.templates import ChatTemplate, context_of, opened, room_after
from mle_ideator.errors import UsageError
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.plain_text import joined_lines

ARGUMENTS = "MLE_IDEATOR_VLLM"
"""Environment variable with arguments of vLLM's engine."""


def in_process(argument: str) -> PatientModel:
    """The model of a name on the Hugging Face hub, or of a folder. Raises `UsageError`."""
    if find_spec("vllm") is None:
        raise UsageError(
            "vLLM is not installed here: run pip install 'mle-ideator[vllm]', "
            "or start its server elsewhere and write vllm:MODEL@http://HOST:8000/v1."
        )
    endpoint = VllmEngine(argument)
    return PatientModel(endpoint, refused=endpoint.template.refuses)


class VllmEngine:
    """One engine, as an `Endpoint`."""

    price: Price | None = FREE

    def __init__(self, argument: str) -> None:
        """Raises `UsageError` if there is no such model, or no chat template in it."""
        self.name = f"vllm:{argument}"
        self._arguments = {"model": str(Path(argument).expanduser()), **_arguments()}
        model = self._arguments["model"]
        config, tokenizer = opened(self.name, pretrained_model_name_or_path=model)
        self.template = ChatTemplate(tokenizer, self.name)
        self.context_tokens = self._arguments.get("max_model_len", context_of(config, tokenizer))
        self._engine: Any = None
        self._starting = asyncio.Lock()
        self._numbers = itertools.count(1)

    async def send(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """One answer. When the awaiting task is cancelled, the engine drops the request."""
        prompt = self.template.prompt(messages, options)
        most = room_after(len(prompt.tokens), self.context_tokens, options.max_tokens)
        last = await self._generate(prompt.tokens, most, options)
        return self.template.completion(
            last.text,
            prompt,
            options,
            tokens=len(last.token_ids),
            ended=last.finish_reason == "stop",
        )

    async def _generate(self, prompt: list[int], most: int, options: CallOptions) -> Any:
        """The whole output: `text`, `token_ids`, `finish_reason`."""
        engine = await self._started()
        request = f"mle-ideator-{next(self._numbers)}"
        sampling = _sampling(engine, most, options)
        answer = None
        try:
            async for said in engine.generate({"prompt_token_ids": prompt}, sampling, request):
                answer = said.outputs[0]
        except Exception as error:  # the engine's errors have no common type
            raise CallFailed("wrong", joined_lines(error)) from error
        if answer is None:
            raise CallFailed("broken", "the engine answered nothing")
        return answer

    async def _started(self) -> Any:
        async with self._starting:
            if self._engine is None:
                self._engine = await asyncio.to_thread(_start, self._arguments)
        return self._engine

    async def aclose(self) -> None:
        if self._engine is not None:
            await asyncio.to_thread(self._engine.shutdown)
            self._engine = None


def _start(arguments: dict[str, Any]) -> Any:
    # It tells of itself on standard output, which is not its own here.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    try:
        engine = import_module("vllm.v1.engine.async_llm").AsyncLLM
        wanted = import_module("vllm.engine.arg_utils").AsyncEngineArgs(**arguments)
        return engine.from_engine_args(wanted)
    except Exception as error:  # the engine's errors have no common type
        raise CallFailed("wrong", f"the engine does not start: {joined_lines(error)}") from error


def _sampling(engine: Any, most: int, options: CallOptions) -> Any:
    """What the model's `generation_config.json` says, changed by the options."""
    vllm = import_module("vllm.sampling_params")
    wanted: dict[str, Any] = {**engine.model_config.get_diff_sampling_param(), "max_tokens": most}
    if options.temperature is not None:
        wanted["temperature"] = options.temperature
    if options.json_schema is not None:
        schema = vllm.StructuredOutputsParams(json=options.json_schema)
        wanted["structured_outputs"] = schema
    return vllm.SamplingParams(
        **wanted,
        stop=list(options.stop),
        seed=options.seed,
        output_kind=vllm.RequestOutputKind.FINAL_ONLY,
    )


def _arguments() -> dict[str, Any]:
    text = os.environ.get(ARGUMENTS, "{}")
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{ARGUMENTS} must be a JSON object of engine arguments: {error}."
        ) from error
