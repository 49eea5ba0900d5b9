"""`python solution.py` in a sandbox is a fork of a warm process, and does what a new one would."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import pytest_asyncio


from mle_ideator.sandboxes.local import LocalSandbox
from mle_ideator.types import Execute
from tests.sandboxes.warm_cases import ALL, PROBE, Case

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


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
async def test_a_warm_run_is_like_a_new_process(local, case, tmp_path_factory):
    folder = local[1] / f"at{ALL.index(case)}"
    folder.mkdir()
    put(folder, case)
    probe = "" if case.warm is None else "probe"
    await run(local, BOTH_WAYS.format(workspace=folder, python=sys.executable, probe=probe))
    assert seen(folder, "warm") == seen(folder, "cold")
    if case.warm is not None:
        assert (folder / "probed").read_text() == ("warm" if case.warm else "cold")
