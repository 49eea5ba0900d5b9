"""How the implementer of a help state tells ideas apart, if it says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mle_ideator.errors import UsageError
from mle_ideator.rl.states import StateStore
from mle_ideator.setups import implementer_of
from mle_ideator.types import Idea

Gist = Callable[[Idea], str]


def gists_of(store: StateStore) -> Callable[[str], Gist | None]:
    """The gist of a help state's implementer, by the state's id; each is looked up once.

    `None` where it has none, or can not be made here.
    """
    agents: dict[str, Any] = {}
    known: dict[str, Gist | None] = {}

    def gist(state: str) -> Gist | None:
        if state not in known:
            config = store.started(state).config
            named = config["implementer"], config.get("implementer_options", {})
            if repr(named) not in agents:
                try:
                    agents[repr(named)] = implementer_of(*named)
                except UsageError:  # whoever executes with it is told
                    agents[repr(named)] = None
            known[state] = getattr(agents[repr(named)], "gist", None)
        return known[state]

    return gist
