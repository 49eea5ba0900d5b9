"""An implementer that carries out what it is told, word by word: an idea's action is a cell."""

from mle_ideator.types import Decision, Execute, Finish, HelpRequest, SeekHelp

SOLUTION = """
import pandas as pd
FACTOR = {factor}
rows = pd.read_csv("input/test.csv")
rows.assign(y=FACTOR * rows.x)[["id", "y"]].to_csv("submission.csv", index=False)
print("Validation score:", abs(2 - FACTOR))
"""


def solves(factor):
    """A cell that writes the solution y = factor · x and runs it; 2 is perfect."""
    code = SOLUTION.format(factor=factor)
    return f"open('solution.py', 'w').write({code!r}); exec(open('solution.py').read())"


FIRST = (
    Execute("python", f"open('kept.txt', 'w').write('kept'); variable = 1\n{solves(1.0)}"),
    SeekHelp(HelpRequest("What next?", "A factor of 1.", "A better one.")),
)


class DoesAsTold:
    """A first solution, help, and then what the idea says; `again` is done once more if need be."""

    async def act(self, situation):
        steps = situation.trajectory
        if len(steps) < len(FIRST):
            return Decision(FIRST[len(steps)])
        asked = [step for step in steps if isinstance(step.action, SeekHelp)]
        if asked[-1].idea is None:
            return Decision(Finish())
        return Decision(Execute("python", asked[-1].idea.action))

    def gist(self, idea):
        return idea.action
