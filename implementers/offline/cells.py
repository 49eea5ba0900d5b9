"""The cells that the policy executes: the first look, and a solution written and run."""

from __future__ import annotations

from mle_ideator.implementers.offline import literals
from mle_ideator.implementers.offline.source import assemble
from mle_ideator.types import Execute, Task

_RUN = """
Path("solution.py").write_text(SOLUTION.lstrip(), encoding="utf-8")
line = ""
with subprocess.Popen(
    [sys.executable, "solution.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
) as process:
    try:
        for line in process.stdout:
            print(line, end="")
    except BaseException:
        process.kill()
        raise
if process.returncode != 0:
    raise RuntimeError(f"solution.py ended with code {process.returncode}: {line.strip()}")
"""


def profile_cell(task: Task) -> Execute:
    targets = [literals.text(name) for name in task.targets]
    call = f'show_profile("input", {literals.text(task.id_column)}, [{", ".join(targets)}])'
    return Execute("python", assemble(call, {}, ()))


def solution_cell(code: str) -> Execute:
    """Writes `solution.py` and runs it in a process of its own; fails if that fails."""
    head = "import subprocess\nimport sys\nfrom pathlib import Path\n"
    return Execute("python", f"{head}\nSOLUTION = r'''\n{code}'''\n{_RUN}")
