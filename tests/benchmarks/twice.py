"""A small task with a leaderboard, as a folder."""

from pathlib import Path

TASK_YAML = """
title: Twice as much
type: tabular-regression
split: test
metric: rmse
higher_is_better: false
prediction: value
targets: [y]
rows: [40, 40]
origin: made by the tests
licence: Apache-2.0
"""
BUILD = """
import pandas as pd
from mle_ideator.benchmarks.building import Frames

def build(root, rng):
    numbers = pd.Series(range(80), name="x")
    frame = pd.DataFrame({"x": numbers, "y": 2.0 * numbers})
    return Frames(frame.iloc[::2].reset_index(drop=True), frame.iloc[1::2].reset_index(drop=True))
"""
BOARD = "reference,public,private\n" + "".join(f"r{i},{i},{i}\n" for i in range(1, 11))
"""RMSE of 1 to 10: gold at 1, silver at 2, bronze at 4, median 5.5."""


def write_task(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text(TASK_YAML)
    (folder / "description.md").write_text("# Twice as much\n\nPredict `y` from `x`.\n")
    (folder / "build.py").write_text(BUILD)
    (folder / "leaderboard.csv").write_text(BOARD)
    return folder
