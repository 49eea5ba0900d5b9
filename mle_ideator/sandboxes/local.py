"""A sandbox that is a process group on this machine: contains accidents, not attacks."""

from __future__ import annotations

import sys

from mle_ideator.sandboxes import notes
from mle_ideator.sandboxes.environment import environment
from mle_ideator.sandboxes.inputs import CopiedInputs
from mle_ideator.sandboxes.kernel import KernelSandbox
from mle_ideator.sandboxes.placement import PROGRAMS, Placement


class LocalSandbox(KernelSandbox):
    """The kernel runs as the same user, with limits but without walls."""

    kind = "local"
    network = True
    covers = (
        "environment variables: none of the runtime's keys and tokens are passed on",
        "processes: everything the code starts is killed at the end, and at a timeout",
        "limits: memory, processes, processor time, disk, time of a cell, size of a file, size of "
        "the output, no core dumps",
        "privileges: none can be gained (set-user-id programs do not work)",
        "inputs: the code sees copies; changed ones are put back after each cell",
    )
    does_not_cover = (
        "network: the code can reach everything that this machine can",
        "files: the code can read and change what this user can, the home folder included",
        "answers: a task's source data on this machine, its Python package included, can be found",
        "other processes of this user, the runtime's memory included",
        "limits: code that looks for it can leave its control group where the runtime is root",
    )

    @classmethod
    def unavailable(cls) -> str | None:
        if sys.platform != "linux":
            return "it needs Linux"
        return None

    def _prepare(self) -> None:
        self._copies = CopiedInputs(self._inputs, self._workspace / "input")

    def _mend_inputs(self) -> list[str]:
        restored, lost = self._copies.mend()
        return [*notes.inputs_restored(restored), *notes.inputs_lost(lost)]

    def _place(self) -> Placement:
        return Placement(
            environment=environment(
                home=str(self._private.home),
                temporary=str(self._private.temporary),
                commands=str(self._private.commands),
                threads=self._request.threads,
                mark=self._private.mark,
                gpus=self._request.gpus,
            ),
            cwd=str(self._workspace),
            workspace=str(self._workspace),
            folder=self._private.kernels,
            seen_as=str(self._private.kernels),
            programs=str(PROGRAMS),
            walled=False,
            **self._confinement(),
        )
