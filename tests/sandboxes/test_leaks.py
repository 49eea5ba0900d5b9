"""A sandbox that has ended leaves nothing; `tests/performance/leak_run.py` has the long form."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mle_ideator.protocols import SandboxFactory
from tests.performance.leak_run import SESSIONS, leaked, leaks


@pytest.fixture
def own_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Short: the kernel's sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="leaks-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.mark.parametrize(
    "sessions", [12, pytest.param(SESSIONS, marks=pytest.mark.slow)], ids=["short", "long"]
)
async def test_nothing_is_left_of_sessions(
    factory: SandboxFactory, own_temporary_folder: Path, sessions: int
) -> None:
    before, after, growth_mb = await leaks(factory, sessions, own_temporary_folder)
    assert leaked(before, after, growth_mb, sessions) == []
