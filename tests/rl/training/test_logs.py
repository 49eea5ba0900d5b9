"""Where a run is written, and what is drawn of it. Trackers that are installed are run for real."""

from __future__ import annotations

import importlib.util
import math
import struct
from pathlib import Path

import msgspec
import pytest

from mle_ideator.errors import UsageError
from mle_ideator.rl.training.logs import LogConfig, Table, open_logs
from mle_ideator.rl.training.logs.curves import curves
from mle_ideator.rl.training.logs.lines import LineLogs, metrics_of
from mle_ideator.rl.training.logs.several import TRACKERS, SeveralLogs

NONE = LogConfig(to=())
TABLE = Table(("state", "answer"), (("a1", "Use | ratios.\nThen stop."),))


def steps(run: Path) -> list[float | None]:
    return [row["step"] for row in metrics_of(run)]


# ------------------------------------------------------------------------------------ the lines


def test_a_step_is_a_line_that_is_there_at_once(tmp_path: Path) -> None:
    logs = open_logs(tmp_path / "run", NONE, {})
    logs.write(1, {"reward": 0.25, "entropy": math.nan})
    assert metrics_of(tmp_path / "run") == [{"step": 1, "reward": 0.25, "entropy": None}]
    logs.text(1, "answers", TABLE)
    logs.close()
    text = msgspec.json.decode((tmp_path / "run" / "texts.jsonl").read_bytes())
    assert text["step"] == 1
    assert text["rows"] == [["a1", "Use | ratios.\nThen stop."]]


def test_no_step_stands_twice_after_a_resume(tmp_path: Path) -> None:
    first = open_logs(tmp_path, NONE, {})
    for step in range(1, 8):
        first.write(step, {"reward": 0.0})
        first.text(step, "answers", TABLE)
    first.close()
    again = open_logs(tmp_path, NONE, {}, step=5)
    again.write(6, {"reward": 1.0})
    again.close()
    assert steps(tmp_path) == [1, 2, 3, 4, 5, 6]
    assert metrics_of(tmp_path)[-1]["reward"] == 1.0
    assert len((tmp_path / "texts.jsonl").read_text().splitlines()) == 5


def test_a_line_that_a_crash_cut_is_gone(tmp_path: Path) -> None:
    with LineLogsClosed(tmp_path) as logs:
        logs.write(1, {"reward": 0.0})
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step":2,"rew')
    assert steps(tmp_path) == [1]
    with LineLogsClosed(tmp_path, 1) as logs:
        logs.write(2, {"reward": 0.5})
    assert steps(tmp_path) == [1, 2]


class LineLogsClosed:
    """`with` around them."""

    def __init__(self, run: Path, step: int = 0) -> None:
        self.logs = LineLogs(run, step)

    def __enter__(self) -> LineLogs:
        return self.logs

    def __exit__(self, *_: object) -> None:
        self.logs.close()


def test_other_content_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("something else\n")
    with pytest.raises(UsageError, match=r"metrics\.jsonl, line 1 is no step of a run"):
        open_logs(tmp_path, NONE, {})
    assert (tmp_path / "metrics.jsonl").read_text() == "something else\n"
    with pytest.raises(UsageError, match=r"is no run of `train`"):
        metrics_of(tmp_path / "nowhere")


# -------------------------------------------------------------------------------- the trackers


def test_an_unknown_tracker_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="unknown tracker 'tensorbord'; did you mean 'tensorboard'"
    ):
        open_logs(tmp_path, LogConfig(to=("tensorbord",)), {})


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("tensorboardX", "trackio", "wandb", "mlflow"):
        monkeypatch.setitem(__import__("sys").modules, package, None)


@pytest.mark.usefixtures("nothing_installed")
def test_a_tracker_that_was_asked_for_has_to_be_there(tmp_path: Path) -> None:
    for name in ("trackio", "wandb", "mlflow"):
        with pytest.raises(UsageError, match=f"install it with: pip install {name}$"):
            open_logs(tmp_path, LogConfig(to=(name,)), {})


@pytest.mark.usefixtures("nothing_installed")
def test_a_run_does_without_tensorboard_and_says_so_once(tmp_path: Path) -> None:
    told: list[str] = []
    logs = open_logs(tmp_path, LogConfig(), {}, told=told.append)
    logs.write(1, {"reward": 0.0})
    logs.write(2, {"reward": 0.0})
    logs.close()
    assert len(told) == 1
    assert told[0].endswith("pip install tensorboardX; the run goes on without tensorboard.")
    assert steps(tmp_path) == [1, 2]


class Failing:
    """A tracker whose server goes away at step 2."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def write(self, step: int, metrics: dict[str, float]) -> None:
        if step == 2:
            raise ConnectionError("the server is gone")
        print("chatter")
        self.steps.append(step)

    def text(self, step: int, name: str, table: Table) -> None: ...

    def close(self) -> None: ...


def test_no_run_ends_because_a_tracker_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    failing = Failing()
    logs = SeveralLogs(LineLogs(tmp_path), told.append)
    logs.add("remote", failing)
    for step in (1, 2, 3):
        logs.write(step, {"reward": 0.0})
    logs.close()
    assert steps(tmp_path) == [1, 2, 3]
    assert failing.steps == [1]
    assert told == ["remote is left out from here on: ConnectionError: the server is gone"]
    assert capsys.readouterr().out == ""


_PACKAGES = {"tensorboard": "tensorboardX"}


@pytest.mark.parametrize("name", TRACKERS)
@pytest.mark.filterwarnings("ignore")
def test_each_tracker_that_is_installed_takes_a_run_and_its_resume(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if importlib.util.find_spec(_PACKAGES.get(name, name)) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    told: list[str] = []
    for after, last in ((0, 4), (2, 5)):
        settings = {"model": "tiny", "buffer": {"memory": 0.5}}
        logs = open_logs(tmp_path / "run", LogConfig(to=(name,)), settings, after, told.append)
        for step in range(after + 1, last + 1):
            logs.write(step, {"reward": step / 10, "entropy": math.nan})
        logs.text(last, "answers", TABLE)
        logs.close()
    assert told == []
    assert capsys.readouterr().out == ""
    assert steps(tmp_path / "run") == [1, 2, 3, 4, 5]
    if name == "tensorboard":
        files = (tmp_path / "run" / "logs").glob("events.out.tfevents.*")
        assert b"reward" in b"".join(path.read_bytes() for path in files)


# ---------------------------------------------------------------------------------- the curves


def run_at(folder: Path, values: list[float], executions: int = 8) -> Path:
    with LineLogsClosed(folder) as logs:
        for step, value in enumerate(values, start=1):
            logs.write(step, {"reward": value, "executions": float(step * executions)})
    return folder


def test_curves_of_several_seeds(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs = {
        "adaptive": [run_at(tmp_path / f"a{i}", [0.1 * i, 0.5, 0.9]) for i in range(3)],
        "uniform": [run_at(tmp_path / "u", [0.0, 0.2, 0.3, 0.4])],
    }
    curves(runs, tmp_path / "curves.svg", names=("reward", "kl"))
    drawn = (tmp_path / "curves.svg").read_text()
    assert "adaptive (3 seeds)" in drawn
    assert "uniform" in drawn
    curves(runs, tmp_path / "curves.png", names=("reward",), x="executions", smooth=2)
    width, height = struct.unpack(">II", (tmp_path / "curves.png").read_bytes()[16:24])
    assert width > height > 100
    with pytest.raises(UsageError, match="smooth must be at least 1"):
        curves(runs, tmp_path / "curves.png", smooth=0)
