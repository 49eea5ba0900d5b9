"""What a sandbox offers on this machine: Python, libraries, cores, memory."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

import psutil

from mle_ideator.types import SandboxInfo

LIBRARIES = (
    *("numpy", "pandas", "polars", "pyarrow", "scipy", "scikit-learn", "statsmodels"),
    *("lightgbm", "xgboost", "catboost", "torch", "torchvision", "transformers", "tensorflow"),
    *("matplotlib", "pillow", "opencv-python", "nltk", "spacy", "sentence-transformers", "optuna"),
)
_CGROUP_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def sandbox_info(
    kind: str, network: bool, covers: tuple[str, ...], does_not_cover: tuple[str, ...]
) -> SandboxInfo:
    return SandboxInfo(
        kind=kind,
        python=platform.python_version(),
        libraries=dict(libraries()),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(memory_bytes() / 2**30, 1),
        gpus=gpus(),
        network=network,
        covers=covers,
        does_not_cover=does_not_cover,
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


@cache
def gpus() -> tuple[str, ...]:
    """Names of the NVIDIA GPUs that their driver lists."""
    listed = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return tuple(_gpu_name(path) for path in listed)


def _gpu_name(information: Path) -> str:
    try:
        lines = information.read_text(errors="replace").splitlines()
    except OSError:
        return "NVIDIA"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("Model:"))
    return next(named, "NVIDIA")


def memory_bytes() -> int:
    """This machine's memory, or this container's share of it."""
    limits = [psutil.virtual_memory().total]
    for path in _CGROUP_MEMORY:
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)
