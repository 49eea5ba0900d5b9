"""What running code in a sandbox costs, beside aideml's interpreter and a fresh Python process.

    python -m tests.performance.bench_sandboxes [--aideml PYTHON] [--rounds N] [--sandbox NAME ...]
        [--part steps|kernels|rollouts ...]

PYTHON is that of an environment with aideml, and with the same numpy, pandas, scikit-learn and
lightgbm; without it that row is left out. Systems take turns, so that a busy machine slows all of
them down alike.

Targets: a scored step in at most 0.2 of the time of either; a kernel ready in 80 ms (local), 120 ms
(bubblewrap), 1 s (docker; its next one 200 ms); eight rollouts 6 times faster than one by one, each
with at most 100 MB of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median, quantiles

from mle_ideator.protocols import SandboxFactory, SandboxRequest
from mle_ideator.registry import find, registered
from mle_ideator.types import Execute
from tests.performance import kernel_start, rollouts
from tests.performance.scored_step import SOLUTION, Run, finished, write_inputs

HERE = Path(__file__).parent
TIMEOUT_S = 300
AIDEML, FRESH = "aideml's interpreter", "fresh process"
ROLLOUTS = 8

System = Callable[[], Awaitable[Run]]


def new_workspace(folder: Path, inputs: Path | None = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "solution.py").write_text(SOLUTION)
    if inputs is not None:
        (folder / "input").symlink_to(inputs)
    return folder


# ------------------------------------------------------------------------- a scored step


def aideml(python: str, workspace: Path, stack: AsyncExitStack) -> System:
    """A process that imported aideml once, as its agent does, and runs each step in a child."""
    process = subprocess.Popen(
        [python, HERE / "aideml_runs.py", workspace],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    stack.enter_context(process)
    assert process.stdin is not None
    stack.callback(process.stdin.close)

    def ask(line: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line)
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise SystemExit(f"{python} does not run aideml: try it with aideml_runs.py alone")
        return answer

    async def run() -> Run:
        seconds, text = json.loads(await asyncio.to_thread(ask, "run\n"))
        return finished(workspace, seconds, text)

    ask("")  # its first line says that it is ready
    return run


def fresh_process(workspace: Path) -> System:
    async def run() -> Run:
        start = time.perf_counter()
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "solution.py"],
            cwd=workspace,
            capture_output=True,
            text=True,
        )
        return finished(workspace, time.perf_counter() - start, done.stdout + done.stderr)

    return run


async def clean_run(
    factory: SandboxFactory, inputs: Path, workspace: Path, stack: AsyncExitStack
) -> System:
    """`python solution.py` in a sandbox that stays open."""
    request = SandboxRequest(workspace=str(workspace), inputs=str(inputs))
    sandbox = await stack.enter_async_context(factory(request))

    async def run() -> Run:
        start = time.perf_counter()
        step = await sandbox.execute(Execute("bash", "python solution.py"), TIMEOUT_S)
        return finished(workspace, time.perf_counter() - start, step.text)

    return run


def new_kernel(factory: SandboxFactory, inputs: Path, workspace: Path) -> System:
    """The same code as the first cell of a new sandbox; its end is not counted."""
    request = SandboxRequest(workspace=str(workspace), inputs=str(inputs))

    async def run() -> Run:
        start = time.perf_counter()
        async with factory(request) as sandbox:
            step = await sandbox.execute(Execute("python", SOLUTION), TIMEOUT_S)
            seconds = time.perf_counter() - start
            return finished(workspace, seconds, step.text)

    return run


async def scored_steps(
    factories: dict[str, SandboxFactory], python: str | None, rounds: int, folder: Path
) -> None:
    inputs = folder / "inputs"
    write_inputs(inputs)
    async with AsyncExitStack() as stack:
        systems: dict[str, System] = {}
        if python is not None:
            systems[AIDEML] = aideml(python, new_workspace(folder / "aideml", inputs), stack)
        systems[FRESH] = fresh_process(new_workspace(folder / "fresh", inputs))
        for name, factory in factories.items():
            clean, cell = (new_workspace(folder / name / kind) for kind in ("clean", "cell"))
            system = await clean_run(factory, inputs, clean, stack)
            systems[f"{name}: python solution.py"] = system
            systems[f"{name}: cell in a new kernel"] = new_kernel(factory, inputs, cell)
        for run in systems.values():  # not counted: files are read for the first time
            await run()
        runs: dict[str, list[Run]] = {name: [] for name in systems}
        for _ in range(rounds):
            for name, run in systems.items():
                runs[name].append(await run())
    print(f"\n## A scored step: seconds, {rounds} rounds\n")
    print("| system | median | quartiles | of it work | imports | of aideml | of a process |")
    print("|---|---|---|---|---|---|---|")
    for name, measured in runs.items():
        low, middle, high = quantiles([run.seconds for run in measured], n=4)
        print(
            f"| {name} | {middle:.3f} | {low:.3f}-{high:.3f} "
            f"| {median(run.work for run in measured):.3f} "
            f"| {median(run.imports for run in measured):.3f} "
            f"| {ratio(measured, runs.get(AIDEML))} | {ratio(measured, runs[FRESH])} |"
        )
    if python is None:
        print("\naideml was left out: no --aideml PYTHON was given")


def ratio(runs: list[Run], reference: list[Run] | None) -> str:
    """Of medians."""
    if reference is None:
        return ""
    return f"{median(r.seconds for r in runs) / median(r.seconds for r in reference):.2f}"


# ------------------------------------------------------------------------ a ready kernel


def kernels(names: list[str], openings: int) -> None:
    print(f"\n## A ready kernel: milliseconds, medians of {openings - 1} after the first\n")
    print(
        "| sandbox | | ready | first cell: imports | a new kernel after death | its imports | end |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in names:
        command = [sys.executable, kernel_start.__file__, name, str(openings)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        measured = json.loads(done.stdout)
        first, later = measured["first"], measured["later"]
        medians = {part: median(opening[part] for opening in later) for part in first}
        for which, parts in (("first of the process", first), ("later", medians)):
            cells = " | ".join(f"{1000 * seconds:.0f}" for seconds in parts.values())
            print(f"| {name} | {which} | {cells} |")


# ------------------------------------------------------------------------------ rollouts


async def compare_rollouts(
    factories: dict[str, SandboxFactory], at_once: list[int], rounds: int, folder: Path
) -> None:
    inputs, workspace = folder / "inputs", folder / "workspace"
    write_inputs(inputs)
    rollouts.write_workspace(workspace)
    snapshots = {name: folder / f"snapshot-{name}" for name in factories}
    for name, factory in factories.items():
        seconds = await rollouts.take_snapshot(factory, workspace, inputs, snapshots[name])
        print(f"\nsnapshot of the workspace, {name}: {seconds:.2f} s", end="")
        await rollouts.rollout(factory, snapshots[name], inputs, threads=1)  # not counted
    plain: list[float] = []
    ours: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        plain.append(await asyncio.to_thread(rollouts.one_by_one, workspace, inputs, ROLLOUTS))
        for name, factory in factories.items():
            for count in at_once:
                seconds = await rollouts.side_by_side(
                    factory, snapshots[name], inputs, ROLLOUTS, count
                )
                ours.setdefault((name, count), []).append(seconds)
    print(f"\n\n## {ROLLOUTS} rollouts from one snapshot of 200 MB: seconds, rounds: {rounds}\n")
    print("| | median | faster |\n|---|---|---|")
    print(f"| fresh process and full copy, one by one | {median(plain):.2f} | |")
    for (name, count), all_seconds in ours.items():
        faster = median(plain) / median(all_seconds)
        print(f"| {name}, {count} at once | {median(all_seconds):.2f} | {faster:.1f} x |")
    print("\nown memory at its peak: ", end="")
    alone = asyncio.to_thread(rollouts.one_by_one, workspace, inputs, 1)
    print(f"a fresh process {await rollouts.own_memory(alone):.0f} MB", end="")
    for name in factories.keys() - {"docker"}:
        one = rollouts.rollout(factories[name], snapshots[name], inputs, threads=1)
        print(f", a rollout in {name} {await rollouts.own_memory(one):.0f} MB", end="")
    print()


# ---------------------------------------------------------------------------------- main


def usable(names: list[str]) -> dict[str, SandboxFactory]:
    found: dict[str, SandboxFactory] = {}
    for name in names:
        factory: SandboxFactory = find("sandboxes", name)[0]
        if reason := factory.unavailable():
            print(f"{name} is left out: {reason}")
        else:
            found[name] = factory
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--aideml", metavar="PYTHON", help="of an environment that has aideml")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--openings", type=int, default=9, help="of each sandbox, for `kernels`")
    options.add_argument("--sandbox", nargs="+", default=sorted(registered("sandboxes")))
    options.add_argument("--at-once", type=int, nargs="+", default=[2, 4])
    parts = ["kernels", "steps", "rollouts"]
    options.add_argument("--part", nargs="+", choices=parts, default=parts)
    wanted = options.parse_args()
    factories = usable(wanted.sandbox)
    if "kernels" in wanted.part:
        kernels(list(factories), wanted.openings)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if "steps" in wanted.part:
            steps = Path(folder, "steps")
            asyncio.run(scored_steps(factories, wanted.aideml, wanted.rounds, steps))
        if "rollouts" in wanted.part:
            few = max(1, wanted.rounds // 5)
            apart = Path(folder, "rollouts")
            asyncio.run(compare_rollouts(factories, wanted.at_once, few, apart))


if __name__ == "__main__":
    main()
