"""A training run from its config to a trained model: begun, or gone on with.

RUN/config.yaml      all settings
RUN/states.db, model, warm_up    what it began with, where that was made for it
RUN/metrics.jsonl    a line a step; logs/ for the trackers
RUN/checkpoint       the latest checkpoint, which `hf:RUN/checkpoint` serves
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from threading import Event

import msgspec

from mle_ideator.config import dump_config, load_config
from mle_ideator.errors import UsageError
from mle_ideator.files import lock, replace_file
from mle_ideator.rl.training.beginning import model_of, states_of, store_of
from mle_ideator.rl.training.checkpoints import LATEST
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.listening import Listener
from mle_ideator.rl.training.logs.lines import metrics_of
from mle_ideator.types import Value

CONFIG, BEGUN = "config.yaml", "begun"
_LOOK_S = 0.5


class Trained(Value, frozen=True, kw_only=True):
    """What came of a run, so far."""

    run: str
    steps: int
    reward_first: float | None
    """Mean over the first tenth of the steps; `None` before the first step."""
    reward_last: float | None
    """Over the last tenth."""
    invalid_first: float | None
    invalid_last: float | None
    executions: int
    """Rollouts that were executed."""
    cache_hits: int
    """Rollouts that were answered without."""
    states: int
    """In the buffer."""
    checkpoint: str
    """Folder of the model."""
    duration_s: float
    """Of this call."""
    stopped: str = ""
    """Why it ended before its last step, if it did."""


def begin(config: TrainConfig, listener: Listener, stop: Event | None = None) -> Trained | None:
    """Train in a new folder. Raises `UsageError`, and `RuntimeFailure` if it can not go on."""
    if _of_several() and not config.out:
        raise UsageError("several processes train together: say --out, so that all know where.")
    run = Path(config.out or f"runs/{time.strftime('%Y%m%d-%H%M%S')}-train")
    if _is_first():
        if (run / CONFIG).exists():
            raise UsageError(f"{run} holds a run already: go on with it by --resume {run}.")
        run.mkdir(parents=True, exist_ok=True)
        replace_file(run / CONFIG, dump_config(_settled(config, run)).encode())
    return go_on(run, listener, stop)


def go_on(run: Path, listener: Listener, stop: Event | None = None) -> Trained | None:
    """Train on from the latest checkpoint, or from the beginning if there is none yet.

    `stop` may be set by another thread: then the run ends after the step that is under way. Of
    several processes (`accelerate launch`) the first alone prepares the run, and tells what came
    of it; the others return `None`.
    """
    stop = stop or Event()
    if not _is_first():
        model = _awaited(run / BEGUN)
        config = load_config(TrainConfig, run / CONFIG)
        _train(config, run, store_of(config, run), model, Listener(), stop)
        return None
    if not (run / CONFIG).is_file():
        raise UsageError(f"{run} is no run of `train`: it has no {CONFIG}.")
    began = time.monotonic()
    config = load_config(TrainConfig, run / CONFIG)
    with _alone(run):
        store = states_of(config, run, listener)
        model = model_of(config, run, store, listener)
        replace_file(run / BEGUN, model.encode())
        stopped = _train(config, run, store, model, listener, stop)
    return _trained(run, time.monotonic() - began, stopped)


def _train(
    config: TrainConfig, run: Path, store: Path, model: str, listener: Listener, stop: Event
) -> str:
    if config.trainer == "loop" and _of_several():
        raise UsageError("the small loop is one process; with several say --set trainer=trl.")
    if config.trainer == "trl":
        from mle_ideator.rl.training.trl.running import train
    else:
        from mle_ideator.rl.training.small import train
    return train(config, run, store, model, listener, stop)


def _settled(config: TrainConfig, run: Path) -> TrainConfig:
    """To be gone on with from any folder."""
    store = config.states.store
    whole = store and str(Path(store).resolve())
    states = msgspec.structs.replace(config.states, store=whole)
    return msgspec.structs.replace(config, out=str(run), states=states)


def _is_first() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _of_several() -> bool:
    return os.environ.get("WORLD_SIZE", "1") != "1"


def _awaited(begun: Path) -> str:
    """The model, once the first process has it; launchers end all if one fails."""
    while not begun.exists():
        time.sleep(_LOOK_S)
    return begun.read_text(encoding="utf-8")


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    descriptor = os.open(run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not lock(descriptor):
            raise UsageError(f"{run} is being trained by another process.")
        yield
    finally:
        os.close(descriptor)


def _trained(run: Path, duration_s: float, stopped: str) -> Trained:
    steps = metrics_of(run)
    tenth = max(1, len(steps) // 10)

    def mean(name: str, part: slice) -> float | None:
        known = [value for step in steps[part] if (value := step.get(name)) is not None]
        return fmean(known) if known else None

    def last(name: str) -> int:
        return int((steps[-1].get(name) or 0) if steps else 0)

    return Trained(
        run=str(run),
        steps=len(steps),
        reward_first=mean("reward", slice(tenth)),
        reward_last=mean("reward", slice(-tenth, None)),
        invalid_first=mean("invalid_rate", slice(tenth)),
        invalid_last=mean("invalid_rate", slice(-tenth, None)),
        executions=last("executions"),
        cache_hits=last("cache_hits"),
        states=last("buffer_states"),
        checkpoint=str(run / LATEST),
        duration_s=duration_s,
        stopped=stopped,
    )
