"""Every constant of the curriculum, and the ablations that are values of them.

AceGRPO (arXiv 2602.07906) gives the form of the learnability potential, and that sampling goes from
uniform to the top of it with cooling for what was just visited. No constant below is read from its
text: each default is *our choice*, and its reason stands with it.
"""

from __future__ import annotations

import msgspec

from mle_ideator.errors import UsageError
from mle_ideator.types import Value


class CurriculumConfig(Value, frozen=True, kw_only=True):
    """How the next help states are chosen. A *draw* is one call for a batch of them."""

    delta_max: float = 0.5
    """Cap on σ in the potential. 0.5 is the largest σ that rewards of 0 and 1 can have."""
    headroom_weight: float = 0.5
    """λ, the weight of clip(1 − μ, 0, 1). 0.5: a state of which all ideas fail (P = 0.5) comes
    before one of which 9 in 10 succeed (0.35), and after one of which half do (0.75)."""
    prior_mean: float = 0.5
    """μ that an unseen state is taken to have."""
    prior_std: float = 0.35
    """σ that an unseen state is taken to have. With the defaults P = 0.6: it comes before a state
    that was seen to be hopeless and after one that was seen to be learnable."""
    memory: float = 0.5
    """What earlier groups of a state still weigh at each new one, 0 to 1: the policy changes, so
    old rewards tell less. 1 forgets nothing."""
    executed_only: bool = True
    """Are μ and σ of executed ideas only? Otherwise −1 for invalid formats counts in them."""
    top_fraction: float = 0.2
    """Share of the drawable states, by potential, from which is drawn in the end. 1 is uniform."""
    anneal_draws: int = 100
    """Draws over which that share falls from 1, in a straight line."""
    rest_draws: int = 8
    """Draws that a state is left out of after it was drawn (cooling). 0: none."""
    rest_share: float = 0.5
    """At most this share of the states that are not retired rests; in a small buffer the first to
    rest come back early."""
    balance: float = 0.5
    """A task's share of the draws is in proportion to (its candidates) ** balance. 1: all states
    count the same, 0: all tasks that have a candidate do."""
    retire_after: int = 2
    """A state retires after so many groups in a row in which all executed ideas improved, or none
    did, or none was executed. 0: never."""
    return_after: int = 50
    """Draws after which a retired state comes back, on trial: one more such group, and it retires
    again. 0: never by itself."""
    return_growth: float = 2.0
    """How much longer it stays away each further time, until a group has variance again."""
    task_limit: int = 50_000
    """The most states of one task. The one that leaves for another is a retired one; if none is,
    the one with the least potential, the newcomer (with the prior) included."""
    grow: bool = True
    """Are states taken up that rollouts reached? Otherwise only those of sessions (fixed set)."""
    bins: int = 128
    """Levels that potentials are told apart by, all of equal width."""
    window: int = 256
    """Groups that the share of groups without variance is taken over."""

    def __post_init__(self) -> None:
        for name, low, high in _RANGES:
            if not low <= getattr(self, name) <= high:
                raise UsageError(f"curriculum {name!r} must lie between {low:g} and {high:g}.")

    @property
    def highest_potential(self) -> float:
        return self.delta_max + self.headroom_weight


_RANGES = (
    ("delta_max", 1e-6, 1e6),
    ("headroom_weight", 0.0, 1e6),
    ("prior_mean", -1e6, 1e6),
    ("prior_std", 0.0, 1e6),
    ("memory", 0.0, 1.0),
    ("top_fraction", 1e-6, 1.0),
    ("anneal_draws", 0, 1e9),
    ("rest_draws", 0, 1e6),
    ("rest_share", 0.0, 1.0),
    ("balance", 0.0, 1.0),
    ("retire_after", 0, 100),
    ("return_after", 0, 1e6),
    ("return_growth", 1.0, 100.0),
    ("task_limit", 1, 1e9),
    ("bins", 2, 30_000),
    ("window", 1, 1e6),
)


def ablations(base: CurriculumConfig | None = None) -> dict[str, CurriculumConfig]:
    """The curriculum and what is left of it without one of its parts, by name."""
    base = base or CurriculumConfig()
    plain = {"top_fraction": 1.0, "balance": 1.0, "rest_draws": 0, "retire_after": 0}
    changes: dict[str, dict[str, float | bool]] = {
        "adaptive": {},
        "uniform": plain,
        "no cooling": {"rest_draws": 0},
        "no headroom term": {"headroom_weight": 0.0},
        "fixed set": {"grow": False},
        "no retirement": {"retire_after": 0},
        "format errors counted": {"executed_only": False},
        "bare formula": {"retire_after": 0, "executed_only": False},
    }
    return {name: msgspec.structs.replace(base, **change) for name, change in changes.items()}
