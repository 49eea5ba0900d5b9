"""The lessons themselves: a causal language model learns answers, given their prompts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, NamedTuple

import torch
from torch.nn.functional import cross_entropy

from mle_ideator.errors import UsageError
from mle_ideator.rl.training.adapters import adapted
from mle_ideator.rl.training.warm_up.config import WarmUpConfig
from mle_ideator.rl.training.warm_up.examples import Example

_SORTED = 16
"""Batches whose examples are sorted by length together: little padding, and still shuffled."""
_RISE = 20
"""The rate rises over this part of the updates."""
_FLOOR = 0.1
"""Share of the highest rate that it falls to."""


class Learnt(NamedTuple):
    """How it went."""

    losses: list[float]
    """Of each update, nats per token of the answers."""
    held_out_before: float | None
    held_out: float | None
    """Of the weights that were kept."""


class Passed(NamedTuple):
    """An update that was made."""

    number: int
    of: int
    values: dict[str, float]


def ready(model: Any, config: WarmUpConfig) -> Any:
    """To be trained: all weights, or adapters, drawn by the seed."""
    with _drawing(config.seed):
        return adapted(model.to(getattr(torch, config.dtype)), config.lora_rank)


def merged(model: Any) -> Any:
    """A plain model, adapters or not, ready to write."""
    return (model.merge_and_unload() if hasattr(model, "merge_and_unload") else model).eval()


def learn(
    model: Any,
    examples: Sequence[Example],
    held_out: Sequence[Example],
    config: WarmUpConfig,
    told: Callable[[Passed], None],
) -> Learnt:
    """AdamW on the loss of the answers' tokens alone. The same seed makes the same weights: those
    of the epoch after which the held-out loss was lowest, as few ideas are soon learnt by heart.

    Raises `UsageError` if the loss is no number any more.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    an_epoch = math.ceil(len(examples) / config.batch)
    updates = config.epochs * an_epoch
    optimiser, schedule = _optimiser(weights, config, updates)
    before = after = mean_loss(model, held_out, config.batch)
    best, kept = math.inf, list[torch.Tensor]()
    losses: list[float] = []
    with _drawing(config.seed):  # of dropout, where a model has it
        for batch in _batches(examples, config):
            model.train()
            nats, tokens = _nats(model, batch)
            loss = nats / tokens
            optimiser.zero_grad()
            loss.backward()
            norm = float(torch.nn.utils.clip_grad_norm_(weights, config.clip_norm))
            losses.append(_finite(loss.item(), config.lr))
            lr = float(schedule.get_last_lr()[0])
            values = {"loss": losses[-1], "grad_norm": norm, "lr": lr}
            optimiser.step()
            schedule.step()
            if len(losses) % an_epoch == 0:
                after = mean_loss(model, held_out, config.batch)
                values |= {} if after is None else {"held_out_loss": after}
                if after is not None and after < best:
                    best, kept = after, [weight.detach().clone() for weight in weights]
            told(Passed(len(losses), updates, values))
    with torch.no_grad():
        for weight, value in zip(weights, kept, strict=False):  # none without held-out ideas
            weight.copy_(value)
    return Learnt(losses, before, best if kept else after)


@torch.no_grad()
def mean_loss(model: Any, examples: Sequence[Example], batch: int) -> float | None:
    """Nats per token of the answers; `None` without examples."""
    model.eval()
    by_length = sorted(examples, key=_length)
    batches = [by_length[start : start + batch] for start in range(0, len(by_length), batch)]
    sums = [_nats(model, each) for each in batches]
    tokens = sum(count for _, count in sums)
    return sum(nats.item() for nats, _ in sums) / tokens if tokens else None


def _nats(model: Any, batch: Sequence[Example]) -> tuple[torch.Tensor, int]:
    """Sum of the answers' negative log-likelihoods, and how many tokens that are.

    Rows end together, so that logits are only made of the answers' places.
    """
    rows = [example.prompt + example.answer for example in batch]
    width, longest = max(map(len, rows)), max(len(example.answer) for example in batch)
    read = torch.tensor([[0] * (width - len(row)) + row for row in rows], device=model.device)
    lengths = torch.tensor([len(row) for row in rows], device=model.device)
    attended = torch.arange(width, device=model.device) >= width - lengths[:, None]
    logits = model(
        input_ids=read,
        attention_mask=attended.long(),
        position_ids=(attended.cumsum(1) - 1).clamp(min=0),
        use_cache=False,
        logits_to_keep=longest + 1,
    ).logits[:, :-1]
    answers = torch.tensor([len(example.answer) for example in batch], device=model.device)
    learnt = torch.arange(longest, device=model.device) >= longest - answers[:, None]
    nats = cross_entropy(
        logits[learnt].float(), read[:, width - longest :][learnt], reduction="sum"
    )
    return nats, int(answers.sum())


def _batches(examples: Sequence[Example], config: WarmUpConfig) -> Iterator[list[Example]]:
    """In each epoch each example once, in batches of about equal lengths, in random order."""
    for epoch in range(config.epochs):
        random = Random(f"{config.seed}:{epoch}")
        shuffled = random.sample(examples, len(examples))
        batches: list[list[Example]] = []
        for start in range(0, len(shuffled), config.batch * _SORTED):
            alike = sorted(shuffled[start : start + config.batch * _SORTED], key=_length)
            batches += [alike[at : at + config.batch] for at in range(0, len(alike), config.batch)]
        random.shuffle(batches)
        yield from batches


def _length(example: Example) -> int:
    return len(example.prompt) + len(example.answer)


def _optimiser(
    weights: list[torch.nn.Parameter], config: WarmUpConfig, updates: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    optimiser = torch.optim.AdamW(
        weights, lr=config.lr, betas=(0.9, 0.95), weight_decay=config.weight_decay
    )
    rate = partial(_rate, updates=updates, schedule=config.schedule)
    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, rate)


@contextmanager
def _drawing(seed: int) -> Iterator[None]:
    """torch draws by the seed, and afterwards as it would have."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _rate(done: int, updates: int, schedule: str) -> float:
    """Share of the highest rate."""
    rise = max(1, updates // _RISE)
    if done < rise:
        return (done + 1) / rise
    passed = (done - rise) / max(1, updates - rise)
    left = (1 + math.cos(math.pi * passed)) / 2 if schedule == "cosine" else 1 - passed
    return _FLOOR + (1 - _FLOOR) * left


def _finite(loss: float, lr: float) -> float:
    if not math.isfinite(loss):
        raise UsageError(f"the loss became {loss}: take a lower rate than {lr:g}, or float32.")
    return loss
