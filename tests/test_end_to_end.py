"""The main job as a user calls it, with the embedded agents and the strongest sandbox here."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mle_ideator.benchmarks.sources import all_cards
from mle_ideator.journal import read_journal
from mle_ideator.results import Record, record_of

SHORT = ("cdnow-clv", "flights-late")
"""The tasks of the short form."""


def run(out: Path, *options: str) -> tuple[dict, Record]:
    command = [sys.executable, "-m", "mle_ideator", "run", "--out", str(out), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), record_of(read_journal(out))


def timeless(record: Record) -> list[object]:
    """Steps and solutions without their durations."""
    steps = [
        msgspec.structs.replace(
            step, observation=msgspec.structs.replace(step.observation, duration_s=0.0)
        )
        for step in record.steps
    ]
    return [*steps, *record.solutions]


def test_the_same_seed_gives_the_same_trajectory_and_scores(tmp_path):
    options = ("--task", "image-segments", "--steps", "5", "--seed", "3")
    first, second = (run(tmp_path / name, *options) for name in ("a", "b"))
    assert timeless(first[1]) == timeless(second[1])
    assert first[0]["best"]["private"] == second[0]["best"]["private"]


@pytest.mark.parametrize(
    "ideator",
    ["null", *(pytest.param(name, marks=pytest.mark.slow) for name in ("vague", "random"))],
)
def test_every_ideator_can_advise_the_offline_implementer(tmp_path, ideator):
    summary, record = run(
        *(tmp_path / "run", "--task", "doctor-visits", "--steps", "6", "--ideator", ideator)
    )
    assert summary["best"]["private"] < summary["baseline"]["private"]
    assert summary["help_requests"] >= 1
    assert summary["reproduced"]
    assert len(record.steps) <= 6


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(card.id, marks=() if card.id in SHORT else pytest.mark.slow)
        for card in all_cards()
    ],
)
def test_the_offline_pair_beats_the_baseline_on_every_bundled_task(tmp_path, task):
    """The short form of tests/performance/bench_offline_pair.py."""
    summary, record = run(tmp_path / "run", "--task", task, "--steps", "5")
    direction = 1 if record.started.task.metric.higher_is_better else -1
    final, baseline = summary["best"]["private"], summary["baseline"]["private"]
    assert direction * final > direction * baseline
    assert summary["reproduced"]


def test_own_data_from_files_to_predictions(tmp_path):
    rows = [f"{i},{i % 97},{'abc'[i % 3]},{3 * (i % 97) + i % 3}" for i in range(300)]
    (tmp_path / "train.csv").write_text("\n".join(["no,size,kind,price", *rows]))
    test = [f"{1000 - i},{i % 97},{'abc'[i % 3]}" for i in range(50)]
    (tmp_path / "test.csv").write_text("\n".join(["no,size,kind", *test]))
    out = tmp_path / "run"
    summary, _ = run(
        *(out, "--train", str(tmp_path / "train.csv"), "--test", str(tmp_path / "test.csv")),
        *("--target", "price", "--metric", "rmse", "--id-column", "no", "--steps", "3"),
    )
    assert summary["best"]["private"] < summary["baseline"]["private"]
    predictions = (out / "predictions.csv").read_text().splitlines()
    assert predictions[0] == "no,price"
    assert [line.split(",")[0] for line in predictions[1:]] == [str(1000 - i) for i in range(50)]
