"""What a model answers when it is asked as it is served, many prompts at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch

from mle_ideator.idea_form import STOP
from mle_ideator.ideators.prompted.messages import Form
from mle_ideator.operations import mentioned
from mle_ideator.rl.environments.one_step import proposal_from
from mle_ideator.rl.training.warm_up.config import Answers
from mle_ideator.types import HelpState, Proposal

_AT_ONCE = 16


def drawn(states: Sequence[str], count: int, seed: int) -> list[str]:
    """Of these states, each as often as any other, or once more."""
    if not states:
        return []
    shuffled = Random(seed).sample(sorted(states), len(states))
    return [shuffled[number % len(shuffled)] for number in range(count)]


@torch.no_grad()
def sample(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[list[int]],
    most: int,
    seed: int,
    told: Callable[[int], None],
) -> list[tuple[str, int, bool]]:
    """An answer to each prompt at temperature 1: text, tokens, and whether it was cut at `most`."""
    answers = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for start in range(0, len(prompts), _AT_ONCE):
            rows = prompts[start : start + _AT_ONCE]
            written = _written(model, tokenizer, rows, most)
            answers += [_read(tokenizer, tokens) for tokens in written]
            told(len(answers))
    return answers


async def judged(
    answers: Sequence[tuple[str, int, bool]], states: Sequence[HelpState], form: Form
) -> Answers:
    """The answers as a served ideator reads them."""
    proposals: list[Proposal] = [
        await proposal_from(text, state, form, cut=cut)
        for (text, _, cut), state in zip(answers, states, strict=True)
    ]
    ideas = [proposal.idea for proposal in proposals if proposal.idea]
    named = [[operation.name for operation in mentioned(idea.action)] for idea in ideas]
    lengths = [tokens for _, tokens, _ in answers]
    return Answers(
        sampled=len(answers),
        well_formed=len(ideas),
        tokens=sum(lengths) / len(lengths) if lengths else None,
        operations=dict(Counter(name for names in named for name in names).most_common()),
        without_operation=sum(not names for names in named),
        distinct=len({text for text, _, _ in answers}),
    )


def _written(model: Any, tokenizer: Any, prompts: Sequence[list[int]], most: int) -> Any:
    width = max(map(len, prompts))
    read = torch.tensor([[0] * (width - len(row)) + row for row in prompts], device=model.device)
    lengths = torch.tensor([len(row) for row in prompts], device=model.device)
    end = tokenizer.eos_token_id
    return model.generate(
        input_ids=read,
        attention_mask=(
            torch.arange(width, device=model.device) >= width - lengths[:, None]
        ).long(),
        max_new_tokens=most,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        eos_token_id=end,
        pad_token_id=end,
    )[:, width:].tolist()


def _read(tokenizer: Any, tokens: list[int]) -> tuple[str, int, bool]:
    end = tokenizer.eos_token_id
    ended = end in tokens
    said = tokens[: tokens.index(end)] if ended else tokens
    text, stop, _ = str(tokenizer.decode(said, skip_special_tokens=True)).partition(STOP)
    return text, len(said), not (ended or stop)
