"""All settings of a training run. `presets/` holds complete ones, documented line by line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mle_ideator.config import load_config
from mle_ideator.errors import UsageError, unknown
from mle_ideator.ideators.prompted.messages import Form
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.training.advantages import Scale
from mle_ideator.rl.training.guards import GuardConfig
from mle_ideator.rl.training.logs.config import LogConfig
from mle_ideator.rl.training.proxy.config import ProxyConfig
from mle_ideator.types import Value

PRESETS = Path(__file__).with_name("presets")

Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1)]


class StatesConfig(Value, frozen=True, kw_only=True):
    """The help states that are trained on."""

    store: str | None = None
    """A store that `collect` made. Without it, sessions are run first, as the rest says."""
    tasks: tuple[str, ...] = ()
    """Only help states of these; or the tasks of the sessions. None: all; the bundled suite's
    training part."""
    ideators: tuple[str, ...] = ("offline", "random")
    """Who advises in these sessions."""
    seeds: Count = 1
    """Sessions of each task and ideator."""
    steps: Count = 12
    """Most actions of a session."""
    reached: bool = False
    """Begin also with those that earlier rollouts reached."""


class ModelConfig(Value, frozen=True, kw_only=True):
    """The policy."""

    path: str = "tiny"
    """A folder, a GGUF file, or a name on the hub; `tiny` is made on the spot."""
    context_tokens: Count | None = None
    """Most tokens that it reads and writes, in training and when it is served. A quarter of them is
    for its answer. None: as its files say."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the weights; `auto` is as they are stored."""
    lora_rank: Annotated[int, Meta(ge=0)] = 0
    """Train low-rank adapters, merged when the model is saved; 0 trains all weights."""
    vocabulary: Count = 1024
    """Of the tiny model, as are the next three."""
    width: Count = 128
    layers: Count = 4
    heads: Count = 4


class WarmUpStep(Value, frozen=True, kw_only=True):
    """Supervised fine-tuning before the first step."""

    ideas_from: str = "random"
    """An ideator. `random` teaches the form alone."""
    which: Literal["all", "worked"] = "all"
    """All its ideas, or those only that improved the score when they were executed."""
    ideas: Count = 4
    """For each help state."""
    short: bool = False
    """Keep of each idea the least that says it, for models that can not write much."""
    epochs: Count = 4
    batch: Count = 8
    """Ideas of an update."""
    lr: Positive = 1e-3


class WritingConfig(Value, frozen=True, kw_only=True):
    """How answers are sampled."""

    ideas_per_state: Annotated[int, Meta(ge=2)] = 8
    """G, the size of a group."""
    temperature: Positive = 1.0
    answer_tokens: Count | None = None
    """Most tokens of an answer; None: a quarter of the context, as when it is served."""
    at_once: Count = 64
    """Answers that are written, or learnt from, at the same time: what memory has room for."""
    form: Form = "tags"


class ObjectiveConfig(Value, frozen=True, kw_only=True):
    """GRPO, token by token."""

    states_per_step: Count = 4
    epochs: Count = 1
    """Updates on each batch."""
    clip: Positive = 0.2
    """Bound on the ratio of new to old probability, both ways."""
    kl: Annotated[float, Meta(ge=0)] = 0.0
    """Weight of the divergence from the model that training began with; above 0 a second copy of
    it is held."""
    entropy: Annotated[float, Meta(ge=0)] = 0.0
    """Weight of the mean entropy of a token, as a bonus against an early collapse."""
    scale: Scale = "group"
    """Are advantages divided by their group's standard deviation?"""
    zero_variance: Literal["mask", "resample"] = "mask"
    """Groups whose rewards are all equal teach nothing: leave them out, or draw other states until
    the batch is full, at most three times as many."""
    overlap: bool = True
    """Write the next answers while the last are executed. They are one update old when they are
    learnt from, which the ratio corrects."""


class OptimiserConfig(Value, frozen=True, kw_only=True):
    """AdamW."""

    lr: Positive = 1e-5
    warm_up_steps: Annotated[int, Meta(ge=0)] = 0
    """Steps over which the rate rises from 0; afterwards it stays."""
    weight_decay: Annotated[float, Meta(ge=0)] = 0.0
    clip_norm: Positive = 1.0
    """Longest gradient."""


class RolloutsConfig(Value, frozen=True, kw_only=True):
    """How answers are executed."""

    engine: Literal["local", "ray"] = "local"
    workers: Count | None = None
    """Rollouts at a time on this machine; None: one a core."""
    address: str | None = None
    """Of the Ray cluster; None starts one here."""
    sandbox: str | None = None
    """Another sandbox than the sessions had."""
    attempts: Count = 1
    """Cells that may fail before an idea is given up."""
    limit_s: Positive = 1800.0
    """Of one rollout, after which it is killed and earns what a timeout does."""
    keep_reached: bool = True
    """Does what a rollout reached become a help state?"""


class CheckpointConfig(Value, frozen=True, kw_only=True):
    """From where a run that was broken off goes on."""

    every: Count = 10
    """Steps between them."""
    keep: Count = 2
    """So many stay, the latest ones."""


class TrainConfig(Value, frozen=True, kw_only=True):
    """A whole run."""

    out: str | None = None
    """Folder of the run; None: a new one in `runs/`."""
    trainer: Literal["loop", "trl"] = "loop"
    """Our own small loop, or TRL's trainer."""
    steps: Count = 100
    seed: int = 0
    """Decides all that is random; with the same help states and executions, runs are the same."""
    states: StatesConfig = StatesConfig()
    model: ModelConfig = ModelConfig()
    warm_up: WarmUpStep | None = None
    writing: WritingConfig = WritingConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    rollouts: RolloutsConfig = RolloutsConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    proxy: ProxyConfig = ProxyConfig()
    guards: GuardConfig = GuardConfig()
    checkpoints: CheckpointConfig = CheckpointConfig()
    logs: LogConfig = LogConfig()
    trl: dict[str, Any] = msgspec.field(default_factory=dict)
    """Settings of TRL's `GRPOConfig`, passed on as they are; they win over those above."""


def train_config(
    file: Path | None = None, preset: str | None = None, overrides: Sequence[str] = (), **named: Any
) -> TrainConfig:
    """From a file or a preset, with overrides as in `mle_ideator.config`. Raises `UsageError`."""
    if file and preset:
        raise UsageError("say --config or --preset, not both.")
    chosen = preset_file(preset) if preset else file
    return load_config(TrainConfig, chosen, overrides, **named)


def preset_file(name: str) -> Path:
    known = sorted(path.stem for path in PRESETS.glob("*.yaml"))
    if name not in known:
        raise UsageError(unknown("preset", name, known))
    return PRESETS / f"{name}.yaml"
