"""Two submissions of one task, compared row by row."""

import pytest

from mle_ideator.benchmarks.submissions import compare_submissions
from mle_ideator.types import Metric, Task

OLD = b"id,y,z\na,1,2\nb,3,x\nc,0.5,5\n"


def task(*targets: str) -> Task:
    return Task(
        id="t",
        title="T",
        description="",
        type="tabular-regression",
        split="own",
        metric=Metric("rmse", False),
        id_column="id",
        targets=targets,
        prediction="value",
        rows=(1, 3),
        source="",
        licence="",
        inputs="",
    )


@pytest.mark.parametrize(
    ("new", "verdict", "differing", "largest"),
    [
        (OLD, "identical", 0, None),
        (b"\xef\xbb\xbfz,id,y\r\n5,c,5e-1\r\n2.0,a,1\r\nx,b,3.0\r\n", "same predictions", 0, None),
        (b"id,y,z\na,1,2\n\nb,3,x\nc,0.50,5\n", "same predictions", 0, None),
        (b"id,y,z\na,1.25,2\nb,3,x\nc,0.5,9\n", "differ", 2, 4.0),
        (b"id,y,z\na,1,2\nb,3,w\nc,0.5,5\n", "differ", 1, None),
        (b"id,y,z\na,1,2\nb,3,w\nc,1.5,5\n", "differ", 2, 1.0),
        (b"id,y,z\na,1,2\nb,3,x\nd,0.5,5\n", "differ", 2, None),
        (b'id,y,z\na,1,2\n"b",3,"x"\nc,0.5,5\n', "same predictions", 0, None),
    ],
)
def test_what_differs_is_counted_and_measured(new, verdict, differing, largest):
    found = compare_submissions(OLD, new, task("y", "z"))
    assert (found.verdict, found.differing, found.largest) == (verdict, differing, largest)
    assert found.rows == (4 if b"d,0.5" in new else 3)


def test_only_predictions_are_compared():
    other = OLD.replace(b"2\n", b"7\n")
    assert compare_submissions(OLD, other, task("y")).verdict == "same predictions"


def test_cells_with_line_breaks_stay_whole():
    old = 'id,y\n"a\nb",one\u2028two\n'.encode()
    found = compare_submissions(old, old.replace(b'"a\nb"', b'"a\nc"'), task("y"))
    assert (found.rows, found.differing) == (2, 2)
