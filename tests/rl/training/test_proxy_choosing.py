"""Which of several ideas a prompted ideator takes, where another ideator scores them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.ideators.prompted.choosing import scorer_of
from mle_ideator.operations import OPERATIONS
from mle_ideator.registry import create, registered
from mle_ideator.rl.training.proxy import Example, Proxy
from mle_ideator.rl.training.proxy.ideator import ProxyIdeator
from mle_ideator.types import Idea, Proposal
from tests.ideators.models import Desk, idea_text, ideator_at
from tests.rl.made_rollouts import help_state, idea

MODULE = """
class Longest:
    closed = 0

    async def propose(self, state): ...

    def score(self, state, ideas):
        return [len(idea.action) for idea in ideas]

    async def aclose(self):
        Longest.closed += 1
"""


@pytest.fixture
def longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "my_scorers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "my_scorers:Longest"
    sys.modules.pop("my_scorers", None)


async def test_an_own_scorer_chooses_without_a_call(longest: str) -> None:
    desk = Desk(*(idea_text(text) for text in ("Use ratios.", "Use a random forest.", "Use PCA.")))
    ideator = ideator_at(desk, ideas=3, choose=longest)
    proposal: Proposal = await ideator.propose(help_state("a"))
    assert proposal.idea is not None
    assert proposal.idea.action == "Use a random forest."
    assert proposal.usage.calls == 3
    await ideator.aclose()
    assert sys.modules["my_scorers"].Longest.closed == 1


def test_what_can_not_choose_is_refused(longest: str) -> None:
    assert scorer_of(longest)
    with pytest.raises(UsageError, match="choose must be vote, ranker or an ideator that scores"):
        scorer_of("dice")
    with pytest.raises(UsageError, match="'offline' has no method score"):
        scorer_of("offline")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`proxy` as an entry point, as a plugin brings it."""
    folder = tmp_path / "site" / "proxy_plugin-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: proxy-plugin\nVersion: 1.0\n")
    target = "mle_ideator.rl.training.proxy.ideator:ProxyIdeator"
    (folder / "entry_points.txt").write_text(f"[mle_ideator.ideators]\nproxy = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    registered.cache_clear()
    yield
    registered.cache_clear()


def examples() -> Sequence[Example]:
    """PCA helps, and nothing else does."""
    names = ("pca", "ratios", "model_forest", "calibrate")
    return [
        Example(help_state(f"t{i % 3}"), idea(OPERATIONS[names[i % 4]].action), i % 4 == 0)
        for i in range(120)
    ]


@pytest.mark.usefixtures("installed")
async def test_a_proxy_chooses_by_the_name_of_its_file(tmp_path: Path) -> None:
    Proxy.fit(examples()).save(tmp_path / "proxy.npz")
    spec = f"proxy:{tmp_path / 'proxy.npz'}"
    assert isinstance(create("ideators", spec), ProxyIdeator)
    actions = [OPERATIONS[name].action for name in ("ratios", "pca", "model_forest")]
    desk = Desk(*map(idea_text, actions))
    proposal: Proposal = await ideator_at(desk, ideas=3, choose=spec).propose(help_state("a"))
    assert proposal.idea is not None
    assert proposal.idea.action == OPERATIONS["pca"].action
    assert isinstance(proposal.idea, Idea)
    with pytest.raises(UsageError, match="no proxy that can be read"):
        ideator_at(Desk(), choose=f"proxy:{tmp_path / 'missing.npz'}")
