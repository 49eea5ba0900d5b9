"""Low-rank adapters of every linear layer (`peft`), the same for whatever trains."""

from __future__ import annotations

from typing import Any

from mle_ideator.errors import UsageError


def adapters(rank: int) -> Any:
    """The config of adapters of this rank. Raises `UsageError` if peft is not installed."""
    try:
        from peft import LoraConfig
    except ImportError as error:
        raise UsageError(
            "model.lora_rank needs peft: pip install 'mle-ideator[train]', or set it to 0."
        ) from error
    return LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )


def adapted(model: Any, rank: int) -> Any:
    """The model, of which only adapters are trained; with rank 0 all weights are."""
    model.requires_grad_(True)
    if not rank:
        return model
    wanted = adapters(rank)
    from peft import get_peft_model

    return get_peft_model(model, wanted)
