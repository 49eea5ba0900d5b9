"""The ideator that needs no model: a table of hints, weighed by what the help state shows.

`reading` turns the help state's text into `facts`, with what solutions are made of (`codes`) and
what was tried (`history`); `hints` is the table of operations, with how
well they fit (`fits`) and why they should help (`reasons`); `ranking` works out the expected gain
of each; `wording` writes the best one as an idea.
"""

from mle_ideator.ideators.offline.ideator import OfflineIdeator

__all__ = ["OfflineIdeator"]
