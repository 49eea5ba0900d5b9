"""Which GPUs agent code is shown."""

from __future__ import annotations

import os
import re

from mle_ideator.errors import UsageError

_ID = re.compile(r"\d{1,3}|(?:GPU|MIG)-[0-9A-Za-z/-]{1,80}")


def visible_gpus(wanted: str | None) -> str | None:
    """The value of `CUDA_VISIBLE_DEVICES` in a sandbox; `None`: as this process has it.

    `wanted` is `all` (that this process may use), `""` for none, or numbers or ids with commas
    between them, numbers as `nvidia-smi` gives them (`CUDA_DEVICE_ORDER=PCI_BUS_ID`).
    Raises `UsageError` for what is no id, is named twice, or is not this process's to give.
    """
    if wanted is None or wanted == "all":
        return None
    ids = [word.strip() for word in wanted.split(",") if word.strip()]
    for identity in ids:
        if not _ID.fullmatch(identity):
            raise UsageError(
                f"no GPU can be {identity!r}: gpus takes `all`, none (`''`), or numbers or ids "
                "with commas between them, as `nvidia-smi -L` lists them."
            )
    if len(set(ids)) < len(ids):
        raise UsageError(f"gpus names one GPU twice: {wanted}")
    _check_own(ids)
    return ",".join(ids)


def _check_own(ids: list[str]) -> None:
    """What was assigned to this process bounds what it can give away, as far as numbers tell."""
    own = os.environ.get("CUDA_VISIBLE_DEVICES")
    if own is None:
        return
    known = {word.strip() for word in own.split(",")} - {""}
    foreign = [number for number in ids if number.isdigit() and number not in known]
    if foreign and all(word.isdigit() for word in known):
        raise UsageError(
            f"GPU {foreign[0]} is not among those of this process (CUDA_VISIBLE_DEVICES={own})."
        )
