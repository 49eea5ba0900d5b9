"""What agent code inherits: an environment by allowlist, and the Python that solutions run with."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

from mle_ideator.sandboxes.limits.gpus import visible_gpus

MARK = "MLE_IDEATOR_SANDBOX"
"""Variable that tells which sandbox a process belongs to."""
MARK_LENGTH = 32
OF_ONE_SANDBOX = (MARK, "HOME", "TMPDIR", "PATH")
"""Variables that differ between sandboxes; nothing reads them when it is imported."""

_PASSED_ON = (
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "TZ",
)


_THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"),
    # polars; tokenizers; pyarrow, whose other pool follows OpenMP's
    *("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "ARROW_IO_THREADS"),
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"),
    # `os.cpu_count()` from Python 3.13 on, and with it `multiprocessing` and what asks that
    "PYTHON_CPU_COUNT",
)
"""Where libraries read how many threads or processes to start."""


def environment(
    *,
    home: str,
    temporary: str,
    commands: str,
    threads: int,
    mark: str,
    gpus: str | None = None,
) -> dict[str, str]:
    """The whole environment of a sandbox: nothing else of the runtime's is passed on.

    `commands` is the folder with the sandbox's own `python` and `job`. `gpus` as in
    `SandboxRequest`; raises `UsageError` if it is of another form.
    """
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if (visible := visible_gpus(gpus)) is not None:
        passed |= {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if user_packages():
        passed["PYTHONUSERBASE"] = site.getuserbase()
    return passed | {
        "PATH": ":".join(
            [commands, str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
        ),
        "HOME": home,
        "TMPDIR": temporary,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "COLUMNS": "120",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "Agg",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "DEBIAN_FRONTEND": "noninteractive",
        "PIP_NO_INPUT": "1",
        **dict.fromkeys(_THREADS, str(threads)),
        # How often a waiting thread looks before it sleeps: never makes a small fit three times
        # slower where cores are free, for ever a hundred times where they are not.
        "GOMP_SPINCOUNT": "1000",
        MARK: mark,
    }


def python_folders() -> list[Path]:
    """The prefixes of this Python, as they are named and as they resolve."""
    executable = Path(os.path.realpath(sys.executable))
    named = [Path(sys.prefix), Path(sys.base_prefix), executable.parents[1]]
    both = [variant for path in named for variant in (path, path.resolve())]
    return [path for path in dict.fromkeys(both) if path.is_dir()]


def user_packages() -> list[Path]:
    """This user's own site-packages, if this Python looks for libraries there."""
    folder = Path(site.getusersitepackages())
    return [folder] if site.ENABLE_USER_SITE and folder.is_dir() else []
