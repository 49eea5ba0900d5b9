"""A causal language model as a policy: it writes answers, and says how likely it finds them.

On torch and transformers. Prompts are made by the code that serves: the same messages, the same
chat template, the same share of the context for the answer.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from mle_ideator.chat.hf import Transformers
from mle_ideator.errors import UsageError
from mle_ideator.idea_form import STOP
from mle_ideator.messages import Message
from mle_ideator.rl.training.adapters import adapted
from mle_ideator.rl.training.answers import Reader
from mle_ideator.rl.training.config import ModelConfig, WritingConfig
from mle_ideator.rl.training.prompting import prompt_tokens
from mle_ideator.rl.training.room import Room, room_of
from mle_ideator.rl.training.values import Answer


@dataclass(frozen=True)
class Written:
    """One answer: the tokens read, those written, and the log-probability that each then had; the
    mean entropy of a token, in nats."""

    prompt: list[int]
    tokens: list[int]
    logps: list[float]
    entropy: float
    answer: Answer


@dataclass(frozen=True)
class Judgement:
    """What a policy thinks of answers: of each token, in rows that are 0 after an answer's end."""

    logps: torch.Tensor
    entropy: torch.Tensor
    mask: torch.Tensor


class Policy:
    """Weights, tokenizer and template. The temperature holds for writing and for judging."""

    def __init__(self, path: str, config: ModelConfig, writing: WritingConfig) -> None:
        """Of the model at `path`. Raises `UsageError` if there is none."""
        endpoint = Transformers(path)
        self.tokenizer, self._template = endpoint.tokenizer, endpoint.template
        known = endpoint.context_tokens
        self.room: Room = room_of(known, config.context_tokens, writing.answer_tokens)
        self.model = adapted(_typed(endpoint.model(), config.dtype), config.lora_rank)
        self.device = self.model.device
        self._temperature, self._at_once = writing.temperature, writing.at_once
        self._ends = _end_tokens(self.model, self.tokenizer)
        self._pad = self._ends[0]
        self._reader = Reader(self.tokenizer, self._ends)

    @property
    def weights(self) -> list[torch.nn.Parameter]:
        """Those that are trained."""
        return [weight for weight in self.model.parameters() if weight.requires_grad]

    def read(self, messages: Sequence[Message]) -> list[int]:
        """A prompt in tokens."""
        return prompt_tokens(self._template, messages)

    def fits(self, messages: Sequence[Message]) -> bool:
        """Is there room for an answer after this prompt?"""
        return len(self.read(messages)) < self.room.context

    # -------------------------------------------------------------------------------- writing

    def write(self, messages: Sequence[Sequence[Message]], ideas: int) -> list[list[Written]]:
        """So many answers to each prompt, drawn from torch's own generator."""
        prompts = [self.read(each) for each in messages]
        rows = [prompt for prompt in prompts for _ in range(ideas)]
        written: list[Written] = []
        for start in range(0, len(rows), self._at_once):
            written += self._write(rows[start : start + self._at_once])
        return [written[start : start + ideas] for start in range(0, len(rows), ideas)]

    @torch.no_grad()
    def _write(self, prompts: list[list[int]]) -> list[Written]:
        read = _padded([prompt[::-1] for prompt in prompts], self._pad).flip(1).to(self.device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        places = torch.arange(read.shape[1], device=self.device)
        self.model.eval()
        out = self.model.generate(
            input_ids=read,
            attention_mask=(places >= read.shape[1] - lengths[:, None]).long(),
            max_new_tokens=self.room.answer,
            do_sample=True,
            temperature=self._temperature,
            top_k=0,
            top_p=1.0,
            eos_token_id=self._ends,
            pad_token_id=self._pad,
            stop_strings=[STOP],
            tokenizer=self.tokenizer,
        )
        written = out[:, read.shape[1] :].tolist()
        answers = [
            self._ended(row[: self.room.context - len(prompt)])
            for row, prompt in zip(written, prompts, strict=True)
        ]
        judged = self._judged(prompts, answers)
        entropies = judged.entropy.sum(1) / judged.mask.sum(1)
        return [
            Written(prompt, tokens, logps[: len(tokens)], entropy, self._reader.answer(tokens))
            for prompt, tokens, logps, entropy in zip(
                *(prompts, answers, judged.logps.tolist(), entropies.tolist()), strict=True
            )
        ]

    def _ended(self, tokens: list[int]) -> list[int]:
        """Up to its end: an end token, or the one that completes the stop text."""
        end = next((i for i, token in enumerate(tokens) if token in self._ends), None)
        if end is None:
            return tokens
        said = tokens[:end]
        # What follows a stop text was not written by the model; it fills the row.
        return said if self._reader.stops(said) else tokens[: end + 1]

    # -------------------------------------------------------------------------------- judging

    def judge(self, answers: Sequence[Written]) -> Judgement:
        """With gradients, if they are enabled."""
        return self._judged([each.prompt for each in answers], [each.tokens for each in answers])

    def _judged(self, prompts: list[list[int]], answers: list[list[int]]) -> Judgement:
        rows = [prompt + answer for prompt, answer in zip(prompts, answers, strict=True)]
        read = _padded(rows, self._pad).to(self.device)
        lengths = torch.tensor([len(row) for row in rows], device=self.device)
        attended = torch.arange(read.shape[1], device=self.device) < lengths[:, None]
        longest = read.shape[1] - min(len(prompt) for prompt in prompts)
        logits = self.model(
            input_ids=read, attention_mask=attended.long(), logits_to_keep=longest + 1
        ).logits
        logps = (logits[:, :-1].float() / self._temperature).log_softmax(-1)
        said = logps.gather(-1, read[:, -longest:, None])[..., 0]
        entropy = -(logps.exp() * logps).sum(-1)
        starts = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        place = torch.arange(read.shape[1] - longest, read.shape[1], device=self.device)
        written = (place >= starts[:, None]) & attended[:, -longest:]
        return Judgement(*(_to_the_left(each, written) for each in (said, entropy, written)))

    # --------------------------------------------------------------------------------- keeping

    def frozen(self) -> Policy:
        """A copy that is not trained."""
        other = copy.copy(self)
        other.model = copy.deepcopy(self.model).requires_grad_(False).eval()
        return other

    def adapters(self) -> dict[str, torch.Tensor]:
        """What is trained, where that is not all."""
        return {
            name: weight.detach().cpu()
            for name, weight in self.model.named_parameters()
            if weight.requires_grad
        }

    def load_adapters(self, weights: dict[str, torch.Tensor]) -> None:
        self.model.load_state_dict(weights, strict=False)

    def save(self, folder: Path) -> None:
        """As a model like any other, which `hf:FOLDER` serves as it was trained."""
        model = self.model
        if hasattr(model, "merge_and_unload"):
            model = copy.deepcopy(model).merge_and_unload()  # what is trained stays as it is
        model.generation_config.update(do_sample=True, temperature=self._temperature)
        model.save_pretrained(folder)
        self.tokenizer.model_max_length = self.room.context
        self.tokenizer.save_pretrained(folder)


def _typed(model: Any, dtype: str) -> Any:
    return model if dtype == "auto" else model.to(getattr(torch, dtype))


def _end_tokens(model: Any, tokenizer: Any) -> list[int]:
    named = model.generation_config.eos_token_id
    ends = {*(named if isinstance(named, list) else [named]), tokenizer.eos_token_id} - {None}
    if not ends:
        raise UsageError("the model has no end token, so its answers would never end.")
    return sorted(ends)


def _padded(rows: list[list[int]], fill: int) -> torch.Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=fill)


def _to_the_left(values: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """The kept values of each row from its beginning on, zeros after them."""
    order = kept.logical_not().long().argsort(dim=1, stable=True)
    moved: torch.Tensor = (values * kept).gather(1, order)
    return moved[:, : int(kept.sum(1).max())]
