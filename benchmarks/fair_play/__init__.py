"""Is a solution fair play? Read from its text; nothing is executed.

reading      a script as a tree, with the names that its imports give things
lists        names of packages, services and commands
checks       one function for each kind of flag; add one here
literals     answers that are written into the code
flags        flags_of: all checks of one script
similarity   how alike two scripts are, whatever their names and layout

A flag is a question to a person, no verdict: `docs/grading.md` tells what each is, and what is seen
of none.
"""

from mle_ideator.benchmarks.fair_play.flags import flags_of
from mle_ideator.benchmarks.fair_play.similarity import Pair, similar_pairs, similarity

__all__ = ["Pair", "flags_of", "similar_pairs", "similarity"]
