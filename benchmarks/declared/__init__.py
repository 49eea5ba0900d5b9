"""Tasks that are a folder: what they are is declared, how they are built is one function.

    task.yaml         the declaration (`spec.Spec`)
    description.md    what agents read
    build.py          build(root, rng) -> Frames, from the files of a package or of the folder
    references.py     reference solutions (`mle_ideator.benchmarks.references`)
    leaderboard.csv   their scores

`docs/tasks.md` tells how to make one.
"""
