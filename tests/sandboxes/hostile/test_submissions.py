"""What agent code leaves as `submission.csv` and `solution.py`, read by the runtime itself."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path

import pytest

from mle_ideator.benchmarks.grading.grader import FileGrader
from mle_ideator.solutions import Solutions, Workspace
from mle_ideator.types import Execute, Grade, Metric, Solution
from tests.sandboxes.hostile.conftest import Ground
from tests.sandboxes.hostile.poisons import GOOD, POISONS, SOLUTIONS, Poison

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATIENCE_S = 5.0
_CLEAR = (
    "import os, shutil\nfor name in ('submission.csv', 'solution.py', 'other.csv', 'x', 'y'):\n"
    + (
        "    if os.path.isdir(name) and not os.path.islink(name): shutil.rmtree(name)\n"
        "    elif os.path.lexists(name): os.unlink(name)\n"
    )
)


@pytest.fixture
def grader(tmp_path: Path) -> FileGrader:
    lines = [f"b{i},{2 * i},{'public' if i % 2 else 'private'}" for i in range(20)]
    (tmp_path / "answers.csv").write_text("\n".join(["id,y,part", *lines]) + "\n")
    return FileGrader(
        tmp_path / "answers.csv", metric="rmse", id_column="id", targets=("y",), prediction="value"
    )


class Runtime:
    """The part of a session that reads what a step left."""

    def __init__(self, ground: Ground, grader: FileGrader, folder: Path) -> None:
        self._ground, self._folder = ground, folder
        self._workspace = Workspace(ground.workspace)
        self._solutions = Solutions(folder, grader, Metric("rmse", higher_is_better=False))
        self._number = 0

    async def run(self, code: str) -> None:
        execution, _ = await self._ground.execute(
            Execute("python", self._ground.host.fill(code)), 20
        )
        assert execution.status == "ok", execution

    def written(self) -> bool:
        return self._workspace.submission_written()

    def capture(self) -> tuple[Solution | None, Grade]:
        """In time, and nothing of the host's is said or kept."""
        self._number += 1
        start = time.monotonic()
        solution, grade = self._solutions.capture(self._workspace, self._number, 1, "")
        assert time.monotonic() - start < PATIENCE_S
        said = "".join(problem.message for problem in (*grade.problems, *grade.remarks))
        assert not self._ground.host.leaked(said + (solution.code if solution else ""))
        assert "root:" not in said
        assert said.isprintable()
        for path in self._folder.rglob("*"):
            assert path.is_dir() or not self._ground.host.leaked(path.read_text(errors="replace"))
        return solution, grade


@pytest.fixture
def runtime(ground: Ground, grader: FileGrader, tmp_path: Path) -> Runtime:
    return Runtime(ground, grader, tmp_path / "solutions")


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.name)
async def test_a_poisoned_submission_is_a_problem_in_words(
    ground: Ground, runtime: Runtime, poison: Poison
) -> None:
    await runtime.run(f"{_CLEAR}open('solution.py', 'w').write('pass')\n{poison.code}")
    try:
        assert runtime.written() or (poison.restart and await _comes_to_be_written(runtime))
        solution, grade = runtime.capture()
        codes = {problem.code for problem in grade.problems} or {""}
        assert codes & set(poison.problems), grade
        assert (solution is None) == bool(grade.problems)
        assert not ground.host.harm()
    finally:
        if poison.restart:
            await ground.renew()
    await _is_usable(ground, runtime)


async def _comes_to_be_written(runtime: Runtime) -> bool:
    """One that somebody goes on writing is not there at each moment."""
    for _ in range(100):
        if runtime.written():
            return True
        await asyncio.sleep(0.01)
    return False


@pytest.mark.parametrize("poison", SOLUTIONS, ids=lambda poison: poison.name)
async def test_a_poisoned_solution_is_a_problem_in_words(
    ground: Ground, runtime: Runtime, poison: Poison
) -> None:
    if ground.kind == "local" and poison.left:
        pytest.skip(f"local: {poison.left.reason}")
    await runtime.run(f"{_CLEAR}{poison.code}\n{GOOD}")
    solution, grade = runtime.capture()
    assert solution is None
    assert [problem.code for problem in grade.problems] == ["no_solution"]
    await _is_usable(ground, runtime)


async def _is_usable(ground: Ground, runtime: Runtime) -> None:
    """After it, a good one is taken, and the next cell works."""
    await runtime.run(f"{_CLEAR}open('solution.py', 'w').write('pass')\n{GOOD}")
    assert runtime.written()
    solution, grade = runtime.capture()
    assert solution is not None, grade
    assert not await ground.fails()


async def test_times_set_back_hide_no_writing(runtime: Runtime) -> None:
    await runtime.run(f"{_CLEAR}{GOOD}")
    assert runtime.written()
    assert not runtime.written()
    same_size = GOOD.replace("{i}' for", "{19 - i}' for")
    for change in (
        "with open('submission.csv', 'r+') as file: file.write(file.read()[::-1])",
        same_size,
        f"os.rename('submission.csv', 'x')\n{GOOD}",
        "os.utime('submission.csv', (0, 0))",
    ):
        await runtime.run(
            "import os\nbefore = os.stat('submission.csv')\n"
            f"{change}\n"
            "os.utime('submission.csv', ns=(before.st_atime_ns, before.st_mtime_ns))"
        )
        assert runtime.written(), change


def _hole(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def _device(path: Path) -> None:
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))


@pytest.mark.parametrize("make", [_hole, _device], ids=["1 TB of nothing", "a device"])
async def test_what_a_bound_would_have_stopped_is_refused_too(
    grader: FileGrader, tmp_path: Path, make: object
) -> None:
    """Without a sandbox: agent code could not have written these."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "solution.py").write_text("pass")
    try:
        make(workspace / "submission.csv")  # type: ignore[operator]
    except PermissionError:
        pytest.skip("only root can make one")
    start = time.monotonic()
    solutions = Solutions(tmp_path / "solutions", grader, Metric("rmse", higher_is_better=False))
    solution, grade = solutions.capture(Workspace(workspace), 1, 1, "")
    assert time.monotonic() - start < PATIENCE_S
    assert solution is None
    assert [problem.code for problem in grade.problems] in (["too_large"], ["not_a_file"])
