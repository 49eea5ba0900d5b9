"""A trajectory as text for a model, within a token budget. No model is asked; nothing is kept.

`tokens` estimates, `condensing` says a step in one line, `plan` decides which steps are whole,
`cutting` makes room where nothing else does; `dialogue` is for the agent that acted, `narrative`
for a reader who took no part.
"""

from mle_ideator.context.condensing import condensed
from mle_ideator.context.dialogue import LEAST_BUDGET, conversation
from mle_ideator.context.narrative import account
from mle_ideator.context.tokens import size, tokens_of

__all__ = ["LEAST_BUDGET", "account", "condensed", "conversation", "size", "tokens_of"]
