"""Which TRL this is made for, and what is relied on in it.

`GroundTrainer` overrides methods that TRL does not promise to keep. So other versions are refused,
and so is this one if those methods are not what they were.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from typing import Any

from mle_ideator.errors import UsageError

SERIES = "1.16"
INSTALL = "pip install 'mle-ideator[trl]'"

METHODS: dict[str, tuple[str, ...]] = {
    "_generate_and_score_completions": ("inputs",),
    "_tokenize_prompts": ("prompts",),
    "_generate_single_turn": (
        "prompt_ids", "images", "multimodal_fields", "num_generations", "has_tool_images",
    ),
    "_calculate_rewards": ("inputs", "prompts", "completions", "completion_ids_list"),
    "_get_per_token_logps_and_entropies": (
        "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size", "compute_entropy",
    ),
    "_save_checkpoint": ("model", "trial"),
    "_send_telemetry": (),
    "log": ("logs", "start_time"),
}  # fmt: skip
"""What is overridden, with the first parameters that each has."""


def check_trl() -> None:
    """Raises `UsageError` if TRL is missing, another one, or not what it was."""
    try:
        found = version("trl")
        from trl import GRPOTrainer
    except (PackageNotFoundError, ImportError) as error:
        raise UsageError(f"trainer 'trl' needs TRL {SERIES}: {INSTALL} ({error}).") from error
    if not f"{found}.".startswith(f"{SERIES}."):
        raise UsageError(
            f"TRL {found} is installed, but trainer 'trl' is made for {SERIES}: "
            f"pip install 'trl=={SERIES}.*', or set trainer=loop."
        )
    if broken := broken_promises(GRPOTrainer):
        raise UsageError(
            f"this TRL {found} is not the one that trainer 'trl' is made for ({broken[0]}): "
            f"pip install --force-reinstall 'trl=={SERIES}.*', or set trainer=loop."
        )


def broken_promises(trainer: type[Any]) -> list[str]:
    """What a trainer class lacks of that which is relied on, one sentence each."""
    broken = []
    for name, expected in METHODS.items():
        method = getattr(trainer, name, None)
        if method is None:
            broken.append(f"it has no {name}")
        elif (there := _parameters(method))[: len(expected)] != expected:
            broken.append(f"{name} takes {', '.join(there)}, not {', '.join(expected)}")
    return broken


def _parameters(method: Any) -> tuple[str, ...]:
    return tuple(signature(method).parameters)[1:]
