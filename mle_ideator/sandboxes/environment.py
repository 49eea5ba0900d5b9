"""What agent code inherits: an environment by allowlist, and the Python that solutions run with."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

MARK = "MLE_IDEATOR_SANDBOX"

_PASSED_ON = (
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "TZ",
)


def environment(*, home: str, temporary: str, threads: int, mark: str) -> dict[str, str]:
    """The whole environment of a sandbox: nothing else of the runtime's is passed on."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if user_packages():
        passed["PYTHONUSERBASE"] = site.getuserbase()
    count = str(threads)
    return passed | {
        "PATH": ":".join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
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
        "OMP_NUM_THREADS": count,
        # Waiting threads that spin make a small fit a hundred times slower on busy cores.
        "OMP_WAIT_POLICY": "PASSIVE",
        "OPENBLAS_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "NUMEXPR_MAX_THREADS": count,
        "LOKY_MAX_CPU_COUNT": count,
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
