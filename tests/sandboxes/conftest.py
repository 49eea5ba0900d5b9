"""The sandboxes under test: every registered one, plugins included; skipped where unavailable."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from mle_ideator.protocols import Sandbox, SandboxFactory, SandboxRequest
from mle_ideator.registry import find, registered
from mle_ideator.types import Execute, Execution

TRAIN = "id,x,target\n1,0.5,1\n2,0.25,0\n"
SECRETS = {"OPENAI_API_KEY": "sk-planted-1", "MY_TOKEN": "planted-2", "AWS_SECRET": "planted-3"}


class Box:
    """A sandbox whose cells are checked to end in time."""

    def __init__(self, sandbox: Sandbox, workspace: Path) -> None:
        self.sandbox = sandbox
        self.workspace = workspace

    async def python(self, code: str, timeout_s: float = 30) -> Execution:
        return await self._run(Execute("python", code), timeout_s)

    async def bash(self, code: str, timeout_s: float = 30) -> Execution:
        return await self._run(Execute("bash", code), timeout_s)

    async def _run(self, action: Execute, timeout_s: float) -> Execution:
        start = time.monotonic()
        execution = await self.sandbox.execute(action, timeout_s)
        took = time.monotonic() - start
        assert took < timeout_s + 5
        if execution.status == "timeout":
            assert execution.duration_s >= timeout_s - 0.01
        return execution

    async def works(self) -> None:
        python, bash = await self.python("print(6 * 7)"), await self.bash("echo 6; pwd -P")
        assert (python.status, python.text) == ("ok", "42\n")
        assert (bash.status, bash.text.splitlines()[0]) == ("ok", "6")


@pytest.fixture(scope="session", params=sorted(registered("sandboxes")))
def factory(request: pytest.FixtureRequest) -> SandboxFactory:
    found: SandboxFactory = find("sandboxes", request.param)[0]
    reason = found.unavailable()
    if reason is not None:
        pytest.skip(f"{request.param}: {reason}")
    return found


@pytest.fixture(scope="session")
def make_request(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SandboxRequest]:
    """A request with fresh folders; `SandboxRequest`'s other fields by keyword."""

    def make(**fields: object) -> SandboxRequest:
        folder = tmp_path_factory.mktemp("session")
        (folder / "workspace").mkdir()
        (folder / "inputs" / "more").mkdir(parents=True)
        (folder / "inputs" / "train.csv").write_text(TRAIN)
        (folder / "inputs" / "more" / "notes.txt").write_text("as given\n")
        settings = {"workspace": str(folder / "workspace"), "inputs": str(folder / "inputs")}
        return SandboxRequest(**(settings | fields))  # type: ignore[arg-type]

    return make


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(
    factory: SandboxFactory, make_request: Callable[..., SandboxRequest]
) -> AsyncIterator[Box]:
    request = make_request()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        async with factory(request) as sandbox:
            yield Box(sandbox, Path(request.workspace))


@pytest_asyncio.fixture(loop_scope="module")
async def box(shared: Box) -> AsyncIterator[Box]:
    """One sandbox for a whole module; after each test its next cell must work."""
    yield shared
    await shared.works()
