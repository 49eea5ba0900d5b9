"""A sandbox with walls: Linux namespaces by bubblewrap, and nothing mounted but what is listed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mle_ideator.sandboxes.accounts import write_accounts
from mle_ideator.sandboxes.environment import environment, python_folders, user_packages
from mle_ideator.sandboxes.facts import bound_bytes
from mle_ideator.sandboxes.kernel import KernelSandbox
from mle_ideator.sandboxes.placement import PROGRAMS, Placement
from mle_ideator.sandboxes.programs.calls import filter_code
from mle_ideator.sandboxes.trees import make_usable

_USER = 1000
_WORKSPACE = "/workspace"
_KERNEL = "/run/kernel"
_PROGRAMS = "/run/programs"
_COMMANDS = "/run/bin"
_HOME = "/home/agent"
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CONFIGURATION = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "fonts"),
    *("ssl/certs", "ssl/openssl.cnf", "magic", "mime.types", "terminfo"),
)
_PYTHON_PARTS = (
    *("bin", "lib", "lib32", "lib64", "libexec", "include", "share", "etc", "ssl", "pyvenv.cfg"),
    *("conda-meta", "x86_64-conda-linux-gnu", "aarch64-conda-linux-gnu", "nvvm", "targets"),
)
_HARDWARE = ("/sys/devices/system/cpu", "/sys/devices/system/node")
_GPUS = ("nvidia*", "dri", "kfd")
# The lists that container engines use.
_PROC_READ_ONLY = ("bus", "fs", "irq", "pressure", "sys", "sysrq-trigger")
_PROC_HIDDEN = (
    *("acpi", "asound", "interrupts", "kallsyms", "kcore", "keys", "kmsg", "latency_stats"),
    *("sched_debug", "scsi", "timer_list", "timer_stats", "mtrr", "dynamic_debug", "sysvipc"),
)
_INSTALL = "install it with `apt-get install bubblewrap` (or your system's package manager)"


class BubblewrapSandbox(KernelSandbox):
    """The kernel runs in namespaces of its own, as a user without rights, seeing only its files."""

    kind = "bubblewrap"
    network = False
    covers = (
        "network: there is none, not even to this machine",
        "files: only the workspace, a private home and /tmp can be written; the host's home, "
        "temporary and cache folders do not exist",
        "answers: a task's source data is covered, the runtime and its package are not there",
        "inputs: mounted read-only",
        "processes: the code sees and reaches only its own; all end with it",
        "environment variables: none of the runtime's keys and tokens are passed on",
        "privileges: no capability, none can be gained",
        "system calls: no keys, no sockets but local and internet ones, no io_uring, no tracing of "
        "the kernel, no namespaces of users, no files that run as their owner (set-user-id)",
        "limits: memory, processes, processor time, disk, time of a cell, size of a file, size of "
        "the output, no core dumps",
    )
    does_not_cover = (
        "the Linux kernel: all share it, so a hole in it is a hole in the sandbox",
        "disk: it is looked at several times a second, so a fast writer comes some way past it",
        "installed software: the system's programs and the Python environment can be read",
    )

    @classmethod
    def unavailable(cls) -> str | None:
        return _unavailable()

    def _prepare(self) -> None:
        make_usable(self._workspace / "input")
        self._accounts = write_accounts(
            self._private.path / "etc", user=_USER, group=_USER, home=_HOME
        )

    def _place(self) -> Placement:
        walls = self._written_walls()
        return Placement(
            wrapper=("/bin/sh", "-c", _START, str(walls), _program()),
            walls=walls,
            bubblewrap=_program(),
            environment=environment(
                home=_HOME,
                temporary="/tmp",  # noqa: S108 its own
                commands=_COMMANDS,
                threads=self._request.threads,
                mark=self._private.mark,
                gpus=self._request.gpus,
            ),
            cwd="/",
            workspace=_WORKSPACE,
            folder=self._private.kernels,
            seen_as=_KERNEL,
            programs=_PROGRAMS,
            **self._confinement(),
            no_new_privileges=False,  # bubblewrap sets it, and may itself be set-user-id
        )

    def _written_walls(self) -> Path:
        """The options in a file: on the command line, agent code could read the host's paths."""
        options = self._private.path / "walls"
        options.write_bytes(b"\0".join(os.fsencode(word) for word in self._walls()) + b"\0")
        options.with_name("walls.calls").write_bytes(filter_code())
        return options

    def _walls(self) -> list[str]:
        """The order counts: what is mounted later covers what was mounted before."""
        private = self._private
        accounts = [
            word for inside, here in self._accounts.items() for word in ("--ro-bind", here, inside)
        ]
        return [
            *_NAMESPACES,
            *_no_nesting(),
            *(("--seccomp", "5") if filter_code() else ()),  # else its own processes have none
            *_system_mounts(),
            *_shared_memory(bound_bytes(self._request.limits) // 2),
            *accounts,
            *("--bind", str(private.temporary), "/tmp"),  # noqa: S108
            *("--bind", str(private.home), _HOME),
            *_python_mounts(),
            *_covers([*self._request.masked, *_own_package()]),
            *("--bind", str(self._workspace), _WORKSPACE),
            *("--ro-bind", str(self._inputs), f"{_WORKSPACE}/input"),
            *("--bind", str(private.kernels), _KERNEL),
            *("--ro-bind", str(PROGRAMS), _PROGRAMS),
            *("--ro-bind", str(private.commands), _COMMANDS),
            *("--remount-ro", "/"),
            *("--chdir", _WORKSPACE),
        ]


# on 3, the keeper reports; on 6, it is told what to do
_START = 'bwrap=$1; shift; exec "$bwrap" --args 4 -- "$@" 4< "$0" 5< "$0.calls"'
_NAMESPACES = (
    *("--unshare-all", "--unshare-user", "--uid", str(_USER), "--gid", str(_USER)),
    *("--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"),
)


def _system_mounts() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            words += ["--ro-bind", name, name]
    words += ["--proc", "/proc", *_machine_wide(), "--dev", "/dev"]
    for name in (*(f"/etc/{entry}" for entry in _CONFIGURATION), *_HARDWARE):
        words += ["--ro-bind-try", name, name]
    for device in (found for pattern in _GPUS for found in sorted(Path("/dev").glob(pattern))):
        words += ["--dev-bind-try", str(device), str(device)]
    return words


def _shared_memory(size: int) -> list[str]:
    """Nothing else in /dev can be written, and this holds so many bytes.

    A bubblewrap that can not limit it, before 0.8, leaves it half of the machine's memory.
    """
    limit = ("--size", str(size)) if _no_nesting() else ()
    return [*limit, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108 its own


def _machine_wide() -> list[str]:
    """Close the parts of /proc that belong to the whole machine.

    A runtime that root started stays root to the kernel's owner checks, and /proc/sys is root's.
    """
    words: list[str] = []
    for name in (f"/proc/{entry}" for entry in _PROC_READ_ONLY):
        words += ["--ro-bind-try", name, name]
    for path in (Path("/proc") / entry for entry in _PROC_HIDDEN):
        if path.is_dir():
            words += ["--tmpfs", str(path), "--remount-ro", str(path)]
        elif path.exists():
            words += ["--ro-bind", "/dev/null", str(path)]
    return words


def _python_mounts() -> list[str]:
    """This Python and its libraries at their own paths, and nothing that lies beside them.

    Links are mounted like folders: a link could not be made a second time where it lies below the
    sandbox's own `/tmp`, which outlives a kernel.
    """
    return [word for part in map(str, _python_parts()) for word in ("--ro-bind", part, part)]


def _python_parts() -> list[Path]:
    folders = [folder for folder in python_folders() if not folder.is_relative_to("/usr")]
    parts = [folder / name for folder in folders for name in _PYTHON_PARTS]
    return [*(part for part in parts if part.exists()), *user_packages()]


def _own_package() -> list[str]:
    """The runtime's package, where it is installed beside the libraries."""
    spec = find_spec("mle_ideator")
    return list(spec.submodule_search_locations or []) if spec else []


def _covers(masked: list[str]) -> list[str]:
    """Empty folders and files over what must not be seen, under each name that it has inside."""
    system = [path for path in map(Path, _SYSTEM) if not path.is_symlink()]
    mounted = [Path("/usr"), *system, *_python_parts()]
    places = {
        folder / path.relative_to(folder.resolve())
        for path in (Path(name).resolve() for name in masked)
        for folder in mounted
        if path.exists() and path.is_relative_to(folder.resolve())
    }
    words: list[str] = []
    for place in sorted(places):
        if place.is_dir():
            words += ["--tmpfs", str(place), "--remount-ro", str(place)]
        else:
            words += ["--ro-bind", "/dev/null", str(place)]
    return words


@cache
def _unavailable() -> str | None:
    """Really start one, once."""
    if sys.platform != "linux":
        return "it needs Linux"
    if not _program():
        return f"the program bwrap is not installed; {_INSTALL}"
    failure = None if _no_nesting() else _try()
    return failure and f"bwrap failed ({failure}); {_advice()}"


def _program() -> str:
    """Where it is, as the runtime's path says, not the sandbox's; empty if it is nowhere."""
    found = shutil.which("bwrap")
    return str(Path(found).absolute()) if found else ""


@cache
def _no_nesting() -> tuple[str, ...]:
    """Forbid user namespaces inside, where this bubblewrap can (0.8 and later)."""
    option = "--disable-userns"
    return () if _try(option) else (option,)


def _try(*options: str) -> str | None:
    """Why a trivial sandbox does not work, or `None`."""
    command = [_program(), *_NAMESPACES, *options, *_system_mounts(), "--", "/usr/bin/true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (tried.stderr.strip() or f"exit code {tried.returncode}") if tried.returncode else None


def _advice() -> str:
    for setting, wanted in (
        ("kernel.unprivileged_userns_clone", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "0"),
        ("user.max_user_namespaces", "15000"),
    ):
        path = Path("/proc/sys") / setting.replace(".", "/")
        value = path.read_text().strip() if path.exists() else None
        off = value == "0" if wanted != "0" else value == "1"
        if off:
            return f"user namespaces are off: `sysctl -w {setting}={wanted}` as root turns them on"
    return "in a container, it needs the right to make user namespaces (docker: --privileged)"
