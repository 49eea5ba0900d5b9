"""From the run's config to TRL's own settings: the config's are translated, those under `trl` are
passed on as they are."""

from __future__ import annotations

import math
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig

from mle_ideator.errors import UsageError, unknown
from mle_ideator.idea_form import STOP
from mle_ideator.rl.training.adapters import adapters
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.trl.processes import processes

_DEFAULT_TIMEOUT_S = 1800

OURS = {
    "beta": "objective.kl",
    "disable_tqdm": "nothing: the run has a progress bar of its own",
    "do_eval": "nothing: compare with `mle-ideator evaluate`",
    "eval_strategy": "nothing: compare with `mle-ideator evaluate`",
    "ignore_data_skip": "nothing: runs are resumed exactly",
    "load_best_model_at_end": "nothing: compare with `mle-ideator evaluate`",
    "logging_steps": "nothing: every step is written",
    "logging_strategy": "nothing: every step is written",
    "mask_truncated_completions": "nothing: an idea that was cut earns −1, and must be learnt from",
    "max_completion_length": "writing.answer_tokens",
    "max_steps": "steps",
    "num_generations": "writing.ideas_per_state",
    "num_train_epochs": "steps",
    "output_dir": "out",
    "resume_from_checkpoint": "nothing: use `train --resume RUN`",
    "save_only_model": "nothing: runs are resumed exactly",
    "save_steps": "checkpoints.every",
    "save_strategy": "checkpoints.every",
    "save_total_limit": "checkpoints.keep",
    "seed": "seed",
    "shuffle_dataset": "nothing: the curriculum chooses what is trained on",
    "temperature": "writing.temperature",
}  # fmt: skip
"""Settings of TRL that can not be passed on, and what to set in their place."""


def grpo_config(config: TrainConfig, answer_tokens: int, folder: Path) -> GRPOConfig:
    """TRL's settings; it may write into `folder`. Raises `UsageError` for what it refuses."""
    given = _given(config)
    values = _translated(config, answer_tokens, folder) | given
    if values["use_vllm"] and "generation_kwargs" not in given:
        values["generation_kwargs"] = {"stop": [STOP], "include_stop_str_in_output": True}
    try:
        found = GRPOConfig(**values)
    except ImportError as error:
        raise UsageError(f"trl: {error} (or leave that setting out).") from error
    except (ValueError, TypeError, OSError) as error:
        raise UsageError(f"trl: {' '.join(str(error).split())}") from error
    _check(config, found)
    _count_steps(config, found)
    return found


def updates_of(settings: GRPOConfig) -> int:
    """Optimiser steps that are taken on each batch of answers."""
    passes = settings.steps_per_generation * settings.num_iterations
    return int(passes // settings.gradient_accumulation_steps)


def states_of(settings: GRPOConfig) -> int:
    """Help states of each batch."""
    return int(settings.generation_batch_size // settings.num_generations)


def lora(config: TrainConfig) -> Any:
    """Low-rank adapters of every linear layer, if wanted."""
    if not config.model.lora_rank:
        return None
    return adapters(config.model.lora_rank)


def _given(config: TrainConfig) -> dict[str, Any]:
    """What is passed on. Raises `UsageError` for a key that TRL does not know, or that is ours."""
    known = {field.name for field in fields(GRPOConfig) if field.init} - OURS.keys()
    for key in config.trl:
        if key in OURS:
            raise UsageError(f"trl.{key} can not be set; set {OURS[key]}.")
        if key not in known:
            raise UsageError(unknown("setting of TRL", key, known))
    return config.trl


def _translated(config: TrainConfig, answer_tokens: int, folder: Path) -> dict[str, Any]:
    at_once, passes = _shares(config)
    objective, optimiser, gpu = config.objective, config.optimiser, torch.accelerator.is_available()
    return {
        "output_dir": str(folder),
        "seed": config.seed,
        "num_generations": config.writing.ideas_per_state,
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": passes,
        "num_iterations": objective.epochs,
        "max_completion_length": answer_tokens,
        "temperature": config.writing.temperature,
        "use_vllm": False,
        "beta": objective.kl,
        "epsilon": objective.clip,
        "entropy_coef": objective.entropy,
        "scale_rewards": objective.scale,
        "loss_type": "dapo",
        "learning_rate": optimiser.lr,
        "lr_scheduler_type": "constant_with_warmup",
        "weight_decay": optimiser.weight_decay,
        "max_grad_norm": optimiser.clip_norm,
        "model_init_kwargs": {"dtype": config.model.dtype},
        "use_cpu": not gpu,
        "bf16": gpu,
        "gradient_checkpointing": gpu,
        "dataloader_pin_memory": gpu,
        "ddp_find_unused_parameters": False,
        "save_strategy": "steps",
        "eval_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "shuffle_dataset": False,
        "ddp_timeout": _longest_wait_s(config),
    }


def _shares(config: TrainConfig) -> tuple[int, int]:
    """Answers that a process learns from at once, and how often it does so in a step."""
    rows = config.objective.states_per_step * config.writing.ideas_per_state
    if rows % processes():
        raise UsageError(
            f"{processes()} processes can not share {rows} answers a step (objective."
            "states_per_step × writing.ideas_per_state) evenly: make it a multiple of them."
        )
    own, most = rows // processes(), config.writing.at_once
    at_once = max(size for size in range(1, own + 1) if own % size == 0 and size <= most)
    return at_once, own // at_once


def _longest_wait_s(config: TrainConfig) -> int:
    """What the other processes must be ready to wait while the main one has answers executed:
    as if every rollout took as long as it may, and was tried twice."""
    settings = config.rollouts
    rows = config.objective.states_per_step * config.writing.ideas_per_state
    rounds = math.ceil(rows / (settings.workers or os.cpu_count() or 1))
    return _DEFAULT_TIMEOUT_S + math.ceil(2 * settings.limit_s * rounds)


def _check(config: TrainConfig, found: GRPOConfig) -> None:
    if found.ddp_timeout <= config.rollouts.limit_s:
        raise UsageError(
            f"trl.ddp_timeout ({found.ddp_timeout} s) must be longer than a rollout may take "
            f"(rollouts.limit_s, {config.rollouts.limit_s:g} s), or processes give each other up."
        )
    if found.world_size != processes():
        raise UsageError(
            f"the launcher started {processes()} processes, but accelerate sees "
            f"{found.world_size}: check its settings (`accelerate env`)."
        )
    passes = found.steps_per_generation * found.num_iterations
    if passes % found.gradient_accumulation_steps:
        raise UsageError(
            "trl: steps_per_generation × num_iterations must be a multiple of gradient_accumulation"
            "_steps, so that a checkpoint never stands between two updates on one batch."
        )
    own = found.per_device_train_batch_size * found.steps_per_generation
    if config.objective.zero_variance == "resample" and own % found.num_generations:
        raise UsageError(
            "objective.zero_variance=resample needs whole groups in each process, but one has "
            f"{own} answers and a group {found.num_generations}: use fewer processes, or mask."
        )


def _count_steps(config: TrainConfig, found: GRPOConfig) -> None:
    """TRL counts updates, a run counts batches of answers."""
    updates = updates_of(found)
    found.max_steps = config.steps * updates
    found.logging_steps = updates
    found.save_steps = config.checkpoints.every * updates
    if "warmup_steps" not in config.trl:
        found.warmup_steps = config.optimiser.warm_up_steps * updates
