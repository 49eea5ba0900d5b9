"""Small synthetic tasks of every form, and a runner for the solutions written for them."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

from mle_ideator.implementers.offline import OfflineImplementer
from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.implementers.offline.snippets.profile import profile_data
from mle_ideator.implementers.offline.writing import solution_code
from mle_ideator.recipes import Profile, Recipe
from mle_ideator.types import (
    Execute,
    Finish,
    Idea,
    Metric,
    Observation,
    Remaining,
    SandboxInfo,
    Scores,
    SeekHelp,
    Situation,
    Solution,
    Step,
    Task,
)


@dataclass
class Toy:
    """A task on the disk."""

    task: Task
    folder: Path
    """The workspace; the files lie in its `input/`."""

    @property
    def profile(self) -> Profile:
        found = profile_data(self.task.inputs, self.task.id_column, list(self.task.targets))
        return msgspec.convert(found, Profile)

    @property
    def shape(self) -> Shape:
        return Shape(self.task, self.profile)

    def code(self, *operations: str, **settings) -> str:
        return solution_code(Recipe(operations=operations, **settings), self.shape)

    def run(self, code: str) -> tuple[float, pd.DataFrame]:
        """Runs a solution in this process. Returns its score and its submission."""
        output = io.StringIO()
        (self.folder / "submission.csv").unlink(missing_ok=True)
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(output):
            exec(compile(code, "solution.py", "exec"), {"__name__": "__main__"})
        score = re.findall(r"^Validation score: (.*)$", output.getvalue(), re.MULTILINE)
        assert len(score) == 1
        submission = pd.read_csv(
            self.folder / "submission.csv", dtype={self.task.id_column: str}, keep_default_na=False
        )
        return float(score[0]), submission

    def check(self, code: str) -> float:
        """Runs a solution; its score is finite and its submission complete."""
        score, submission = self.run(code)
        assert np.isfinite(score)
        sample = pd.read_csv(
            Path(self.task.inputs) / "sample_submission.csv", dtype=str, keep_default_na=False
        )
        assert list(submission) == list(sample)
        assert list(submission[self.task.id_column]) == list(sample[self.task.id_column])
        values = submission.drop(columns=self.task.id_column)
        if self.task.prediction == "label" and len(self.task.targets) == 1:
            assert set(values.iloc[:, 0].astype(str)) <= set(self.task.classes)
        else:
            assert np.isfinite(values.to_numpy(float)).all()
        if self.task.prediction == "probability":
            assert values.to_numpy(float).min() >= 0
            assert values.to_numpy(float).max() <= 1
            if len(self.task.targets) == len(self.task.classes):
                assert np.allclose(values.sum(axis=1), 1)
        return score


def make_toy(
    folder: Path,
    train: pd.DataFrame,
    test: pd.DataFrame,
    *,
    metric: str,
    prediction: str,
    targets: tuple[str, ...] = ("y",),
    classes: tuple[str, ...] = (),
    higher: bool = False,
) -> Toy:
    inputs = folder / "input"
    inputs.mkdir(parents=True, exist_ok=True)
    columns = classes if prediction == "probability" and len(classes) > 2 else targets
    train.to_csv(inputs / "train.csv", index=False)
    test = test.drop(columns=[name for name in targets if name in test])
    test.to_csv(inputs / "test.csv", index=False)
    sample = test[["id"]].assign(**dict.fromkeys(columns, classes[0] if prediction == "label"
                                                 and classes else 0))  # fmt: skip
    sample.to_csv(inputs / "sample_submission.csv", index=False)
    task = Task(
        id="toy", title="A toy", description="", type="tabular", split="own",
        metric=Metric(metric, higher), id_column="id", targets=columns, prediction=prediction,
        classes=classes, rows=(len(train), len(test)), source="", licence="", inputs=str(inputs),
    )  # fmt: skip
    return Toy(task, folder)


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Numbers, categories, dates and a Boolean, with holes, and `z` that depends on them."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"{number:05d}" for number in range(rows)],
            "size": random.exponential(size=rows),
            "age": random.integers(1, 80, rows).astype(float),
            "weight": random.normal(70, 10, rows),
            "city": random.choice(["Rome", "Oslo", "Lima", "Łódź"], rows),
            "shop": random.choice([f"s{number}" for number in range(40)], rows),
            "sold": pd.date_range("2021-03-01", periods=rows, freq="31h").astype(str),
            "open": random.random(rows) < 0.5,
            "empty": np.nan,
            "same": 7,
        }
    )
    frame["z"] = (
        frame["size"] * 2 + (frame["city"] == "Oslo") * 1.5 + frame["open"] * (frame["age"] / 80)
    )
    frame.loc[random.random(rows) < 0.1, "age"] = np.nan
    frame.loc[random.random(rows) < 0.05, "city"] = None
    return frame.sample(frac=1, random_state=seed)


def split(frame: pd.DataFrame, share: float = 0.7) -> tuple[pd.DataFrame, pd.DataFrame]:
    cut = int(len(frame) * share)
    return frame[:cut], frame[cut:]


def regression(folder: Path) -> Toy:
    frame = table(320)
    frame["y"] = np.exp(frame.pop("z") / 2).round(3)
    return make_toy(folder, *split(frame), metric="rmse", prediction="value")


def counts(folder: Path) -> Toy:
    frame = table(320, seed=1)
    frame["y"] = np.random.default_rng(0).poisson(frame.pop("z"))
    return make_toy(folder, *split(frame), metric="poisson_deviance", prediction="value")


def two_values(folder: Path) -> Toy:
    frame = table(300, seed=2)
    frame["y"], frame["x"] = frame["z"] * 2, -frame.pop("z")
    return make_toy(folder, *split(frame), metric="mae", prediction="value", targets=("y", "x"))


def binary(folder: Path) -> Toy:
    frame = table(320, seed=3)
    frame["y"] = (frame.pop("z") > 2).astype(int)
    return make_toy(
        folder, *split(frame), metric="auc", prediction="probability", classes=("0", "1"),
        higher=True,
    )  # fmt: skip


def several_classes(folder: Path) -> Toy:
    frame = table(320, seed=4)
    frame["y"] = pd.cut(frame.pop("z"), [-9, 1, 3, 99], labels=["NA", "b c", "a"]).astype(str)
    return make_toy(
        folder, *split(frame), metric="log_loss", prediction="probability",
        classes=("a", "b c", "NA"),
    )  # fmt: skip


def ranks(folder: Path) -> Toy:
    frame = table(320, seed=5)
    frame["y"] = pd.cut(frame.pop("z"), [-9, 1, 2, 3, 99], labels=[0, 1, 2, 3]).astype(int)
    return make_toy(
        folder, *split(frame), metric="qwk", prediction="label", classes=("0", "1", "2", "3"),
        higher=True,
    )  # fmt: skip


def many_labels(folder: Path) -> Toy:
    frame = table(300, seed=6)
    for name, cut in (("p", 1), ("q", 2), ("r", 3)):
        frame[name] = (frame["z"] > cut).astype(int)
    return make_toy(
        folder, *split(frame.drop(columns="z")), metric="lrap", prediction="probability",
        targets=("p", "q", "r"), higher=True,
    )  # fmt: skip


def text(folder: Path) -> Toy:
    random = np.random.default_rng(7)
    endings = {"it": ["elli", "ucci", "ini"], "pl": ["owski", "czyk", "wicz"], "fi": ["nen", "la"]}
    rows = []
    for number in range(330):
        origin = list(endings)[number % 3]
        stem = "".join(random.choice(list("abdegilmnorstu"), 4))
        rows.append((f"{number}", stem + random.choice(endings[origin]), number % 5, origin))
    frame = pd.DataFrame(rows, columns=["id", "name", "number", "y"])
    return make_toy(
        folder, *split(frame), metric="macro_f1", prediction="label", classes=("it", "pl", "fi"),
        higher=True,
    )  # fmt: skip


def image(folder: Path) -> Toy:
    random = np.random.default_rng(8)
    images, labels = [], []
    for number in range(200):
        pixels = random.integers(0, 60, (8, 8))
        at = random.integers(1, 6)
        if number % 2:
            pixels[at : at + 2] += 180
        else:
            pixels[:, at : at + 2] += 180
        images.append(pixels.ravel())
        labels.append(["stripe", "bar"][number % 2])
    frame = pd.DataFrame(images, columns=[f"p{number}" for number in range(64)])
    frame.insert(0, "id", range(200))
    frame["y"] = labels
    return make_toy(
        folder, *split(frame), metric="accuracy", prediction="label", classes=("stripe", "bar"),
        higher=True,
    )  # fmt: skip


def _days(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    days = pd.date_range("2022-01-01", periods=140)
    frames = [
        pd.DataFrame({"date": days.astype(str), "place": place,
                      "heat": random.normal(size=140),
                      "y": level + 5 * (days.day_of_week > 4) + random.normal(size=140)})
        for place, level in (("A", 10), ("B", 30))
    ]  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def forecast(folder: Path) -> Toy:
    frame = _days(9)
    frame.insert(0, "id", range(len(frame)))
    later = frame["date"] >= "2022-05-01"
    return make_toy(folder, frame[~later], frame[later], metric="mae", prediction="value")


def gaps(folder: Path) -> Toy:
    frame = _days(10)
    frame.insert(0, "id", range(len(frame)))
    missing = pd.to_datetime(frame["date"]).dt.day_of_year % 4 == 0
    return make_toy(folder, frame[~missing], frame[missing], metric="mae", prediction="value")


def joined(folder: Path) -> Toy:
    toy = regression(folder)
    train = pd.read_csv(folder / "input" / "train.csv", dtype={"id": str})
    shops = pd.DataFrame({"shop": [f"s{n}" for n in range(40)], "year": range(40),
                          "kind": list("xy") * 20})  # fmt: skip
    shops.to_csv(folder / "input" / "shops.csv", index=False)
    visits = pd.concat([train[["id", "age"]]] * 2).assign(when="2020-01-02")
    visits.to_csv(folder / "input" / "visits.csv", index=False)
    pd.DataFrame({"nothing": [1]}).to_csv(folder / "input" / "alone.csv", index=False)
    return toy


def grouped(folder: Path) -> Toy:
    frame = table(320, seed=11)
    frame["y"] = frame.pop("z")
    known = frame["shop"].str[1:].astype(int) < 28
    return make_toy(folder, frame[known], frame[~known], metric="rmse", prediction="value")


TOYS = {
    make.__name__: make
    for make in (regression, counts, two_values, binary, several_classes, ranks, many_labels, text,
                 image, forecast, gaps, joined, grouped)
}  # fmt: skip


@pytest.fixture(scope="session")
def toys(tmp_path_factory):
    """Every toy task by name, made once."""
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in TOYS.items()}


INFO = SandboxInfo(kind="test", python="3", libraries={}, cores=1, memory_gib=1, network=False)


@dataclass
class Session:
    """A tiny session: cells run in a process of their own, ideas come from a list."""

    toy: Toy
    ideas: list[Idea | None] = field(default_factory=list)
    steps: int = 12
    help_requests: int = 12
    seed: int = 0
    seconds: float = 1000.0
    step_seconds: float = 100.0
    break_cells: dict[int, Observation] = field(default_factory=dict)
    """Observations that stand in for what a step's cell would have said."""
    trajectory: list[Step] = field(default_factory=list)
    solutions: list[Solution] = field(default_factory=list)
    code: str | None = None

    @property
    def situation(self) -> Situation:
        asked = sum(isinstance(step.action, SeekHelp) for step in self.trajectory)
        return Situation(
            task=self.toy.task,
            trajectory=tuple(self.trajectory),
            solutions=tuple(self.solutions),
            best=None,
            code=self.code,
            remaining=Remaining(
                steps=self.steps - len(self.trajectory),
                help_requests=self.help_requests - asked,
                seconds=self.seconds,
                step_seconds=self.step_seconds,
            ),
            sandbox=INFO,
            seed=self.seed,
        )

    async def run(self) -> Session:
        """Acts until the policy finishes or the steps are used up."""
        while len(self.trajectory) < self.steps:
            await self.step()
            if isinstance(self.trajectory[-1].action, Finish):
                break
        return self

    async def step(self) -> Step:
        decision = await OfflineImplementer().act(self.situation)
        number, idea, solution = len(self.trajectory) + 1, None, None
        match decision.action:
            case Execute() as action:
                observation = self.break_cells.get(number) or self._execute(action)
                solution = self._solution(number, observation)
            case SeekHelp():
                idea = self.ideas.pop(0) if self.ideas else None
                observation = Observation(text="", status="idea" if idea else "no_idea")
                if idea and idea.reverts_to is not None:
                    self.code = self.solutions[idea.reverts_to - 1].code
            case _:
                observation = Observation(text="")
        self.trajectory.append(
            Step(number=number, action=decision.action, observation=observation,
                 thought=decision.thought, idea=idea, solution=solution)
        )  # fmt: skip
        return self.trajectory[-1]

    def _execute(self, action: Execute) -> Observation:
        """Looks run here, to be fast; solutions in a process of their own, as cells do."""
        output = io.StringIO()
        try:
            with contextlib.chdir(self.toy.folder), contextlib.redirect_stdout(output):
                exec(compile(action.code, "cell", "exec"), {"__name__": "cell"})
        except Exception as error:
            text = f"{output.getvalue()}\n{type(error).__name__}: {error}"
            return Observation(text=text, status="error")
        return Observation(text=output.getvalue(), status="ok")

    def _solution(self, number: int, observation: Observation) -> int | None:
        score = re.findall(r"^Validation score: (.*)$", observation.text, re.MULTILINE)
        if observation.status != "ok" or not score:
            return None
        self.code = (self.toy.folder / "solution.py").read_text(encoding="utf-8")
        value = self.toy.task.metric.score(float(score[-1]))
        made = Solution(number=len(self.solutions) + 1, step=number, code=self.code,
                        scores=Scores(validation=value), digest="")  # fmt: skip
        self.solutions.append(made)
        return made.number


@pytest.fixture
def session(toys):
    """Makes a session on a toy: `session("regression", ideas=[...])`."""
    return lambda name, **settings: Session(toys[name], **settings)


@pytest.fixture
def toy_maker():
    return make_toy
