"""What `doctor` looks at. Each check really tries the thing."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from mle_ideator.errors import MleIdeatorError
from mle_ideator.protocols import SandboxFactory, SandboxRequest
from mle_ideator.registry import find, registered
from mle_ideator.types import Execute, Value

_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


class Check(Value, frozen=True, kw_only=True):
    """One part of the machine."""

    name: str
    works: bool
    needed: bool = False
    """Can nothing be run without it?"""
    found: str
    remedy: str = ""


async def all_checks() -> list[Check]:
    sandboxes = [await _sandbox(name) for name in registered("sandboxes")]
    return [
        _python(),
        Check(
            name="a sandbox",
            works=any(check.works for check in sandboxes),
            needed=True,
            found=", ".join(
                check.name.removeprefix("sandbox ") for check in sandboxes if check.works
            )
            or "none works",
        ),
        *sandboxes,
        _limits(),
        _tasks(),
        *(_extra(name) for name in _extras()),
        *(_key(name) for name in _KEYS),
    ]


def _python() -> Check:
    cores = len(os.sched_getaffinity(0))
    return Check(
        name="python",
        works=sys.version_info >= (3, 11),
        needed=True,
        found=f"{platform.python_version()} on {platform.system()}, {cores} cores",
        remedy="" if sys.version_info >= (3, 11) else "Python 3.11 or later is needed.",
    )


async def _sandbox(name: str) -> Check:
    """Start a kernel, run a cell, and end it; twice, as the first start imports the libraries."""
    factory, _ = find("sandboxes", name)
    reason = factory.unavailable()
    if reason:
        return Check(name=f"sandbox {name}", works=False, found="not usable", remedy=reason)
    try:
        await _opened(factory)
        works, found = await _opened(factory)
    except MleIdeatorError as error:
        return Check(name=f"sandbox {name}", works=False, found="broken", remedy=str(error))
    return Check(name=f"sandbox {name}", works=works, found=found)


async def _opened(factory: SandboxFactory) -> tuple[bool, str]:
    """Did a cell work, and how long the start took."""
    with tempfile.TemporaryDirectory() as folder:
        workspace, inputs = Path(folder, "workspace"), Path(folder, "inputs")
        inputs.mkdir()
        start = time.monotonic()
        request = SandboxRequest(workspace=str(workspace), inputs=str(inputs))
        async with factory(request) as sandbox:
            ready, cold = time.monotonic() - start, sandbox.info.cold_start
            result = await sandbox.execute(Execute("python", "print(6 * 7)"), 30)
    works = result.status == "ok" and result.text.strip() == "42"
    return works, f"a kernel is ready after {ready:.2f}s" + (f", cold: {cold}" if cold else "")


def _limits() -> Check:
    """How memory and the number of processes are held in the sandboxes of this machine."""
    from mle_ideator.sandboxes.limits.control_groups import why_not

    reason = why_not()
    return Check(
        name="limits",
        works=not reason,
        found="the sandboxes only look at memory and processes" if reason else "control groups",
        remedy=reason,
    )


def _tasks() -> Check:
    from mle_ideator.benchmarks.sources import all_cards

    try:
        found = f"{len(all_cards())} tasks"
    except MleIdeatorError as error:
        return Check(name="tasks", works=False, found="broken", remedy=str(error))
    return Check(name="tasks", works=True, found=found)


def _extras() -> dict[str, list[str]]:
    """Distribution names by extra, as the installed package declares them."""
    extras: dict[str, list[str]] = {}
    for requirement in requires("mle-ideator") or []:
        package, _, condition = requirement.partition(";")
        if "extra ==" in condition:
            extra = condition.split("extra ==")[1].strip(" \"'")
            name = package.strip().partition(">")[0].partition("=")[0].partition("<")[0]
            extras.setdefault(extra, []).append(name.partition("[")[0].strip())
    return extras


def _extra(name: str) -> Check:
    missing = []
    for package in _extras()[name]:
        try:
            version(package)
        except PackageNotFoundError:
            missing.append(package)
    return Check(
        name=f"extra {name}",
        works=not missing,
        found=f"lacks {', '.join(missing)}" if missing else "installed",
        remedy=f"pip install 'mle-ideator[{name}]'" if missing else "",
    )


def _key(name: str) -> Check:
    there = bool(os.environ.get(name))
    return Check(
        name=name,
        works=there,
        found="set" if there else "not set",
        remedy="" if there else "not needed by the offline agents.",
    )
