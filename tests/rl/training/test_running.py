"""Whole runs, with real rollouts: begun from the command line, killed, gone on with."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from mle_ideator.cli import main  # noqa: E402
from mle_ideator.config import load_config  # noqa: E402
from mle_ideator.rl.training.config import PRESETS, TrainConfig, train_config  # noqa: E402
from mle_ideator.rl.training.logs.lines import metrics_of  # noqa: E402
from tests.benchmarks.twice import write_task  # noqa: E402
from tests.rl.training.factors import LOG  # noqa: E402

ROOT = Path(__file__).parents[3]
AGENTS = "tests.rl.training.factors"
STEPS = 8
SETTINGS = {
    "steps": STEPS,
    "model": {"context_tokens": 512, "width": 64, "layers": 2, "vocabulary": 400},
    "warm_up": {"ideas_from": f"{AGENTS}:AnyFactor", "ideas": 24, "epochs": 120, "lr": 1e-2},
    "writing": {"ideas_per_state": 4},
    "objective": {"states_per_step": 2},
    "optimiser": {"lr": 1e-3},
    "rollouts": {"workers": 2},
    "checkpoints": {"every": 2},
    "logs": {"to": []},
}


@pytest.fixture(scope="module", autouse=True)
def agents_that_workers_find():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def states(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("collected")
    with pytest.raises(SystemExit) as ended:
        main(
            [
                *("collect", "--task", str(write_task(folder / "twice")), "--seeds", "1"),
                *("--implementer", f"{AGENTS}:SetsFactor", "--ideator", "null"),
                *("--sandbox", "local", "--steps", "3", "--set", 'preload=["pandas"]'),
                *("--out", str(folder / "s.db")),
            ]
        )
    assert not ended.value.code
    return folder / "s.db"


@pytest.fixture(scope="module")
def begun(states, tmp_path_factory) -> Path:
    """The folder of a run that is warmed up and has not taken a step."""
    folder = tmp_path_factory.mktemp("begun")
    for part in (states, states.with_suffix(".files")):
        (shutil.copytree if part.is_dir() else shutil.copy)(part, folder / part.name)
    settings = SETTINGS | {"out": "run", "states": {"store": "s.db"}, "steps": 1}
    (folder / "train.yaml").write_text(json.dumps(settings))
    ended = trained(folder, "--config", "train.yaml")
    assert ended["steps"] == 1
    run = folder / "run"
    for gone in ("checkpoints", "checkpoint", "metrics.jsonl"):
        path = run / gone
        (shutil.rmtree if path.is_dir() and not path.is_symlink() else Path.unlink)(path)
    for name in ("s.cache", "s.packed"):
        shutil.rmtree(folder / name, ignore_errors=True)
    config = load_config(TrainConfig, run / "config.yaml", [f"steps={STEPS}"])
    from mle_ideator.config import dump_config

    (run / "config.yaml").write_text(dump_config(config))
    for part in (states, states.with_suffix(".files")):  # without what the step reached
        (shutil.rmtree if part.is_dir() else Path.unlink)(folder / part.name)
        (shutil.copytree if part.is_dir() else shutil.copy)(part, folder / part.name)
    return folder


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mle_ideator", "train", *arguments, "--json"]


def trained(folder: Path, *arguments: str) -> dict:
    env = os.environ | {LOG: str(folder / "log")}
    out = subprocess.run(
        command(*arguments), cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def killed(folder: Path, at: float) -> None:
    """Go on, and kill so many seconds after the first step."""
    env = os.environ | {LOG: str(folder / "log")}
    steps = folder / "run" / "metrics.jsonl"
    before = steps.stat().st_size if steps.exists() else 0
    process = subprocess.Popen(
        command("--resume", "run"), cwd=folder, env=env, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if steps.exists() and steps.stat().st_size != before:
            break
        time.sleep(0.05)
    time.sleep(at)
    process.kill()
    process.wait()


def whole(folder: Path, copy: Path) -> Path:
    shutil.copytree(folder, copy, symlinks=True)
    return copy


def told(run: Path) -> list[dict]:
    """What has to come again."""
    lost = ("executions", "cache_hits")  # of the processes that were killed
    return [
        {
            name: value
            for name, value in step.items()
            if not name.endswith("_s") and name not in lost
        }
        for step in metrics_of(run)
    ]


def executed_in(folder: Path) -> Counter[str]:
    return Counter((folder / "log").read_text().splitlines())


def weights(run: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(run / "checkpoint" / "model.safetensors")


@pytest.mark.parametrize("kills", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_again_and_again_takes_the_same_steps(begun, tmp_path, kills):
    undisturbed, disturbed = whole(begun, tmp_path / "a"), whole(begun, tmp_path / "b")
    trained(undisturbed, "--resume", "run")
    draw = random.Random(kills)
    for _ in range(kills):
        killed(disturbed, draw.uniform(0, 3))
    trained(disturbed, "--resume", "run")
    assert told(disturbed / "run") == told(undisturbed / "run")
    assert [step["step"] for step in metrics_of(disturbed / "run")] == list(range(1, STEPS + 1))
    ours, theirs = weights(disturbed / "run"), weights(undisturbed / "run")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    ours, theirs = executed_in(disturbed), executed_in(undisturbed)
    assert set(ours) == set(theirs)
    assert len(theirs) > 1
    assert (ours - theirs).total() <= 2 * kills  # what two workers had under way
    assert max(step["improved_rate"] for step in told(undisturbed / "run")) > 0


def test_a_trained_model_serves(begun, tmp_path):
    folder = whole(begun, tmp_path / "a")
    ended = trained(folder, "--resume", "run")
    assert (ended["steps"], ended["stopped"]) == (STEPS, "")
    assert ended["executions"] + ended["cache_hits"] > 0
    assert ended["states"] >= 1
    evaluated = subprocess.run(
        [
            *(sys.executable, "-m", "mle_ideator", "evaluate", "--states", "s.db", "--limit", "1"),
            *("--ideator", f"hf:{ended['checkpoint']}", "--ideator", "null", "--json"),
        ],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert evaluated.returncode == 0, evaluated.stderr
    rows = json.loads(evaluated.stdout)["rows"]
    assert {row["contender"] for row in rows} >= {f"hf:{ended['checkpoint']}", "null"}


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ((), "say what to train"),
        (("--preset", "tinny"), "did you mean 'tiny'"),
        (("--preset", "tiny", "--set", "optimiser.lrr=1"), "did you mean 'optimiser.lr'"),
        (("--preset", "tiny", "--set", "optimiser.lr=-1"), "optimiser.lr"),
        (("--resume", "gone"), "gone is no run of `train`"),
        (("--resume", "gone", "--steps", "3"), "--resume takes no other settings"),
        (("--preset", "tiny", "--states", "gone.db", "--out", "new"), "gone.db"),
    ],
)
def test_a_wrong_call_is_one_line(call, what, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["train", *call])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert what in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", sorted(path.stem for path in PRESETS.glob("*.yaml")))
def test_presets_are_configs(name):
    assert train_config(preset=name).steps > 0
