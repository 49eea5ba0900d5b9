"""Metrics, the validation of submissions, and the grader. The rules are told in `docs/grading.md`.

formulas    what is computed, on arrays
ranking     the same within groups; survival: of times that were cut short
metrics     METRICS: name, direction and demands of each formula; add a metric here
files       bytes of a file that somebody else wrote
csv_text    bytes -> columns of text, by name
cells       columns of text -> numbers or classes
validation  all of it: a submission that can be scored, or what is wrong with it
answers     the hidden answers
grader      FileGrader: from answers.csv and a submission to a Grade
report      grade_report: all that can be said of a submission, its medal too
"""

from mle_ideator.benchmarks.grading.grader import FileGrader
from mle_ideator.benchmarks.grading.metrics import METRICS, MetricSpec, metric_named

__all__ = ["METRICS", "FileGrader", "MetricSpec", "metric_named"]
