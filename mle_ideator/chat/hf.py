"""Models in this process, on transformers: `hf:NAME`, `hf:FOLDER`, `hf:FILE.gguf`.

torch and transformers are imported when a model is made. The weights are read at the first call,
onto the GPU where there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from mle_ideator.chat.calls import CallFailed, PatientModel
from mle_ideator.chat.prices import FREE, Price
from mle_ideator.chat.specs import needs
from mle_ideator.chat.templates import ChatTemplate, context_of, opened, room_after
from mle_ideator.errors import UsageError
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.plain_text import joined_lines

_ONE_AT_A_TIME = threading.Lock()
"""Sampling draws from torch's one generator, so that two at once would spoil each other's seed."""


def hf(argument: str) -> PatientModel:
    """The model of a name on the Hugging Face hub, a folder, or a GGUF file. Raises `UsageError`.

    Without a temperature it decodes as its `generation_config.json` says, else greedily. A JSON
    schema is dropped, as nothing here enforces it.
    """
    endpoint = Transformers(argument)
    return PatientModel(endpoint, refused={"json_schema", *endpoint.template.refuses})


class Transformers:
    """One model of transformers, as an `Endpoint`. Calls at once wait for each other."""

    price: Price | None = FREE

    def __init__(self, argument: str) -> None:
        """Raises `UsageError` if there is no such model, or no chat template in it."""
        self.name = f"hf:{argument}"
        self._source = _source(argument)
        _check_libraries(gguf="gguf_file" in self._source)
        config, self.tokenizer = opened(self.name, **self._source)
        self.template = ChatTemplate(self.tokenizer, self.name)
        self.context_tokens = context_of(config, self.tokenizer)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hf")
        self._model: Any = None

    async def send(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """One answer. When the awaiting task is cancelled, generation ends with the next token."""
        stopped = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(
                self._thread, self._answer, messages, options, stopped
            )
        finally:
            stopped.set()

    async def aclose(self) -> None:
        """Ends the thread and lets go of the weights."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._model = None

    # ------------------------------------------------------------------------- in the thread

    def _answer(
        self, messages: Sequence[Message], options: CallOptions, stopped: threading.Event
    ) -> Completion:
        prompt = self.template.prompt(messages, options)
        most = room_after(len(prompt.tokens), self.context_tokens, options.max_tokens)
        ends = _Ends(stopped, options.stop, len(prompt.tokens), self.decode)
        tokens = self._generate(prompt.tokens, most, options, ends)
        reply, stop_written = _cut(self.decode(tokens), options.stop)
        ended = stop_written or (bool(tokens) and tokens[-1] in self._end_tokens())
        return self.template.completion(reply, prompt, options, tokens=len(tokens), ended=ended)

    def _generate(
        self, prompt: list[int], most: int, options: CallOptions, ends: _Ends
    ) -> list[int]:
        """The tokens written after the prompt, at most so many."""
        torch, model = import_module("torch"), self.model()
        tokens = torch.tensor([prompt], device=model.device)
        end_tokens = self._end_tokens()
        try:
            with _ONE_AT_A_TIME, _seeded(options.seed):
                written = model.generate(
                    input_ids=tokens,
                    attention_mask=torch.ones_like(tokens),
                    max_new_tokens=most,
                    eos_token_id=end_tokens or None,
                    pad_token_id=end_tokens[0] if end_tokens else 0,
                    stopping_criteria=[ends],
                    **_sampling(options.temperature),
                )
        except torch.OutOfMemoryError as error:
            raise CallFailed(
                "overflow", f"{len(prompt)} tokens are too many for the GPU"
            ) from error
        except (RuntimeError, ValueError) as error:
            raise CallFailed("wrong", joined_lines(error)) from error
        return list(written[0, len(prompt) :].tolist())

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def model(self) -> Any:
        """The weights, read when they are first asked for."""
        if self._model is None:
            try:
                self._model = _load(self._source)
            except Exception as error:  # readers of other people's files raise anything
                text = f"no weights can be read: {joined_lines(error)}"
                raise CallFailed("wrong", text) from error
        return self._model

    def _end_tokens(self) -> list[int]:
        named = self.model().generation_config.eos_token_id
        ends = {*(named if isinstance(named, list) else [named]), self.tokenizer.eos_token_id}
        return sorted(ends - {None})


class _Ends:
    """Stops generation: nobody waits any more, or a stop text was just written."""

    def __init__(
        self,
        stopped: threading.Event,
        stop: Sequence[str],
        start: int,
        decode: Callable[[Sequence[int]], str],
    ) -> None:
        self._stopped, self._stop, self._start, self._decode = stopped, stop, start, decode
        # A token has a byte at least; the margin is for special tokens, which have no text.
        self._reach = max((len(text.encode()) for text in stop), default=0) + 16

    def __call__(self, tokens: Any, scores: Any, **_: Any) -> Any:
        done = self._stopped.is_set() or self._stop_written(tokens[0])
        return tokens.new_full((len(tokens),), done, dtype=import_module("torch").bool)

    def _stop_written(self, tokens: Any) -> bool:
        if not self._stop:
            return False
        tail = self._decode(tokens[max(self._start, len(tokens) - self._reach) :].tolist())
        return any(text in tail for text in self._stop)


def _cut(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop, and whether there is one."""
    places = [place for place in (text.find(one) for one in stop) if place >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _sampling(temperature: float | None) -> dict[str, Any]:
    if temperature is None:
        return {}
    if temperature == 0:
        return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    return {"do_sample": True, "temperature": temperature}


@contextlib.contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """torch's random state from the seed, and afterwards as it was before."""
    if seed is None:
        yield
        return
    torch = import_module("torch")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


# ----------------------------------------------------------------------------------- loading


def _source(argument: str) -> dict[str, str]:
    """What `from_pretrained` is to be told. Raises `UsageError` for a path that is not there."""
    path = Path(argument).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise UsageError(f"there is no file {path}.")
        return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    if path.is_dir() and argument:
        return {"pretrained_model_name_or_path": str(path)}
    if not argument or argument.startswith(("/", "./", "../", "~")):
        raise UsageError(f"hf:{argument}: there is no such folder; write hf:FOLDER or hf:NAME.")
    return {"pretrained_model_name_or_path": argument}


def _check_libraries(*, gguf: bool) -> None:
    """Raises `UsageError` for what is not installed."""
    for package in ("torch", "transformers", *(("accelerate", "gguf") if gguf else ())):
        needs(package, "hf")
    import_module("transformers").utils.logging.disable_progress_bar()


def _load(source: dict[str, str]) -> Any:
    """The model, ready to write, on the GPU where there is one."""
    torch, transformers = import_module("torch"), import_module("transformers")
    more: dict[str, Any] = {"dtype": "auto"}
    if "gguf_file" in source:
        more["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(**source, **more)
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
