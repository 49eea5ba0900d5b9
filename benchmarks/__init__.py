"""Tasks and how they are graded.

A task source makes tasks (`bundled`, `own_data`); `grading` holds the metrics and the grader.
A new source is one file here and an entry point `mle_ideator.task_sources`.
"""
