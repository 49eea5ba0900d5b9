"""What a warm-up is asked for, what it tells on the way, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mle_ideator.ideators.prompted.messages import Form
from mle_ideator.types import Value

Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Which = Literal["all", "worked"]


class WarmUpConfig(Value, frozen=True, kw_only=True):
    """Whose ideas are learnt, by which model, and how."""

    states: str
    """Store of help states that `collect` made."""
    model: str
    """A folder, a name on the hub, or a GGUF file, with or without `hf:`."""
    out: str
    """Folder of the trained model; it appears when all is done. Ideas are kept beside it, in
    `OUT.ideas.jsonl`, from where the same call goes on."""
    ideas_from: str = "offline"
    """Spec of the ideator that writes the ideas."""
    ideator_options: dict[str, Any] = msgspec.field(default_factory=dict)
    """What it is given besides."""
    which: Which = "all"
    """`all` teaches the form, whatever the ideas are worth; `worked` keeps those that improved the
    score when they were executed once."""
    ideas: Count = 4
    """Asked for at each help state; equal ones are learnt once."""
    tasks: tuple[str, ...] = ()
    """Only the help states of these tasks; none: of all."""
    reached: bool = True
    """Those, too, that rollouts reached; otherwise only those of sessions."""
    limit: Count | None = None
    """So many help states, drawn by the seed; without it all."""
    short: bool = False
    """Keep of each idea the least that says it, for models that can not write much."""
    form: Form = "tags"
    """Of the answers."""
    held_out: Annotated[float, Meta(ge=0, lt=1)] = 0.1
    """Share of the help states that are not learnt from but measured on."""
    epochs: Count = 3
    """Passes over the ideas."""
    batch: Count = 8
    """Ideas of an update."""
    lr: Positive = 1e-3
    """Highest learning rate; 1e-5 to 1e-4 for a model that can write already."""
    schedule: Literal["cosine", "linear"] = "cosine"
    """How the rate falls to a tenth, after it rose over the first twentieth of the updates."""
    weight_decay: Annotated[float, Meta(ge=0)] = 0.01
    clip_norm: Positive = 1.0
    """Longest gradient."""
    context_tokens: Count | None = None
    """Use no more of the model's context."""
    lora_rank: Natural = 0
    """Train low-rank adapters of every linear layer, merged at the end; 0 trains all weights."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the weights while they are trained, and in the result."""
    parallel: Count | None = None
    """Ideas that are asked for, or executed, at the same time; without it four, or where they are
    executed two a worker. A person is asked one by one."""
    idea_s: Positive = 600.0
    """The longest that the ideator may take for one."""
    engine: Literal["local", "ray"] = "local"
    """Where ideas are executed. For `worked` only, as the next four."""
    workers: Count | None = None
    """Processes that execute them on this machine; without it one a core."""
    address: str | None = None
    """Of the Ray cluster; without it one is started here."""
    sandbox: str | None = None
    """Another sandbox than the sessions had."""
    limit_s: Positive = 1800.0
    """Of one execution, after which it is killed."""
    sampled: Natural = 64
    """Answers that are sampled on held-out states at the end, at temperature 1."""
    seed: int = 0
    """Decides the held-out states, the ideator's draws, the order and the samples."""


class Progress(Value, frozen=True, kw_only=True):
    """How far it is."""

    phase: Literal["ideas", "training", "sampling"]
    done: int
    planned: int
    note: str = ""
    """What went wrong just now, if anything."""
    values: dict[str, float] = msgspec.field(default_factory=dict)
    """For instance `loss`, `held_out_loss`, `lr`."""


class Ideas(Value, frozen=True, kw_only=True):
    """What the ideator gave."""

    asked: int
    declined: int
    """It had no idea."""
    malformed: int
    """Its answer was no idea."""
    failed: int
    """It broke, or its idea's execution did; the same call asks again."""
    worthless: int
    """Executed, and no better score; 0 where nothing is executed."""
    equal: int
    """Said before, at the same help state."""
    too_long: int
    """Longer than the model's context, or than what it may answer."""
    kept: int


class Answers(Value, frozen=True, kw_only=True):
    """What a model answered when it was asked without help."""

    sampled: int
    well_formed: int
    tokens: float | None
    """Mean length of an answer; `None` if there is none."""
    operations: dict[str, int]
    """How many of the ideas name each operation."""
    without_operation: int
    distinct: int
    """Different texts."""

    @property
    def well_formed_share(self) -> float | None:
        """`None` if nothing was sampled."""
        return self.well_formed / self.sampled if self.sampled else None


class WarmedUp(Value, frozen=True, kw_only=True):
    """What came of it; `warm_up.json` in the model's folder."""

    model: str
    """Folder of the result."""
    states: int
    held_out_states: int
    ideas: Ideas
    updates: int
    loss_first: float
    """Mean over the first tenth of the updates, nats per token of the answers."""
    loss_last: float
    """Over the last tenth."""
    held_out_loss_before: float | None
    """`None` where no idea of a held-out state was kept."""
    held_out_loss: float | None
    answers: Answers
    ideas_s: float
    training_s: float
    sampling_s: float
