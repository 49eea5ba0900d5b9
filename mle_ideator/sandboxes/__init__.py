"""Where agent code runs.

A sandbox is one Jupyter kernel with one workspace (`protocols.Sandbox`). What lives here:

- `local`, `bubblewrap`: the sandboxes, one file each.
- `kernel`: the engine they share; `running`: one kernel with its supervisor.
- `kernel_process`, `supervisor`: the programs that run on the other side.
- `connection_file`, `connection`: the messages; `reader`, `output`, `notes`: bytes, text, and
  words for the agent.
- `environment`, `inputs`, `private`, `processes`, `facts`: what a kernel is given and leaves.
- `reply`, `trees`: what agent code can forge or close, and must not.

To add one, subclass `kernel.KernelSandbox`, say how to start a process and what that covers, and
register the class under the entry-point group `mle_ideator.sandboxes`. `docs/sandboxes.md` has an
example, and `tests/sandboxes` is the suite that every sandbox must pass.
"""

from __future__ import annotations

from mle_ideator.protocols import SandboxFactory
from mle_ideator.registry import find

STRONGEST_FIRST = ("bubblewrap", "local")


def choose_sandbox(spec: str = "auto") -> tuple[str, SandboxFactory]:
    """The sandbox for a spec, with its name; `auto` is the strongest that works on this machine.

    Raises `UsageError` if there is none of that name. Whether a named one works is not asked here:
    its `unavailable()` says so.
    """
    names = STRONGEST_FIRST if spec == "auto" else (spec,)
    for name in names:
        factory: SandboxFactory = find("sandboxes", name)[0]
        if factory.unavailable() is None:
            break
    return name, factory
