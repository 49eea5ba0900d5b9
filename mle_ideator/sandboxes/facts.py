"""What a sandbox offers on this machine: Python, libraries, cores, memory."""

from __future__ import annotations

import math
import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

import psutil

from mle_ideator.protocols import SandboxLimits, SandboxRequest
from mle_ideator.sandboxes.limits.gpus import visible_gpus
from mle_ideator.types import SandboxInfo

LIBRARIES = (
    *("numpy", "pandas", "polars", "pyarrow", "scipy", "scikit-learn", "statsmodels"),
    *("lightgbm", "xgboost", "catboost", "torch", "torchvision", "transformers", "tensorflow"),
    *("matplotlib", "pillow", "opencv-python", "nltk", "spacy", "sentence-transformers", "optuna"),
)
_SHARE = 0.75
_CGROUP_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def sandbox_info(
    kind: str,
    network: bool,
    covers: tuple[str, ...],
    does_not_cover: tuple[str, ...],
    cold_start: str | None,
    request: SandboxRequest,
) -> SandboxInfo:
    return SandboxInfo(
        kind=kind,
        python=platform.python_version(),
        libraries=dict(libraries()),
        cores=math.ceil(min(len(os.sched_getaffinity(0)), request.limits.cpus or math.inf)),
        memory_gib=round(bound_bytes(request.limits) / 2**30, 1),
        gpus=gpus(visible_gpus(request.gpus)),
        network=network,
        covers=covers,
        does_not_cover=does_not_cover,
        cold_start=cold_start,
    )


@cache
def libraries() -> tuple[tuple[str, str], ...]:
    """Name and version of what solutions may use, of those that are installed."""
    found = []
    for name in LIBRARIES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def gpus(visible: str | None = None) -> tuple[str, ...]:
    """Names of the NVIDIA GPUs that their driver lists.

    `visible` is a value of `CUDA_VISIBLE_DEVICES` that assigns some, by number or by id; `None`
    stands for all that this process may use itself.
    """
    if visible is None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    listed = _gpus_of_this_machine()
    if visible is None:
        return tuple(name for _, name in listed)
    found = []
    for word in filter(None, map(str.strip, visible.split(","))):
        if word.startswith("MIG-"):
            found.append("NVIDIA MIG")
            continue
        matching = [
            name
            for number, (identity, name) in enumerate(listed)
            if word == str(number) or (word.startswith("GPU-") and identity.startswith(word))
        ]
        if not matching:  # CUDA reads no further
            break
        found += matching[:1]
    return tuple(found)


@cache
def _gpus_of_this_machine() -> tuple[tuple[str, str], ...]:
    """Id and name of each, in the order of the bus."""
    listed = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return tuple((_gpu_id(path), _gpu_name(path)) for path in listed)


def _gpu_id(information: Path) -> str:
    return _told(information, "GPU UUID:", "")


def _gpu_name(information: Path) -> str:
    return _told(information, "Model:", "NVIDIA")


def _told(information: Path, title: str, otherwise: str) -> str:
    try:
        lines = information.read_text(errors="replace").splitlines()
    except OSError:
        return otherwise
    told = (line.partition(":")[2].strip() for line in lines if line.startswith(title))
    return next(told, otherwise)


def memory_bytes() -> int:
    """This machine's memory, or this container's share of it."""
    limits = [psutil.virtual_memory().total]
    for path in _CGROUP_MEMORY:
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)


def bound_bytes(limits: SandboxLimits) -> int:
    """The memory that agent code may use: three quarters of this machine's if nothing is said."""
    if limits.memory_gib is None:
        return int(_SHARE * memory_bytes())
    return int(limits.memory_gib * 2**30)
