"""Several ideators on the same help states, one step each: cheap, and low in variance.

trying          evaluate: every ideator on every help state, written down while it runs
log             the file that this is written to, and gone on from
values          Evaluation, and what is read from it: rows, pairs, shifts
drawing         intervals: help states are drawn again, task by task
contenders      each ideator's figures: over all, by task, by kind of state, by idea category
pairs           two ideators on the help states that both were tried on
findings        all of it together
tables, files   as tables for readers; as JSON and CSV for programs

docs/evaluation.md defines each figure.
"""

from mle_ideator.rl.evaluation.findings import findings_of
from mle_ideator.rl.evaluation.trying import evaluate
from mle_ideator.rl.evaluation.values import Evaluation, Findings

__all__ = ["Evaluation", "Findings", "evaluate", "findings_of"]
