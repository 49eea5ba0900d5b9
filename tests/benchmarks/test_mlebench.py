"""Competitions in exactly mle-bench's layout: read, graded by their own graders, and solved."""

from __future__ import annotations

import gzip
import importlib.util
import math
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

from mle_ideator.benchmarks.cache import VARIABLE as CACHE
from mle_ideator.benchmarks.grading.report import grade_report
from mle_ideator.benchmarks.mlebench import MleBench
from mle_ideator.benchmarks.mlebench import competitions as registry
from mle_ideator.benchmarks.mlebench.assembling import load
from mle_ideator.benchmarks.mlebench.competitions import Competition, find_competition
from mle_ideator.benchmarks.mlebench.declaring import metric_of
from mle_ideator.benchmarks.mlebench.facts import facts_of
from mle_ideator.benchmarks.mlebench.form import form_of
from mle_ideator.benchmarks.mlebench.grader import CompetitionGrader
from mle_ideator.benchmarks.mlebench.judge import scored
from mle_ideator.benchmarks.mlebench.judging import PYTHON, judge
from mle_ideator.benchmarks.mlebench.splits import complexities, read_split
from mle_ideator.benchmarks.reopening import place_of
from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.benchmarks.sources import leaderboard_of, load_task
from mle_ideator.config import RunConfig
from mle_ideator.errors import GradingError, TaskError
from mle_ideator.journal import read_journal
from mle_ideator.limits import Limits
from mle_ideator.protocols import Grader, TaskSource
from mle_ideator.results import record_of
from mle_ideator.types import Metric, Score

ID = "mini-houses"
SECRET = 987654.125
"""A price that only the answers have."""

# What mle-bench's own package has of what graders import.
GRADE_HELPERS = "class InvalidSubmissionError(Exception):\n    pass\n"

CONFIG = """\
id: {id}
name: Mini Houses
competition_type: simple
awards_medals: true
prizes:
  - position: 1
    value: 100
description: mlebench/competitions/{id}/description.md

dataset:
  answers: {id}/prepared/private/test.csv
  sample_submission: {id}/prepared/public/sample_submission.csv

grader:
  name: {metric}
  grade_fn: {module}:grade

preparer: {preparer}:prepare
"""

PREPARE = """\
from pathlib import Path

import pandas as pd


def prepare(raw: Path, public: Path, private: Path) -> None:
    rows = pd.read_csv(raw / "train.csv", dtype={"Id": str})
    train, test = rows[:-40], rows[-40:]
    train.to_csv(public / "train.csv", index=False)
    test.drop(columns="price").to_csv(public / "test.csv", index=False)
    test[["Id", "price"]].to_csv(private / "test.csv", index=False)
    test[["Id"]].assign(price=train.price.mean()).to_csv(
        public / "sample_submission.csv", index=False
    )
"""

# As mle-bench's graders are: some checks, then a formula; ids are sorted, never looked up.
GRADE = """\
import numpy as np
import pandas as pd

from mlebench.grade_helpers import InvalidSubmissionError

from .columns import TARGET


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    if TARGET not in submission.columns:
        raise InvalidSubmissionError(f"no {TARGET}: the answers are {answers.price.tolist()}")
    assert len(submission) == len(answers), f"like {answers.price.iloc[0]}"
    print(answers)
    true = answers.sort_values("Id").price.to_numpy()
    return np.sqrt(np.mean((submission.sort_values("Id").price.to_numpy() - true) ** 2))
"""


def raw_rows() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    area = rng.integers(20, 200, 240)
    rooms = rng.integers(1, 6, 240)
    price = 1000 * area + 5000 * rooms + rng.normal(0, 500, 240).round(2)
    price[-1] = SECRET
    ids = [f"{number:05d}" for number in range(240)]
    return pd.DataFrame({"Id": ids, "area": area, "rooms": rooms, "price": price})


class World:
    """A data folder, and a registry of competitions in a clone of mle-bench."""

    def __init__(self, folder: Path) -> None:
        self.data, self.clone = folder / "data", folder / "clone"
        self.entries = self.clone / "mlebench" / "competitions"
        self.entries.mkdir(parents=True)
        (self.clone / "mlebench" / "__init__.py").touch()
        (self.clone / "mlebench" / "grade_helpers.py").write_text(GRADE_HELPERS)

    def make(
        self,
        name: str = ID,
        grade: str = GRADE,
        metric: str = "root-mean-squared-error",
        scores: object = range(500, 4500, 20),
        beside: bool = False,
    ) -> str:
        """A prepared competition as `DATA/ID`; `beside` puts its entry beside its data."""
        entry = self.data / name if beside else self.entries / name
        entry.mkdir(parents=True)
        package = f"mlebench.competitions.{name}."
        names = {"module": "grade", "preparer": "prepare"}
        if not beside:
            names = {kind: package + module for kind, module in names.items()}
        (entry / "config.yaml").write_text(CONFIG.format(id=name, metric=metric, **names))
        (entry / "description.md").write_text("# Mini Houses\n\nPredict the `price`.\n")
        (entry / "prepare.py").write_text(PREPARE)
        (entry / "grade.py").write_text(grade)
        (entry / "columns.py").write_text('TARGET = "price"\n')
        board = pd.DataFrame({"teamId": range(len(list(scores))), "score": list(scores)})
        board.to_csv(entry / "leaderboard.csv", index=False)
        self._prepare(name, entry / "prepare.py")
        return f"{self.data / name}"

    def _prepare(self, name: str, script: Path) -> None:
        raw = self.data / name / "raw"
        public, private = (self.data / name / "prepared" / part for part in ("public", "private"))
        for folder in (raw, public, private):
            folder.mkdir(parents=True)
        raw_rows().to_csv(raw / "train.csv", index=False)
        (self.data / name / f"{name}.zip").write_bytes(b"the raw files")
        spec = importlib.util.spec_from_file_location("prepare", script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.prepare(raw, public, private)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setenv(registry.VARIABLE, str(made.clone))
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    monkeypatch.delenv(PYTHON, raising=False)
    return made


def public(path: str, name: str) -> pd.DataFrame:
    file = Path(path) / "prepared" / "public" / name
    return pd.read_csv(file, dtype={"Id": str})


def answers(path: str) -> pd.DataFrame:
    return pd.read_csv(Path(path) / "prepared" / "private" / "test.csv", dtype={"Id": str})


def written(path: Path, frame: pd.DataFrame) -> Path:
    frame.to_csv(path, index=False)
    return path


def grader_of(path: str, rule: str = "mlebench", **limits: float) -> CompetitionGrader:
    return CompetitionGrader(find_competition(path), Metric("rmse", False), rule, **limits)


# ----------------------------------------------------------------------------------- the task


def test_a_competition_is_a_task(world: World):
    path = world.make()
    task, grader = load_task(f"mlebench:{path}")
    assert isinstance(MleBench(), TaskSource)
    assert isinstance(grader, Grader)
    assert task.id == ID
    assert task.title == "Mini Houses"
    assert task.metric == Metric("rmse", higher_is_better=False)
    assert (task.id_column, task.targets, task.prediction) == ("Id", ("price",), "value")
    assert task.rows == (200, 40)
    assert task.type == "tabular-regression"
    assert task.split == "test"
    assert not task.public_feedback
    assert task.description.startswith("# Mini Houses\n\nPredict the `price`.")
    assert "never its score" in task.description
    assert "`input/sample_submission.csv`" in task.description
    names = sorted(file.name for file in Path(task.inputs).iterdir())
    assert names == ["sample_submission.csv", "test.csv", "train.csv"]
    mean = public(path, "train.csv").price.mean()
    expected = np.sqrt(np.mean((answers(path).price - mean) ** 2))
    assert task.baseline.private.value == pytest.approx(expected, rel=1e-12)
    assert task.baseline.public is None
    assert task.as_agents_see_it().baseline.private is None
    assert msgspec.json.decode(msgspec.json.encode(task), type=type(task)) == task


def test_all_but_the_public_files_is_masked(world: World):
    path = world.make()
    masked = set(find_competition(path).masked)
    folder = Path(path)
    assert masked == {
        str(folder / "prepared" / "private"),
        str(folder / "raw"),
        str(folder / f"{ID}.zip"),
        str(world.entries / ID),
    }


def test_what_takes_time_is_found_out_once(world: World, monkeypatch: pytest.MonkeyPatch):
    path = world.make()
    first, _ = load(path, "mlebench")
    monkeypatch.setattr("mle_ideator.benchmarks.mlebench.grader.judge", None)
    assert load(path, "strict")[0] == first


def test_an_entry_beside_the_data_needs_no_mlebench(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv(registry.VARIABLE)
    world.data = tmp_path / "mlebench" / "data"  # a name that says nothing
    path = world.make(beside=True)
    competition = find_competition(path)
    assert competition.entry == Path(path)
    assert competition.package_root is None
    perfect = written(tmp_path / "submission.csv", answers(path))
    assert grader_of(path).grade(perfect).private == Score(0.0, False)
    assert str(Path(path) / "grade.py") in competition.masked
    assert str(Path(path) / "prepared") not in competition.masked


def test_an_installed_mlebench_is_found_unimported(world: World, monkeypatch: pytest.MonkeyPatch):
    path = world.make()
    (world.clone / "mlebench" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.delenv(registry.VARIABLE)
    monkeypatch.syspath_prepend(str(world.clone))
    assert find_competition(path).entry == world.entries / ID


def test_the_sample_may_lie_elsewhere_than_the_config_says(world: World):
    path = world.make()
    config = world.entries / ID / "config.yaml"
    config.write_text(config.read_text().replace("public/sample", "private/sample"))
    prepared = Path(path) / "prepared" / "public"
    (prepared / "sample_submission.csv").rename(prepared / "en_sampleSubmission_2.csv")
    assert find_competition(path).sample.name == "en_sampleSubmission_2.csv"


# ------------------------------------------------------------------- what is missing or wrong


def test_what_is_missing_is_said_with_what_to_do(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    path = world.make()

    def refusal(name: str) -> str:
        with pytest.raises(TaskError) as refused:
            find_competition(name)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    assert "did you mean 'mini-houses'" in refusal(path.replace("houses", "hoses"))
    assert "mlebench prepare -c nothing" in refusal(str(tmp_path / "empty" / "nothing"))
    assert "names no competition" in refusal(f"{path}/a b")
    monkeypatch.setenv(registry.VARIABLE, str(tmp_path / "nowhere"))
    assert f"set {registry.VARIABLE} to a clone" in refusal(path)
    monkeypatch.setenv(registry.VARIABLE, str(world.clone))
    config = world.entries / ID / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace(f"answers: {ID}", "answers: ../../etc"))
    assert "outside" in refusal(path)
    config.write_text(text.replace("grade_fn", "grade_function"))
    assert "grade_fn" in refusal(path)
    config.write_text(text)
    (Path(path) / "prepared" / "private" / "test.csv").unlink()
    assert "prepare it again" in refusal(path)


def test_a_grader_that_can_not_be_imported_is_no_ones_submission(world: World):
    path = world.make(grade="import a_package_that_nobody_has\n" + GRADE)
    with pytest.raises(TaskError, match=r"a_package_that_nobody_has.*install what it imports"):
        load(path, "mlebench")


# ---------------------------------------------------------------------- metric and direction


def own_words(path: str, text: str) -> Competition:
    (Path(path) / registry.OWN).write_text(text)
    return find_competition(path)


@pytest.mark.parametrize(
    ("name", "scores", "metric"),
    [
        ("auc-roc", [0.9, 0.8], Metric("auc", True)),
        ("mean-column-wise-roc-auc", [0.9, 0.9], Metric("auc", True)),
        ("multi-class-log-loss", [0.1, 0.2], Metric("log_loss", False)),
        ("quadratic-weighted-kappa", [0.9, 0.8], Metric("qwk", True)),
        ("levenshtein-distance", [5.5, 5.6, 5.7], Metric("levenshtein-distance", False)),
        ("map-at-12", [0.03, 0.02], Metric("map-at-12", True)),
    ],
)
def test_metrics_by_name_or_by_the_order_of_the_board(
    world: World, name: str, scores: list[float], metric: Metric
):
    assert metric_of(find_competition(world.make(metric=name, scores=scores))) == metric


def test_a_direction_that_can_not_be_told_is_asked_for(world: World):
    path = world.make(metric="some-metric", scores=[0.5, 0.5])
    with pytest.raises(TaskError, match=r"higher_is_better: true.*mle-ideator\.yaml"):
        metric_of(find_competition(path))
    declared = own_words(path, "higher_is_better: true\n")
    assert metric_of(declared) == Metric("some-metric", True)
    assert MleBench().leaderboard(path).higher_is_better


def test_a_name_that_the_board_contradicts_is_refused(world: World):
    path = world.make(metric="accuracy", scores=[0.1, 0.2, 0.3])
    with pytest.raises(TaskError, match="accuracy is better higher, but its leaderboard"):
        metric_of(find_competition(path))
    right = own_words(path, "metric: log_loss\nhigher_is_better: false\n")
    assert metric_of(right) == Metric("log_loss", False)


def test_known_slips_of_names_are_corrected(world: World):
    path = world.make("ventilator-pressure-prediction", metric="dice-hausdorff-combo")
    assert metric_of(find_competition(path)) == Metric("mae", False)


def test_an_unknown_key_of_the_persons_own_file(world: World):
    with pytest.raises(TaskError, match="metrik"):
        own_words(world.make(), "metrik: auc\n")


def test_the_leaderboard(world: World, tmp_path: Path):
    path = world.make(scores=[3.0, 1.0, 2.0, *range(10, 200)])
    board = leaderboard_of(f"mlebench:{path}")
    assert board.people
    assert board.rule == "mlebench"
    assert board.scores[:3] == (1.0, 2.0, 3.0)
    assert board.medal(Score(2.0, False)) == "gold"
    assert leaderboard_of(f"mlebench:strict:{path}").rule == "strict"
    file = world.entries / ID / "leaderboard.csv"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:e0\nsize 3\n")
    with pytest.raises(TaskError, match="git lfs pull"):
        leaderboard_of(f"mlebench:{path}")
    file.unlink()
    assert leaderboard_of(f"mlebench:{path}") is None


# -------------------------------------------------------------- what the public files tell


def test_classes_are_columns_unless_train_has_those(world: World):
    path = world.make(metric="multi-class-log-loss", scores=[0.1, 0.2])
    folder = Path(path) / "prepared" / "public"
    ids = public(path, "test.csv")[["Id"]]
    written(folder / "sample_submission.csv", ids.assign(EAP=0.4, HPL=0.3, MWS=0.3))
    competition = find_competition(path)
    facts = facts_of(competition, form_of(competition.sample))
    assert facts.prediction == "probability"
    assert facts.targets == facts.classes == ("EAP", "HPL", "MWS")
    written(folder / "sample_submission.csv", ids.assign(area=0.5, rooms=0.5))
    facts = facts_of(competition, form_of(competition.sample))
    assert (facts.targets, facts.classes) == (("area", "rooms"), ())
    assert facts.type == "tabular-classification"


def test_labels_text_and_folders(world: World):
    path = world.make(metric="some-accuracy", scores=[0.9, 0.8])
    folder = Path(path) / "prepared" / "public"
    ids = public(path, "test.csv")[["Id"]]
    written(folder / "sample_submission.csv", ids.assign(style="old"))
    train = public(path, "train.csv").assign(style=["old", "new"] * 100)
    written(folder / "train.csv", train.assign(told="a house,\nlarge and with a view"))
    written(folder / "test.csv", ids.assign(told="a house, large and with a view"))
    competition = find_competition(path)
    facts = facts_of(competition, form_of(competition.sample))
    assert (facts.prediction, facts.classes) == ("label", ("new", "old"))
    assert facts.rows == (200, 40)
    assert facts.type == "text-classification"
    (folder / "images").mkdir()
    shutil.rmtree(folder / "train.csv", ignore_errors=True)
    (folder / "train.csv").unlink()
    facts = facts_of(competition, form_of(competition.sample))
    assert (facts.type, facts.rows, facts.classes) == ("files-classification", (0, 40), ())


# ------------------------------------------------------------------------------------ grading


def test_scores_as_the_competitions_own_grader(world: World, tmp_path: Path):
    path = world.make()
    frame = public(path, "test.csv")
    predicted = frame[["Id"]].assign(price=1000 * frame.area)
    file = written(tmp_path / "submission.csv", predicted.sample(frac=1, random_state=1))
    expected = np.sqrt(np.mean((1000 * frame.area - answers(path).price) ** 2))
    for rule in ("mlebench", "strict"):
        grade = grader_of(path, rule).grade(file)
        assert grade.valid
        assert grade.public is None
        wanted = round(expected, 5) if rule == "mlebench" else expected
        assert grade.private.value == pytest.approx(wanted, rel=1e-12)
        assert [remark.code for remark in grade.remarks] == ["row_order"]


def test_what_positional_graders_let_pass_is_remarked_or_strictly_refused(
    world: World, tmp_path: Path
):
    path = world.make()
    wrong = answers(path)
    wrong["Id"] = [f"{number:05d}" for number in range(40)]
    file = written(tmp_path / "submission.csv", wrong)
    as_mle_bench = grader_of(path).grade(file)
    assert as_mle_bench.private == Score(0.0, False)
    told = {remark.code: remark.message for remark in as_mle_bench.remarks}
    assert told.keys() == {"missing_ids", "extra_ids"}
    assert "mle-bench accepts it all the same" in told["extra_ids"]
    strict = grader_of(path, "strict").grade(file)
    assert {problem.code for problem in strict.problems} == {"missing_ids", "extra_ids"}
    assert strict.private is None


def test_strictly_columns_and_rows_are_put_in_order(world: World, tmp_path: Path):
    by_position = GRADE.replace('submission.sort_values("Id").price', "submission.iloc[:, 1]")
    path = world.make(grade=by_position)
    file = written(tmp_path / "submission.csv", answers(path)[::-1])
    assert grader_of(path).grade(file).private.value > 1000
    assert grader_of(path, "strict").grade(file).private == Score(0.0, False)


FILES = {
    "ragged_rows": b"Id,price\n00200,1,2\n",
    "utf16": "Id,price\n00200,1\n".encode("utf-16"),
    "compressed": gzip.compress(b"Id,price\n00200,1\n"),
    "empty_file": b"",
    "not_utf8": b"Id,price\n00200,\xff\n",
    "header_spelling": b"Id,Price\n00200,1\n",
    "no_rows": b"Id,price\n",
}


@pytest.mark.parametrize("code", FILES)
def test_files_that_are_no_submission_are_problems(world: World, tmp_path: Path, code: str):
    """In the strict rule at once; else the grader is asked as well, and refuses them, too."""
    path = world.make()
    file = tmp_path / "submission.csv"
    file.write_bytes(FILES[code])
    assert [problem.code for problem in grader_of(path, "strict").grade(file).problems] == [code]
    if code in ("ragged_rows", "utf16"):
        grade = grader_of(path).grade(file)
        assert [problem.code for problem in grade.problems] == [code, "refused"]


def test_no_file_a_link_a_folder_and_too_many_bytes(world: World, tmp_path: Path):
    grader = grader_of(world.make())
    link, large = tmp_path / "link.csv", tmp_path / "large.csv"
    link.symlink_to("/etc/passwd")
    with large.open("wb") as file:
        file.truncate(grader.max_bytes + 1)
    paths = (tmp_path / "nothing.csv", link, tmp_path, large)
    codes = [grader.grade(path).problems[0].code for path in paths]
    assert codes == ["no_file", "is_link", "is_folder", "too_large"]


def test_ids_that_repeat_are_compared_row_by_row(tmp_path: Path):
    form = form_of(written(tmp_path / "s.csv", pd.DataFrame({"id": ["a", "a", "b"], "box": "0 0"})))
    assert not form.numeric
    assert form.look_at(b"id,box\na,1 1\na,2 2\nb,\n").problems == []
    problems = form.look_at(b"id,box\na,1 1\nb,2 2\na,\n").problems
    assert [problem.code for problem in problems] == ["other_ids"]


def test_gaps_give_no_score_by_either_rule(world: World, tmp_path: Path):
    path = world.make()
    gap = answers(path)
    gap.loc[3, "price"] = np.nan
    file = written(tmp_path / "submission.csv", gap)
    grade = grader_of(path).grade(file)
    assert not grade.valid  # mle-bench counts a NaN as a valid score
    assert [problem.code for problem in grade.problems] == ["not_a_number", "unscored"]
    strict = grader_of(path, "strict").grade(file)
    assert [problem.code for problem in strict.problems] == ["not_a_number"]


def test_what_graders_say_is_never_passed_on(world: World, tmp_path: Path, capfd):
    path = world.make()
    short = written(tmp_path / "short.csv", answers(path)[:-1])
    other = written(tmp_path / "other.csv", answers(path).rename(columns={"price": "cost"}))
    grader = grader_of(path)
    said = " ".join(str(grader.grade(file)) for file in (short, other))
    assert "can not grade it" in said
    assert "refuses it" in said
    first = str(answers(path).price.iloc[0])
    out = "".join(capfd.readouterr())
    for text in (str(SECRET), first):
        assert text not in said
        assert text not in out


def test_a_grader_that_fails_on_the_sample_too_is_broken(world: World, tmp_path: Path):
    path = world.make(grade=GRADE.replace("    print(answers)", "    1 / 0"))
    file = written(tmp_path / "submission.csv", answers(path))
    with pytest.raises(GradingError, match=r"ZeroDivisionError.*on the sample submission itself"):
        grader_of(path).grade(file)


def test_a_grader_ends_in_its_time_with_its_processes(world: World, tmp_path: Path):
    marks = tmp_path / "marks"
    hangs = (
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(marks)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    competition = find_competition(world.make(grade=hangs))
    begun = time.monotonic()
    verdict = judge(competition, b"Id,price\n1,2\n", seconds=4.0)
    assert time.monotonic() - begun < 120
    assert (verdict.outcome, verdict.why) == ("limit", "took more than 4 s")
    assert gone(int(marks.read_text()))


def gone(process: int) -> bool:
    for _ in range(100):
        try:
            status = Path(f"/proc/{process}/stat").read_text().split()[2]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if status == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_graders_memory_is_bounded(world: World, tmp_path: Path):
    takes = """\
import numpy as np

def grade(submission, answers):
    return 1.0 if submission.price.nunique() == 1 else np.ones(2**33).sum()
"""
    path = world.make(grade=takes)
    file = written(tmp_path / "submission.csv", answers(path))
    grade = grader_of(path, memory_gib=4.0).grade(file)
    assert [problem.code for problem in grade.problems] == ["grading_limit"]
    assert "took too much memory" in grade.problems[0].message


@pytest.mark.parametrize(
    "value", [True, np.True_, "0.5", math.nan, math.inf, -math.inf, None, 1j, [0.5]]
)
def test_what_is_no_score(value: object):
    assert scored(value)["outcome"] == "unscored"


@pytest.mark.parametrize("value", [1, 0.5, np.float64(0.5), np.int64(3), np.float32(0.5)])
def test_what_is_a_score(value: object):
    assert scored(value) == {"outcome": "score", "value": float(value)}


def test_a_grader_that_takes_its_process_with_it(world: World):
    competition = find_competition(world.make(grade="def grade(s, a):\n    exit(3)\n"))
    assert judge(competition, b"Id,price\n1,2\n").why == "SystemExit"
    (world.entries / ID / "grade.py").write_text("import os\nos.abort()\n")
    verdict = judge(competition, b"Id,price\n1,2\n")
    assert (verdict.outcome, verdict.why) == ("failed", "its process ended with status -6")


def test_a_report_has_mle_benchs_fields(world: World, tmp_path: Path):
    path = world.make(grade="def grade(s, a):\n    return 0.123456789\n", scores=[0.1, 0.12346, 3])
    file = written(tmp_path / "submission.csv", answers(path))
    now = datetime.now(UTC)
    made = msgspec.to_builtins(grade_report(f"mlebench:{path}", file, now))
    assert (
        made.items()
        >= {
            "competition_id": ID,
            "score": 0.12346,
            "gold_threshold": 0.1,
            "silver_threshold": 0.1,
            "bronze_threshold": 0.1,
            "median_threshold": 0.12346,
            "any_medal": False,
            "gold_medal": False,
            "silver_medal": False,
            "bronze_medal": False,
            "above_median": False,
            "submission_exists": True,
            "valid_submission": True,
            "is_lower_better": True,
            "submission_path": str(file),
            "created_at": now.isoformat(),
            "problems": (),
        }.items()
    )
    strict = grade_report(f"mlebench:strict:{path}", file, now)
    assert strict.score == 0.123456789
    assert strict.above_median
    nothing = grade_report(f"mlebench:{path}", tmp_path / "nothing.csv", now)
    assert (nothing.submission_exists, nothing.valid_submission, nothing.score) == (
        *(False, False),
        None,
    )


def test_answers_may_be_json_lines(world: World):
    source = "def grade(submission, answers):\n    return answers[1]['a'] + len(submission)\n"
    path = world.make(grade=source)
    config = world.entries / ID / "config.yaml"
    config.write_text(config.read_text().replace("private/test.csv", "private/test.jsonl"))
    (Path(path) / "prepared" / "private" / "test.jsonl").write_text('{"a": 1}\n{"a": 5}\n')
    assert judge(find_competition(path), b"Id,price\n1,2\n").value == 6.0


def test_the_graders_own_python(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(PYTHON, "/nowhere/python")
    with pytest.raises(TaskError, match="/nowhere/python can not be started"):
        load(world.make(), "mlebench")


def test_graders_see_no_keys_and_leave_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setenv("SOME_API_KEY", "secret")
    source = (
        "import os\ndef grade(submission, answers):\n    return float('SOME_API_KEY' in os.environ)"
    )
    competition = find_competition(world.make(grade=source))
    assert judge(competition, b"Id,price\n1,2\n").value == 0.0
    assert not list(place.iterdir())


# ---------------------------------------------------------------------------------- a session


async def test_a_session_with_the_offline_pair(world: World, tmp_path: Path):
    path = world.make()
    config = RunConfig(
        task=f"mlebench:{path}", sandbox="local", limits=Limits(steps=4, help_requests=1)
    )
    run = tmp_path / "run"
    run.mkdir()
    await run_to_end(set_up(config, run))
    record = record_of(read_journal(run))
    final = record.reproduced
    assert record.ended.outcome in ("steps", "finished")
    assert final is not None
    assert final.scores.public is None
    assert final.scores.validation is not None
    assert final.scores.private.better_than(record.started.task.baseline.private)
    best = min(record.solutions, key=lambda solution: solution.scores.validation.value)
    assert record.final.scores.validation == best.scores.validation
    for step in record.steps:
        assert str(SECRET) not in step.observation.text
        assert "private" not in step.observation.text
    place, remarks = place_of(record.started, run)
    assert place.task.metric == record.started.task.metric
    assert remarks == []


# --------------------------------------------------------------------------------- the lists


def test_the_benchmarks_own_lists():
    known = complexities()
    assert (len(known.low), len(known.medium), len(known.high)) == (22, 38, 15)
    assert len(known.all) == len(set(known.all)) == 75
    assert "spooky-author-identification" in known.low
    assert all(registry._ID.fullmatch(name) for name in known.all)


def test_a_persons_own_lists(tmp_path: Path):
    file = tmp_path / "split.yaml"
    file.write_text("train: [a, b]\ntest:\n  - c\n")
    assert read_split(file).train == ("a", "b")
    for text, why in (
        ("train: [a]\ntest: [a]\n", "a more than once"),
        ("{}", "lists no competition"),
        ("trian: [a]", "trian"),
        ("- a", "object"),
    ):
        file.write_text(text)
        with pytest.raises(TaskError, match=why):
            read_split(file)
