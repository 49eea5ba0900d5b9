"""`python solution.py` in a sandbox is a fork of a warm process, and does what a new one would."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from mle_ideator.sandboxes.local import LocalSandbox
from mle_ideator.types import Execute


@dataclass(frozen=True)
class Case:
    """As in `warm_runs.yaml`."""

    name: str
    script: str
    command: str = "python solution.py"
    warm: bool | None = True
    files: dict[str, str] = field(default_factory=dict)


ALL = [
    Case(**case) for case in yaml.safe_load(Path(__file__).with_name("warm_runs.yaml").read_bytes())
]
PROBE = """#!/usr/bin/env python
import sys
open({path!r}, "w").write("warm" if "lightgbm" in sys.modules else "cold")
"""
BOTH_WAYS = """
cd {workspace}
mkdir new
for name in python python3 python3.11; do
    printf '#!/bin/sh\nexec "{python}" "$@"\n' > new/$name
done
chmod +x new/*
own=$PATH
for way in warm cold {probe}; do
    rm -rf case $way
    cp -r files case
    if [ $way = cold ]; then PATH=$PWD/new:${{PATH#*:}}; else PATH=$own; fi
    if [ $way = probe ]; then cp probe.py case/solution.py; fi
    (cd case; bash ../command.sh) > $way.out 2> $way.err < /dev/null
    echo $? > $way.code
    mv case $way
done
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local(make_request):
    if reason := LocalSandbox.unavailable():
        pytest.skip(reason)
    request = make_request()
    async with LocalSandbox(request) as sandbox:
        assert sandbox.info.cold_start is None
        yield sandbox, Path(request.workspace)


async def run(local, code: str, timeout_s: float = 60) -> str:
    execution = await local[0].execute(Execute("bash", code), timeout_s)
    assert execution.status == "ok", (execution.text, execution.note)
    return execution.text


def put(folder: Path, case: Case) -> None:
    for name, text in {"solution.py": case.script, **case.files}.items():
        file = folder / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    (folder / "command.sh").write_text(f"{case.command}\n")
    (folder / "probe.py").write_text(PROBE.format(path=str(folder / "probed")))


def same_everywhere(text: bytes) -> bytes:
    """Without addresses, and process ids as bash tells them."""
    return re.sub(rb"0x[0-9a-f]+|(?<=: line 1:) +[0-9]+", b"*", text)


def seen(folder: Path, way: str) -> dict[str, object]:
    written = {str(file.relative_to(folder / way)): file for file in (folder / way).rglob("*")}
    return {
        "code": (folder / f"{way}.code").read_text(),
        "out": same_everywhere((folder / f"{way}.out").read_bytes()),
        "err": same_everywhere((folder / f"{way}.err").read_bytes()),
        "files": {
            name: file.read_bytes() if file.is_file() and file.suffix not in (".pyc", ".zip") else 0
            for name, file in written.items()
            if not name.startswith("probe")
        },
    }


def some_always() -> list[object]:
    """All of them take minutes."""
    return [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] if number % 5 else [])
        for number, case in enumerate(ALL)
    ]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", some_always())
async def test_a_warm_run_is_like_a_new_process(local, case, tmp_path_factory):
    folder = local[1] / f"at{ALL.index(case)}"
    folder.mkdir()
    put(folder, case)
    probe = "" if case.warm is None else "probe"
    await run(local, BOTH_WAYS.format(workspace=folder, python=sys.executable, probe=probe))
    assert seen(folder, "warm") == seen(folder, "cold")
    if case.warm is not None:
        assert (folder / "probed").read_text() == ("warm" if case.warm else "cold")


DRAWN = """
import random, tempfile, uuid, secrets, multiprocessing, os
import numpy as np
print(random.random(), np.random.rand(), np.random.default_rng().random())
print(uuid.uuid4(), uuid.uuid1())
print(secrets.token_hex(), next(tempfile._get_candidate_names()), id(object()) and os.urandom(4))
print(multiprocessing.current_process().authkey[:])
"""


@pytest.mark.asyncio(loop_scope="module")
async def test_nothing_drawn_at_random_is_drawn_twice(box):
    (box.workspace / "draw.py").write_text(DRAWN)
    first, second = [(await box.bash("python draw.py")).text.split() for _ in range(2)]
    assert len(first) > 7
    assert not set(first) & set(second)


OWN = """
import re
import numpy, pandas, lightgbm, sklearn
held = open("/proc/self/smaps_rollup").read()
print(sum(int(n) for n in re.findall(r"Private_(?:Clean|Dirty): +([0-9]+)", held)) // 1024)
"""


@pytest.mark.asyncio(loop_scope="module")
async def test_a_run_holds_little_memory_of_its_own(box):
    """In MiB, with the libraries imported."""
    (box.workspace / "own.py").write_text(OWN)
    assert int((await box.bash("python own.py")).text) <= 100


SLEEPER = """
import sys, time
print("warm" if "lightgbm" in sys.modules else "cold", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("language", ["bash", "python"])
async def test_the_time_limit_of_a_cell_interrupts_its_run(box, language):
    (box.workspace / "sleeper.py").write_text(SLEEPER)
    if language == "bash":
        execution = await box.bash("python sleeper.py", 2)
    else:
        execution = await box.python("!python sleeper.py", 2)
    assert execution.status == "timeout"
    assert execution.text.split()[:2] == ["warm", "interrupted"]
    assert "variables are kept" in execution.note
    assert "sleeper" not in (await box.bash("ps ax || true")).text


@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_run_leaves_running_is_seen_and_ends_with_the_kernel(box):
    (box.workspace / "leaves.py").write_text(
        "import subprocess; subprocess.Popen(['sleep', '661'], start_new_session=True)"
    )
    execution = await box.bash("python leaves.py")
    assert "still running in the background: pid" in execution.note
    assert "sleep 661" in execution.note
    assert (await box.python("import os; os._exit(1)")).status == "died"
    assert "sleep 661" not in (await box.bash("true")).note
