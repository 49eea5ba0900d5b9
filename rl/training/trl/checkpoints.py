"""Checkpoints of a run that TRL trains.

step-000030/         the model, as `hf:FOLDER` serves it; with all weights trained, also TRL's part
step-000030/trainer  TRL's part where adapters are trained: they, the optimiser, random states
step-000030/buffer   the buffer;  watch.json: guards and counts
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from mle_ideator.rl.training.checkpoints import write_checkpoint
from mle_ideator.rl.training.trl.processes import agreed

TRAINER = "trainer"
SIDE = "trl"
"""Folder of a run into which TRL writes; what is whole is moved out of it."""


def cleared(run: Path) -> None:
    """Remove what an earlier process left half written."""
    agreed(lambda: shutil.rmtree(run / SIDE, ignore_errors=True))


def resumed_from(folder: Path) -> Path:
    """Where TRL's part of a checkpoint lies."""
    part = folder / TRAINER
    return part if part.is_dir() else folder


class Keeper:
    """Writes checkpoints of one run; all processes have one."""

    def __init__(
        self,
        run: Path,
        keep: int,
        more: Callable[[Path], None],
        merge: Callable[[Path, Path], None] | None = None,
    ) -> None:
        """`more` adds to a checkpoint what else belongs there. Where adapters are trained, `merge`
        makes a model of a folder of them, in another folder."""
        self._run, self._keep, self._more, self._merge = run, keep, more, merge

    def write(self, step: int, save: Callable[[], None]) -> None:
        """`save` makes TRL write its part, in all processes; then the main one finishes it."""
        save()
        agreed(lambda: None)  # all have written
        agreed(lambda: write_checkpoint(self._run, step, self._keep, self._fill))

    def _fill(self, part: Path) -> None:
        (written,) = (self._run / SIDE).glob("checkpoint-*")
        if self._merge is None:
            for path in written.iterdir():
                path.rename(part / path.name)
            written.rmdir()
        else:
            written.rename(part / TRAINER)
            self._merge(part / TRAINER, part)
        self._more(part)


def merged(
    base: str, dtype: str, tokenizer: Any, served: dict[str, Any], adapters: Path, out: Path
) -> None:
    """A model with its adapters merged. From the files, so that what is trained stays as it is.

    `served` is how it is to write, as `generation_config.json` says it.
    """
    from peft import PeftModel

    with torch.random.fork_rng(devices=[]):  # adapters are drawn before they are read
        whole = AutoModelForCausalLM.from_pretrained(base, dtype=dtype)
        model = PeftModel.from_pretrained(whole, str(adapters)).merge_and_unload()
    model.generation_config.update(**served)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
