"""FileGrader: from answers.csv and a submission to a Grade, and what it never does."""

import dataclasses
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_ideator.benchmarks import grading
from mle_ideator.benchmarks.grading import METRICS, FileGrader, metric_named
from mle_ideator.errors import GradingError, UsageError
from mle_ideator.protocols import Grader
from mle_ideator.types import Score

ROOT = Path(__file__).parents[2]


def graded(folder: Path, answers: str, submission: str, **task):
    return grader(folder, answers, **task).grade(written(folder, submission))


def grader(folder: Path, answers: str, **task) -> FileGrader:
    path = folder / "answers.csv"
    path.write_text(answers)
    spec = metric_named(task["metric"])
    given = {"id_column": "id", "targets": ("y",), "prediction": spec.prediction, **task}
    return FileGrader(path, **given)


def written(folder: Path, submission: str) -> Path:
    path = folder / "submission.csv"
    path.write_text(submission)
    return path


def table(header: str, *columns) -> str:
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join([header, *rows]) + "\n"


# ---------------------------------------------------------------------------------- scores

BINARY = "id,y,part\n1,0,public\n2,0,public\n3,1,public\n4,1,public\n5,0,private\n6,1,private\n7,,ignore\n"  # noqa: E501
BINARY_PREDICTED = "id,y\n1,.1\n2,.4\n3,.35\n4,.8\n5,.25\n6,.75\n7,.5\n"


@pytest.mark.parametrize(
    ("metric", "public", "private"),
    [
        ("auc", 0.75, 1),
        ("average_precision", 0.8333333, 1),
        ("log_loss", 0.4722880, -np.log(0.75)),
        ("brier", 0.158125, 0.0625),
        ("gini", 0.5, 1),
    ],
)
def test_two_classes(tmp_path, metric, public, private):
    grade = graded(tmp_path, BINARY, BINARY_PREDICTED, metric=metric)
    assert (grade.problems, grade.remarks) == ((), ())
    assert grade.public.value == pytest.approx(public, abs=6e-8)
    assert grade.private.value == pytest.approx(private, abs=6e-8)
    assert grade.public.higher_is_better is METRICS[metric].higher_is_better


def test_ignored_rows_must_be_predicted_and_do_not_count(tmp_path):
    task = grader(tmp_path, BINARY, metric="auc")
    path = tmp_path / "submission.csv"
    path.write_text(BINARY_PREDICTED.replace("7,.5", "7,.99"))
    assert task.grade(path).public == Score(0.75, True)
    path.write_text(BINARY_PREDICTED.replace("7,.5\n", ""))
    assert [p.code for p in task.grade(path).problems] == ["missing_ids"]


@pytest.mark.parametrize(
    ("classes", "cells", "expected"),
    [
        ((), "no yes", 1),  # sorted: yes is positive
        (("no", "yes"), "no yes", 1),
        (("yes", "no"), "no yes", 0),  # declared: the second, no, is positive
        ((), "2 10", 1),  # by value, not as text
    ],
)
def test_which_class_is_positive(tmp_path, classes, cells, expected):
    low, high = cells.split()
    answers = f"id,y,part\n1,{low},public\n2,{high},public\n"
    grade = graded(tmp_path, answers, "id,y\n1,.2\n2,.8\n", metric="auc", classes=classes)
    assert grade.public == Score(expected, True)
    assert grade.private is None


CLASSES = "id,kind,part\n1,a,public\n2,b,public\n3,c,public\n4,c,public\n"


@pytest.mark.parametrize("classes", [("a", "b", "c"), ("c", "a", "b")])
def test_several_classes_have_a_column_each_by_name(tmp_path, classes):
    submission = "id,c,a,b\n1,.1,.7,.2\n2,.1,.1,.8\n3,.5,.2,.3\n4,.2,.6,.2\n"
    task = grader(tmp_path, CLASSES, metric="log_loss", targets=("kind",), classes=classes)
    assert task.columns == classes
    grade = task.grade(written(tmp_path, submission))
    assert grade.public.value == pytest.approx(0.7206009, abs=6e-8)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("accuracy", 0.75),
        ("macro_f1", 0.7777778),
        ("balanced_accuracy", 0.8333333),
        ("qwk", 0.3846154),
        ("kappa", 0.6363636),
    ],
)
def test_labels(tmp_path, metric, expected):
    task = {"metric": metric, "targets": ("kind",), "classes": ("a", "b", "c")}
    grade = graded(tmp_path, CLASSES, "id,kind\n1,a\n2,b\n3,c\n4,a\n", **task)
    assert grade.public.value == pytest.approx(expected, abs=6e-8)


def test_ordinal_classes_go_by_value(tmp_path):
    answers = table("id,y,part", range(6), [8, 9, 10, 11, 12, 10], ["private"] * 6)
    submission = table("id,y", range(6), [8, 10, 10, 11, 11, 9])
    declared = ("10", "11", "12", "8", "9")
    grade = graded(tmp_path, answers, submission, metric="qwk", classes=declared)
    assert grade.private.value == pytest.approx(0.8235294, abs=6e-8)


def test_undeclared_labels_that_nobody_knows_are_just_wrong(tmp_path):
    answers = "id,y,part\n1,x,public\n2,z,public\n"
    grade = graded(tmp_path, answers, "id,y\n1,x\n2,new\n", metric="accuracy")
    assert grade.remarks == ()
    assert grade.public == Score(0.5, True)


def test_several_values(tmp_path):
    answers = table("id,a,b,part", range(4), [1, 0, 1, 0], [0, 1, 1, 0], ["public"] * 4)
    submission = table("id,b,a", range(4), [0.2, 0.8, 0.1, 0.4], [0.9, 0.3, 0.6, 0.4])
    rmse = graded(tmp_path, answers, submission, metric="rmse", targets=("a", "b"))
    assert rmse.public.value == pytest.approx(0.4181923, abs=6e-8)
    auc = graded(tmp_path, answers, submission, metric="auc", targets=("a", "b"))
    assert auc.public.value == pytest.approx(0.75)
    assert auc.valid  # rows of many labels need not sum to 1
    logloss = graded(tmp_path, answers, submission, metric="log_loss", targets=("a", "b"))
    assert logloss.valid


def test_many_labels(tmp_path):
    answers = table("id,a,b,part", range(4), [1, 0, 1, 0], [0, 1, 1, 0], ["public"] * 4)
    submission = table("id,a,b", range(4), [1, 0, "True", 0], [0, 1, 0, "0.0"])
    grade = graded(tmp_path, answers, submission, metric="micro_f1", targets=("a", "b"))
    assert grade.public.value == pytest.approx(0.8571429, abs=6e-8)


SURVIVAL = "id,time,seen,part\na,5,1,public\nb,3,1,public\nc,8,0,public\nd,10,1,public\ne,4,1,private\nf,9,0.0,private\ng,2,False,private\n"  # noqa: E501


@pytest.mark.parametrize(
    ("predicted", "public", "private"),
    [
        ("-2 -3 -1 -.5 0 1 5", 1, 1),
        ("-3 -2 -1 -.5 1 0 5", 0.8, 0),
        ("-2 -2 -1 -.5 1 1 0", 0.9, 0.5),
    ],
)
def test_survival(tmp_path, predicted, public, private):
    task = {"metric": "c_index", "targets": ("time",), "event": "seen"}
    submission = table("id,time", "abcdefg", predicted.split())
    grade = graded(tmp_path, SURVIVAL, submission, **task)
    assert (grade.problems, grade.remarks) == ((), ())
    assert (grade.public.value, grade.private.value) == (pytest.approx(public), private)


RANKING = table("id,query,y,part", range(10), [*"pqpqpqrrss"], [3, 1, 2, 0, 3, 0, 1, 0, 0, 0],
                ["public"] * 6 + ["private"] * 4)  # fmt: skip


def test_ranking(tmp_path):
    task = {"metric": "ndcg@10", "prediction": "value", "group": "query"}
    submission = table("id,y", range(10), [6, 0, 5, 1, 4, 2, 1, 0, 7, 7])
    grade = graded(tmp_path, RANKING, submission, **task)
    p = (3 + 2 / np.log2(3) + 3 / 2) / (3 + 3 / np.log2(3) + 2 / 2)
    q = 1 / np.log2(4)
    assert grade.public.value == pytest.approx((p + q) / 2)
    assert grade.private == Score(1.0, True)  # group s has nothing relevant
    scores = [graded(tmp_path, RANKING, submission, **{**task, "metric": f"map_{k}"}).public.value
              for k in (1, 3)]  # fmt: skip
    assert scores == [0.5, pytest.approx((1 + 1 / 3) / 2)]


def test_groups_and_events_may_be_there_without_being_needed(tmp_path):
    submission = table("id,y", range(10), [3, 1, 2, 0, 3, 0, 1, 0, 0, 1])
    grade = graded(tmp_path, RANKING, submission, metric="rmse", group="query")
    assert (grade.public.value, grade.private.value) == (0, 0.5)


def test_a_submission_has_no_group(tmp_path):
    submission = table("id,query,y", range(10), [*"pqpqpqrrss"], range(10))
    grade = graded(tmp_path, RANKING, submission, metric="ndcg_10", group="query")
    assert [p.code for p in grade.problems] == ["extra_column"]


def test_no_value_is_unscored_and_said(tmp_path):
    answers = "id,y,part\n1,1,public\n2,1,public\n3,0,private\n4,1,private\n"
    grade = graded(tmp_path, answers, "id,y\n1,.2\n2,.8\n3,.1\n4,.3\n", metric="auc")
    assert grade.valid
    assert (grade.public, grade.private) == (None, Score(1.0, True))
    message = "auc is not defined on the public part: it needs both classes among the scored rows."
    assert [(r.code, r.message) for r in grade.remarks] == [("unscored", message)]


def test_the_answers_are_read_once(tmp_path):
    task = grader(tmp_path, BINARY, metric="auc")
    submission = written(tmp_path, BINARY_PREDICTED)
    first = task.grade(submission)
    (tmp_path / "answers.csv").unlink()
    assert task.grade(submission) == first


def test_it_is_a_grader(tmp_path):
    assert isinstance(grader(tmp_path, BINARY, metric="auc"), Grader)


# ------------------------------------------------------------------------------ properties


@st.composite
def submissions(draw):
    """Truth, predictions, part and id of some rows."""
    n = draw(st.integers(3, 12))
    numbers = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    ids = draw(st.lists(st.text("019eN", min_size=1, max_size=4), min_size=n, max_size=n,
                        unique=True))  # fmt: skip
    return ids, draw(numbers), draw(numbers), draw(st.randoms(use_true_random=False))


@settings(max_examples=40, deadline=None)
@given(case=submissions(), metric=st.sampled_from(["mae", "accuracy", "qwk"]))
def test_the_order_of_a_submission_never_matters(case, metric):
    ids, truth, predicted, rng = case
    classes = () if metric == "mae" else ("0", "1", "2", "3")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = ["public", "private", "ignore"] * len(ids)
        answers = table("id,y,part", ids, truth, parts[: len(ids)])
        task = grader(folder, answers, metric=metric, classes=classes)
        straight = task.grade(written(folder, table("id,y", ids, predicted)))
        rows = list(zip(ids, predicted, strict=True))
        rng.shuffle(rows)
        shuffled = task.grade(written(folder, table("id,y", *zip(*rows, strict=True))))
        assert straight.valid
        assert shuffled.valid
        assert (shuffled.public, shuffled.private) == (straight.public, straight.private)
        perfect = task.grade(written(folder, table("id,y", ids, truth)))
        for best, score in ((perfect.public, straight.public), (perfect.private, straight.private)):
            assert not (best and score and score.better_than(best))


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=60) | st.text('id,y\n\r;"0123.eNa- \t', max_size=60))
def test_nothing_that_a_file_holds_raises(content):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = grader(folder, BINARY, metric="log_loss")
        path = folder / "submission.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert not task.grade(path).valid
        path.write_bytes(b"id,y\n" + path.read_bytes())
        assert not task.grade(path).valid


# ----------------------------------------------------------------------------- no leakage

SECRET_NUMBERS = (123.456, 98.7654, 55.4433, 71.8182)
SECRET_LABELS = ("zebra", "okapi", "zebra", "tapir")


def bad_submissions():
    good = "id,y\n1,0.5\n2,0.5\n3,0.5\n4,0.5\n"
    yield from (good, "", "id,y\n", "7,8\n", "ID,y\n1,2\n", "id;y\n1;2\n", "id,z\n1,2\n")
    yield from (good.replace("0.5", cell) for cell in ("", "nan", "inf", "-1", "x", "1e300"))
    yield from (good + "5,1\n", good + "4,1\n", good[:-6], good + "5\n", good.replace("\n", "\r"))
    yield "id,y\n" + "1,1\n" * 200_000


@pytest.mark.parametrize(
    ("metric", "secrets", "classes"),
    [
        ("rmsle", SECRET_NUMBERS, ()),
        ("spearman", SECRET_NUMBERS, ()),
        ("accuracy", SECRET_LABELS, ()),
        ("f1", ("zebra", "okapi", "zebra", "okapi"), ()),
        ("auc", ("zebra", "okapi", "zebra", "okapi"), ()),
    ],
)
def test_no_message_tells_of_the_answers(tmp_path, metric, secrets, classes):
    answers = table("id,y,part", range(1, 5), secrets, ["public", "private"] * 2)
    task = grader(tmp_path, answers, metric=metric, classes=classes)
    numbers = [s for s in secrets if isinstance(s, float)]
    stats = [np.mean(numbers), np.std(numbers), min(numbers), max(numbers)] if numbers else []
    hidden = [str(s) for s in secrets] + [f"{value:.4g}" for value in stats]
    told = []
    for content in bad_submissions():
        grade = task.grade(written(tmp_path, content))
        told += [p.message for p in (*grade.problems, *grade.remarks)]
    assert len(told) > 10
    for message in told:
        assert not [secret for secret in hidden if secret in message]
        assert str(tmp_path) not in message


# ------------------------------------------------------------------------------ our faults


@pytest.mark.parametrize(
    ("answers", "task", "message"),
    [
        ("id,y\n1,2\n", {}, "missing_column"),
        ("", {}, "empty_file"),
        ("id,y,part\n1,2,public\n1,3,public\n", {}, "an id more than once"),
        ("id,y,part\n1,2,hidden\n", {}, "none of"),
        ("id,y,part\n1,2,ignore\n", {}, "no row to score"),
        ("id,y,part\n1,,public\n", {}, "not what rmse needs (numbers; any number)"),
        ("id,y,part\n1,SECRET,public\n", {}, "not what rmse needs"),
        ("id,y,part\n1,-2,public\n", {"metric": "rmsle"}, "not what rmsle needs (numbers; ≥ 0)"),
        ("id,y,part\n1,SECRET,public\n", {"metric": "accuracy", "classes": ("a", "b")},
         "none of the declared classes"),
        ("id,y,part\n1,a,public\n2,b,public\n3,c,public\n", {"metric": "log_loss"},
         "need the classes declared"),
        ("id,y,part\n1,a,public\n2,b,public\n3,c,public\n", {"metric": "f1"}, "takes two classes"),
        ("id,y,part\n1,3,public\n", {"metric": "c_index", "event": "seen"}, "id, y, seen, part"),
        ("id,y,seen,part\n1,3,SECRET,public\n", {"metric": "c_index", "event": "seen"},
         "neither 1 (seen) nor 0 (not seen)"),
        ("id,y,seen,part\n1,-3,1,public\n", {"metric": "c_index", "event": "seen"},
         "not what c_index needs (numbers; ≥ 0)"),
    ],
)  # fmt: skip
def test_broken_answers(tmp_path, answers, task, message):
    broken = grader(tmp_path, answers, **{"metric": "rmse", **task})
    with pytest.raises(GradingError, match=re.escape(message)) as caught:
        broken.grade(written(tmp_path, "id,y\n1,0\n"))
    assert "SECRET" not in str(caught.value)


def test_answers_that_are_gone(tmp_path):
    task = grader(tmp_path, BINARY, metric="auc")
    (tmp_path / "answers.csv").unlink()
    with pytest.raises(GradingError, match="no_file"):
        task.grade(written(tmp_path, BINARY_PREDICTED))


def test_a_metric_that_fails_is_no_bad_submission(tmp_path):
    def fails(truth, predicted):
        raise ZeroDivisionError(f"with {truth}")

    task = grader(tmp_path, BINARY, metric="auc")
    task.spec = dataclasses.replace(task.spec, compute=fails)
    with pytest.raises(GradingError) as caught:
        task.grade(written(tmp_path, BINARY_PREDICTED))
    assert str(caught.value) == "auc failed on the public part (ZeroDivisionError)"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"metric": "rsme"}, "unknown metric 'rsme'; did you mean 'rmse'?"),
        ({"metric": "auc", "prediction": "label"}, "auc scores a probability, not a label"),
        ({"metric": "mcc", "prediction": "label", "targets": ("a", "b")}, "takes one target"),
        ({"metric": "lrap", "prediction": "probability"}, "lrap takes many target"),
        ({"metric": "rmse", "targets": ()}, "takes any target"),
        ({"metric": "f1", "prediction": "label", "classes": ("a", "b", "c")}, "takes two classes"),
        ({"metric": "qwk", "prediction": "label"}, "needs the classes declared"),
        ({"metric": "c_index"}, "c_index needs the event column of the answers named"),
        ({"metric": "map_5", "event": "e"}, "map_5 needs the group column of the answers named"),
    ],
)
def test_a_task_that_makes_no_sense(tmp_path, task, message):
    call = {"id_column": "id", "targets": ("y",), "prediction": "value", **task}
    with pytest.raises(UsageError, match=re.escape(message)):
        FileGrader(tmp_path / "answers.csv", **call)


# ------------------------------------------------------------------------------------ docs


def test_the_documented_metrics_are_the_metrics():
    text = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8")
    rows = [
        f"| `{s.name}` | {'higher' if s.higher_is_better else 'lower'} | {s.prediction} "
        f"| {s.bounds} | {' and '.join(filter(None, (s.needs, s.beside)))} | {s.targets} "
        f"| {s.doc.replace('|', chr(92) + '|')} |"
        for s in METRICS.values()
    ]
    assert [
        line for line in text.splitlines() if line.startswith("| `") and line.count(" | ") > 5
    ] == rows


def test_every_code_is_documented_and_no_other():
    sources = Path(grading.__file__).parent.glob("*.py")
    source = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    found = set(re.findall(r'(?:refuse|Problem|problem|remark)\(\s*"(\w+)"', source))
    found |= set(re.findall(r'_report\([^"]*?"(\w+)"', source))
    found |= set(re.findall(r'^    \([^\n]*, "([a-z_0-9]+)", "', source, re.MULTILINE))
    text = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8").partition("## Fair play")[0]
    documented = set(re.findall(r"^\| `(\w+)` \| [^|]*\|$", text, re.MULTILINE))
    assert documented == found
