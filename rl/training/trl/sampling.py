"""Which answers are learnt from, on tensors of one process.

Rows of a batch lie group by group; of a key, all rows have the same length, padded on the left for
prompts and on the right for completions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from mle_ideator.rl.training.advantages import informative

Rows = dict[str, torch.Tensor]


def taught(rewards: Sequence[float | None], ideas: int) -> list[bool]:
    """Of each answer, whether it is learnt from: not if it is masked, nor if all of its group
    earned the same. `rewards` lie group by group, `ideas` to a group."""
    kept: list[bool] = []
    for start in range(0, len(rewards), ideas):
        group = rewards[start : start + ideas]
        differs = informative(group)
        kept += [differs and reward is not None for reward in group]
    return kept


def fullest(
    batches: Sequence[Rows], kept: Sequence[Sequence[bool]], ideas: int, pad_token: int
) -> Rows:
    """As many rows as one batch has, made of whole groups: those that teach come first.

    `kept` says of each row of each batch whether it is learnt from.
    """
    rows = len(kept[0])
    marks = [mark for batch in kept for mark in batch]
    groups = range(0, len(marks), ideas)
    order = sorted(groups, key=lambda start: not any(marks[start : start + ideas]))
    chosen = [row for start in order[: rows // ideas] for row in range(start, start + ideas)]
    together = _joined(batches, rows, pad_token)
    return {name: values[chosen] if values.dim() else values for name, values in together.items()}


def _joined(batches: Sequence[Rows], rows: int, pad_token: int) -> Rows:
    return {
        name: torch.cat(_levelled([batch[name] for batch in batches], name, pad_token))
        if first.dim() and len(first) == rows
        else first
        for name, first in batches[0].items()
    }


def _levelled(parts: list[torch.Tensor], name: str, pad_token: int) -> list[torch.Tensor]:
    """All as long as the longest."""
    if parts[0].dim() < 2:
        return parts
    longest = max(part.shape[1] for part in parts)
    fill = pad_token if name.endswith("_ids") else 0
    left = name.startswith("prompt_")
    missing = [longest - part.shape[1] for part in parts]
    return [
        pad(part, (short, 0) if left else (0, short), value=fill)
        for part, short in zip(parts, missing, strict=True)
    ]
