"""Where agent code runs.

A sandbox is one workspace with one Jupyter kernel (`protocols.Sandbox`). What lives here:

- `local`, `bubblewrap`, `containers/docker`: the sandboxes, one file each.
- `kernel`: the engine that they share. `interior`: what runs inside the walls; `keeping`: the
  keeper there; `running`: one kernel; `cell`: one cell of it; `connection`, `reader`, `reply`,
  `output`: messages, bytes and text.
- `launching`: a process of the host's; `warm`: one forked from a fork server; `placement`,
  `environment`, `accounts`, `commands`, `inputs`, `private`: what it is given.
- `programs/`: what runs on the other side.
- `limits/`: what agent code may use. `workspaces/`: files that can be kept and put back.
- `containers/`: Docker.
- `facts`, `notes`: what a sandbox covers, and words for the agent. `processes`, `trees`, `owners`,
  `threads`: the tools below.
- `provisioner`: the warm start for any Jupyter client.

To add one, subclass `kernel.KernelSandbox`, say how to start a process and what that covers, and
register the class under the entry-point group `mle_ideator.sandboxes`. `docs/sandboxes.md` has an
example, and `tests/sandboxes` is the suite that every sandbox must pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mle_ideator.errors import UsageError
from mle_ideator.protocols import SandboxFactory
from mle_ideator.registry import find, typed_options

STRONGEST_FIRST = ("bubblewrap", "docker", "local")


def choose_sandbox(
    spec: str = "auto", options: Mapping[str, Any] | None = None
) -> tuple[str, SandboxFactory]:
    """The sandbox for a spec, with its name; `auto` is the strongest that works on this machine.

    Raises `UsageError` if there is none of that name, or if it takes no such options. Whether a
    named one works is not asked here: its `unavailable()` says so.
    """
    names = STRONGEST_FIRST if spec == "auto" else (spec,)
    for name in names:
        factory = _configured(name, options or {})
        if factory.unavailable() is None:
            break
    return name, factory


def _configured(spec: str, options: Mapping[str, Any]) -> SandboxFactory:
    """The factory, given what stands after the colon, and its options, where it takes them."""
    factory, argument = find("sandboxes", spec)
    if argument is None and not options:
        return factory  # type: ignore[no-any-return]
    if not hasattr(factory, "configured"):
        what = "argument after the colon" if argument is not None else "options"
        raise UsageError(f"sandbox {spec!r} takes no {what}.")
    typed = typed_options(options, factory, f"sandbox {spec!r}")
    return factory.configured(argument, typed)  # type: ignore[no-any-return]
