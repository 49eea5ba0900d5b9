"""The sandbox that the manual shows how to write really works."""

from __future__ import annotations

import re
from pathlib import Path

from mle_ideator.types import Execute

MANUAL = Path(__file__).parents[2] / "docs" / "sandboxes.md"


async def test_the_example_of_a_sandbox_works(make_request):
    (example,) = re.findall(r"```python\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    async with names["NiceSandbox"](make_request()) as sandbox:
        code = "import os; print(os.nice(0), open('input/train.csv').readline())"
        execution = await sandbox.execute(Execute("python", code), 30)
    assert execution.text == "19 id,x,target\n\n"
