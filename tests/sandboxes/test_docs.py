"""What the manual shows really works."""

from __future__ import annotations

import re
from pathlib import Path

from mle_ideator.types import Execute

MANUAL = Path(__file__).parents[2] / "docs" / "sandboxes.md"


def example(word: str) -> dict[str, object]:
    """The names that the manual's example with this word in it defines."""
    blocks = re.findall(r"```python\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if word in block]
    names: dict[str, object] = {}
    exec(code, names)
    return names


async def test_the_example_of_a_sandbox_works(make_request):
    sandbox = example("NiceSandbox")["NiceSandbox"](make_request())
    async with sandbox:
        code = "import os; print(os.nice(0), open('input/train.csv').readline())"
        execution = await sandbox.execute(Execute("python", code), 30)
        assert "a command of its own" in sandbox.info.cold_start
    assert execution.text == "19 id,x,target\n\n"


async def test_the_example_of_a_snapshot_works(tmp_path):
    assert await example("snapshot(")["branch"](tmp_path) == "kept\n"
