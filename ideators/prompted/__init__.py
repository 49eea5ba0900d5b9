"""The ideator that asks a chat model.

`messages` writes what the model reads, `drafting` asks for an idea and has it repaired once,
`choosing` picks one of several, `purse` keeps the bill, `policy` puts them together. The texts are
in `prompts/ideator/`; the form of an idea is `mle_ideator.idea_form`.
"""

from mle_ideator.ideators.prompted.policy import PromptedIdeator

__all__ = ["PromptedIdeator"]
