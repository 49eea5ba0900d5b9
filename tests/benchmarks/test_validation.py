"""What is wrong with a submission, or odd about it: each with its code and its exact words."""

import gzip
import os
import socket
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_ideator.benchmarks.grading import files
from mle_ideator.benchmarks.grading.cells import Classes
from mle_ideator.benchmarks.grading.ids import KnownIds
from mle_ideator.benchmarks.grading.metrics import ANY, NOT_NEGATIVE, POSITIVE, UNIT
from mle_ideator.benchmarks.grading.validation import Checked, Wanted, check
from mle_ideator.types import Problem

IDS = ("7", "8", "9")
GOOD = "id,y\n7,0.25\n8,0.5\n9,0.75\n"
ONE_ROW = "Write exactly one row for each id of test.csv."


def wanted(columns=("y",), ids=IDS, prediction="value", bounds=ANY, classes=None, sums=False):
    known = Classes(classes) if classes else None
    text = KnownIds(pa.array(ids, pa.large_string()))
    return Wanted("id", columns, text, prediction, bounds, known, sums)


LABELS = wanted(prediction="label", classes=("cat", "dog"))
SHARES = wanted(("a", "b"), prediction="probability", bounds=UNIT, classes=("a", "b"), sums=True)
PROBABILITY = wanted(prediction="probability", bounds=UNIT, classes=("0", "1"))


def checked(tmp_path: Path, content: str | bytes, what: Wanted | None = None) -> Checked:
    path = tmp_path / "submission.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return check(path, what or wanted())


def test_a_good_submission(tmp_path):
    result = checked(tmp_path, GOOD)
    assert (result.problems, result.remarks) == ([], [])
    assert result.predictions.tolist() == [0.25, 0.5, 0.75]
    assert result.predictions.dtype == float


def test_columns_come_back_in_the_wanted_order(tmp_path):
    result = checked(tmp_path, "b,id,a\n.2,8,.8\n.1,7,.9\n.3,9,.7\n", SHARES)
    assert result.predictions.tolist() == [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]
    assert [r.code for r in result.remarks] == ["column_order", "row_order"]


# -------------------------------------------------------------------------------- problems

PROBLEMS = [
    # storage
    (gzip.compress(GOOD.encode()), None, "compressed",
     "the file is compressed (gzip). Write plain UTF-8 CSV text."),
    (b"PK\x03\x04rest", None, "compressed",
     "the file is compressed (zip). Write plain UTF-8 CSV text."),
    (b"PAR1rest", None, "not_csv", "the file is a Parquet file. Write plain UTF-8 CSV text."),
    (GOOD.encode("utf-16"), None, "utf16",
     "the file is encoded as UTF-16. Write plain UTF-8 CSV text."),
    (GOOD.encode("utf-16-le"), None, "utf16",
     "the file is encoded as UTF-16. Write plain UTF-8 CSV text."),
    (b"id,y\n7,0.2\x005\n", None, "nul_bytes",
     "the file holds NUL bytes, the first at byte 10. Write plain UTF-8 CSV text."),
    (b"id,y\n7,\xff\n", None, "not_utf8",
     "the file is not UTF-8: byte 7 is 0xff. Write it with encoding='utf-8'."),
    (GOOD.replace("\n", "\r"), None, "cr_only",
     "lines end with CR alone. End them with a line feed."),
    ("", None, "empty_file", "the file is empty. Write a header and a row for each id."),
    ("\n \r\n", None, "empty_file", "the file is empty. Write a header and a row for each id."),
    ("id,y\n", None, "no_rows",
     "there is a header but no row. Predict each row of test.csv."),
    ("id,y", None, "no_rows", "there is a header but no row. Predict each row of test.csv."),
    ("id,y\n" + "1,2\n" * 20_000, None, "too_many_rows",
     "there are 20,000 lines, far more than this task has rows to predict. "
     "Write one row for each row of test.csv."),
    ("id," + "y" * 70_000 + "\n7,1\n", None, "not_csv",
     "the first line has 70,004 bytes and is no header of this task. "
     "The header must be 'id,y'."),
    # header
    ("id;y\n7;1\n", None, "wrong_separator",
     "the columns are separated by ';'. Separate them by commas."),
    ("id\ty\n7\t1\n", None, "wrong_separator",
     "the columns are separated by tabs. Separate them by commas."),
    ("7,0.25\n8,0.5\n9,0.75\n", None, "no_header",
     "the first line is no header: '7', '0.25'. The header must be 'id,y'."),
    ("cat,dog\ncat,dog\n", LABELS, "no_header",
     "the first line is no header: 'cat', 'dog'. The header must be 'id,y'."),
    ("Id,y \n7,1\n", None, "header_spelling",
     "column names must match exactly, with case and spaces: "
     "'Id' must be 'id', 'y ' must be 'y'."),
    ("id,z\n7,1\n", None, "missing_column",
     "1 column missing: 'y'. The header must be 'id,y'."),
    ("id,label\n7,cat\n", SHARES, "missing_column",
     "2 columns missing: 'a', 'b'. The header must be 'id,a,b'."),
    ("id,y,z\n7,1,2\n", None, "extra_column",
     "1 column too many: 'z'. The header must be 'id,y'."),
    ("id,y,y\n7,1,2\n", None, "duplicate_column",
     "columns occur twice: 'y'. The header must be 'id,y'."),
    # rows
    ("id,y\n7,1\n8,1,1\n9\n", None, "ragged_rows",
     "2 rows do not have the header's 2 cells; line 3 has 3: '8,1,1'. "
     "Quote cells that hold commas."),
    ("id,y\n7,1\n8,1\n", None, "missing_ids", f"1 id of 3 missing: '9'. {ONE_ROW}"),
    (GOOD + "10,1\n11,1\n12,1\n13,1\n", None, "extra_ids",
     f"4 ids that test.csv does not have: '10', '11', '12', …. {ONE_ROW}"),
    (GOOD + "8,1\n", None, "duplicate_ids",
     "1 id more than once: '8'. Write exactly one row for each id."),
    # cells
    ("id,y\n7,\n8,NaN\n9,1\n", None, "missing_prediction",
     "2 predictions are empty or NaN: '' for id '7', 'NaN' for id '8'. "
     "Fill them in."),
    ("id,y\n7,inf\n8,-inf\n9,1e999\n", None, "infinite",
     "3 predictions are infinite: 'inf' for id '7', '-inf' for id '8', '1e999' for id '9'. "
     "Write finite numbers."),
    ("id,y\n7,cat\n8,1\n9,\"1,5\"\n", None, "not_a_number",
     "2 predictions are no number: 'cat' for id '7', '1,5' for id '9'. "
     "Write numbers with a decimal point, and no quotes, units or class names."),
    ("id,y\n7,True\n8,1_000\n9,1\n", None, "not_a_number",
     "2 predictions are no number: 'True' for id '7', '1_000' for id '8'. "
     "Write numbers with a decimal point, and no quotes, units or class names."),
    ("id,y\n7,50%\n8,$3\n9,0x1\n", None, "not_a_number",
     "3 predictions are no number: '50%' for id '7', '$3' for id '8', '0x1' for id '9'. "
     "Write numbers with a decimal point, and no quotes, units or class names."),
    ("id,y\n7,yes\n8,no\n9,yes\n", PROBABILITY, "not_a_number",
     "3 predictions are no number: 'yes' for id '7', 'no' for id '8', 'yes' for id '9'. "
     "Write numbers with a decimal point, and no quotes, units or class names."),
    ('{"id": [7, 8, 9], "y": [1, 2, 3]}', None, "not_csv",
     "the file looks like JSON or markup. Write CSV text. The header must be 'id,y'."),
    ("id,y\n7,-0.5\n8,0\n9,1\n", wanted(bounds=NOT_NEGATIVE), "out_of_range",
     "1 prediction is out of range: '-0.5' for id '7'. Clip or transform them: they must be ≥ 0."),
    ("id,y\n7,-1\n8,0\n9,1\n", wanted(bounds=POSITIVE), "out_of_range",
     "2 predictions are out of range: '-1' for id '7', '0' for id '8'. "
     "Clip or transform them: they must be > 0."),
    ("id,y\n7,-0.1\n8,1.2\n9,1\n", PROBABILITY, "out_of_range",
     "2 predictions are out of range: '-0.1' for id '7', '1.2' for id '8'. "
     "Clip or transform them: they must be in [0, 1]."),
    ("id,y\n7,cat\n8,cow\n9,dog\n", LABELS, "unknown_label",
     "1 prediction is none of the classes: 'cow' for id '8'. The classes are 'cat', 'dog'."),
    ("id,y\n7,cat\n8,\n9,dog\n", LABELS, "missing_prediction",
     "1 prediction is empty: '' for id '8'. Fill them in."),
    ("id,a,b\n7,.5,.5\n8,.5,.4\n9,.9,.2\n", SHARES, "probability_sum",
     "the probabilities of 2 rows do not sum to 1: 0.9 for id '8', 1.1 for id '9'. "
     "Divide each row by its sum (tolerance 0.001)."),
    ("id,a,b\n7,.5,x\n8,.5,.5\n9,.5,.5\n", SHARES, "not_a_number",
     "1 prediction is no number: 'x' for id '7' in column 'b'. "
     "Write numbers with a decimal point, and no quotes, units or class names."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "what", "code", "message"),
    PROBLEMS,
    ids=[f"{i}-{row[2]}" for i, row in enumerate(PROBLEMS)],
)
def test_problem(tmp_path, content, what, code, message):
    result = checked(tmp_path, content, what)
    assert result.predictions is None
    assert Problem(code, message) in result.problems


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    result = checked(tmp_path, "id,y\n7,x\n7,inf\n6,\n")
    codes = ["duplicate_ids", "missing_ids", "extra_ids", "not_a_number", "missing_prediction"]
    assert [p.code for p in result.problems] == [*codes, "infinite"]


def test_both_the_missing_and_the_extra_column_are_named(tmp_path):
    result = checked(tmp_path, "id,z\n7,1\n")
    assert [p.code for p in result.problems] == ["missing_column", "extra_column"]


# --------------------------------------------------------------------------------- remarks

REMARKS = [
    (b"\xef\xbb\xbf" + GOOD.encode(), None, "bom",
     "the file starts with a byte order mark, which was skipped."),
    (GOOD.replace("\n", "\r\n"), None, "crlf", "lines end with CR LF, which was accepted."),
    (GOOD + "\n\n", None, "blank_lines", "blank lines were skipped."),
    ("\n" + GOOD, None, "blank_lines", "blank lines were skipped."),
    (GOOD.replace("8,", "\n8,"), None, "blank_lines", "blank lines were skipped."),
    (GOOD.replace("8,", '\n"8",'), None, "blank_lines", "blank lines were skipped."),
    (GOOD.replace("\n7", "\n\n7").rstrip(), None, "blank_lines", "blank lines were skipped."),
    (",id,y\n0,7,.25\n1,8,.5\n2,9,.75\n", None, "index_column",
     "an index column was ignored: ''. Write with index=False."),
    ("Unnamed: 0,id,y\n0,7,.25\n1,8,.5\n2,9,.75\n", None, "index_column",
     "an index column was ignored: 'Unnamed: 0'. Write with index=False."),
    ('\ufeff"y","id"\r\n".25","7"\n"5e-1","8"\n" .75","9"\n', None, "column_order",
     "the columns are in another order than in the sample; they were taken by name."),
    ("y,id\n.25,7\n.5,8\n.75,9\n", None, "column_order",
     "the columns are in another order than in the sample; they were taken by name."),
    ("id,y\n9,.75\n7,.25\n8,.5\n", None, "row_order",
     "the rows are in another order; they were taken by id."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "what", "code", "message"),
    REMARKS,
    ids=[f"{i}-{row[2]}" for i, row in enumerate(REMARKS)],
)
def test_remark(tmp_path, content, what, code, message):
    result = checked(tmp_path, content, what)
    assert result.problems == []
    assert Problem(code, message) in result.remarks
    assert len(result.remarks) == (3 if isinstance(content, str) and content[0] == "\ufeff" else 1)
    assert result.predictions.tolist() == [0.25, 0.5, 0.75]


@pytest.mark.parametrize("content", [GOOD.rstrip(), GOOD.replace("8", '"8"')])
def test_no_blank_line_is_seen_where_there_is_none(tmp_path, content):
    assert checked(tmp_path, content).remarks == []


def test_nearly_one_is_rescaled_and_said(tmp_path):
    result = checked(tmp_path, "id,a,b\n7,.5,.5\n8,.5,.4995\n9,.9,.1\n", SHARES)
    message = "1 row missed a sum of 1 by up to 0.0005; they were divided by their sum."
    assert result.remarks == [Problem("renormalised", message)]
    np.testing.assert_allclose(result.predictions.sum(axis=1), 1, rtol=1e-15)


def test_rounding_is_not_worth_a_word(tmp_path):
    result = checked(tmp_path, "id,a,b\n7,.33333333,.66666666\n8,1.0000001,0\n9,1,-1e-9\n", SHARES)
    assert (result.problems, [r.code for r in result.remarks]) == ([], [])
    assert 0 <= result.predictions.min() <= result.predictions.max() <= 1
    np.testing.assert_allclose(result.predictions.sum(axis=1), 1, rtol=1e-15)


def test_hard_labels_for_probabilities(tmp_path):
    result = checked(tmp_path, "id,y\n7,0\n8,1\n9,1\n", PROBABILITY)
    message = "all predictions are 0 or 1; this metric wants probabilities."
    assert result.remarks == [Problem("hard_labels", f"{message} Use predict_proba, not predict.")]


def test_scores_that_are_no_probabilities_where_only_order_counts(tmp_path):
    ranked = wanted(prediction="probability", bounds=ANY)
    result = checked(tmp_path, "id,y\n7,-3\n8,0\n9,12\n", ranked)
    assert [r.code for r in result.remarks] == ["not_probabilities"]
    assert result.predictions.tolist() == [-3, 0, 12]


# ------------------------------------------------------------------------------------- ids

ODD_IDS = ("00e12345", "1e5", "007", "NA", "nan", "", "1.0", "a,b", 'say "x"', "ü", " 8")


def test_ids_are_text(tmp_path):
    frame = pd.DataFrame({"id": ODD_IDS, "y": np.arange(len(ODD_IDS)) / 4}, dtype=object)
    result = checked(tmp_path, frame.sample(frac=1, random_state=0).to_csv(index=False),
                     wanted(ids=ODD_IDS))  # fmt: skip
    assert result.problems == []
    assert result.predictions.tolist() == [i / 4 for i in range(len(ODD_IDS))]


@pytest.mark.parametrize("ids", [("007", "8"), ("1e5", "8"), ("1", "2"), ("+1", "2")])
def test_ids_that_became_numbers_get_the_reason(tmp_path, ids):
    changed = "".join(f"{float(i)},1\n" for i in ids)
    result = checked(tmp_path, "id,y\n" + changed, wanted(ids=ids))
    assert [p.code for p in result.problems] == ["missing_ids", "extra_ids"]
    assert "read test.csv with dtype=str, keep_default_na=False" in result.problems[0].message


@pytest.mark.parametrize("ids", [("1", "01"), ("1", "1.0"), ("a", "A"), ("x", "x ")])
def test_ids_that_look_alike_are_not_mixed_up(tmp_path, ids):
    result = checked(tmp_path, f"id,y\n{ids[1]},1\n{ids[0]},0\n", wanted(ids=ids))
    assert result.problems == []
    assert result.predictions.tolist() == [0, 1]


PLAIN = st.integers(-30, 30).map(str) | st.integers(-(2**63), 2**63 - 1).map(str)
ODD = st.sampled_from(["007", "+1", "1.0", "1e1", "-0", " 1", "", "NA", "a"])


@settings(max_examples=60, deadline=None)
@given(
    known=st.lists(PLAIN, min_size=1, max_size=12, unique=True)
    | st.lists(PLAIN | ODD, min_size=1, max_size=12, unique=True),
    more=st.lists(PLAIN | ODD, max_size=3),
    rng=st.randoms(use_true_random=False),
    drop=st.booleans(),
)
def test_ids_are_found_as_a_dictionary_would(known, more, rng, drop):
    submitted = known[drop:] + more
    rng.shuffle(submitted)
    problems: list[Problem] = []
    ids = KnownIds(pa.array(known, pa.large_string()))
    text = pa.array(submitted, pa.large_string())
    order = ids.align(text, problems, [])
    assert ids.unique
    assert ids.places(text).tolist() == [
        known.index(name) if name in known else -1 for name in submitted
    ]
    codes = {p.code for p in problems}
    assert ("missing_ids" in codes) == bool(set(known) - set(submitted))
    assert ("extra_ids" in codes) == bool(set(submitted) - set(known))
    assert ("duplicate_ids" in codes) == any(submitted.count(name) > 1 for name in known)
    if not problems:
        found = submitted if order is None else [submitted[i] for i in order]
        assert found == known


@pytest.mark.parametrize("twice", [["1", "2", "1"], ["a", "b", "a"], ["1", "01", "01"]])
def test_known_ids_that_repeat_are_seen(twice):
    assert not KnownIds(pa.array(twice, pa.large_string())).unique


# ---------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("classes", "cells", "codes"),
    [
        (("0", "1"), ("1", "1.0", "0.0"), [1, 1, 0]),
        (("0", "1"), ("True", "false", " 1"), [1, 0, 1]),
        (("False", "True"), ("true", "0", "1.0"), [1, 0, 1]),
        (("1.0", "2.0"), ("1", "2", "2.0"), [0, 1, 1]),
        (("1", "1.0", "2"), ("1", "1.0", "2"), [0, 1, 2]),
        (("NA", "None", "x"), ("None", "NA", "x"), [1, 0, 2]),
        (("", "x", "y"), ("", "x", "y"), [0, 1, 2]),
        (("007", "8", "nan"), ("nan", "7", "8.0"), [2, 0, 1]),
    ],
)
def test_spellings_of_a_label(tmp_path, classes, cells, codes):
    labels = wanted(prediction="label", classes=classes)
    content = "id,y\n" + "".join(f"{i},{c}\n" for i, c in zip(IDS, cells, strict=True))
    result = checked(tmp_path, content, labels)
    assert result.problems == []
    assert result.predictions.tolist() == codes
    otherwise = any(cell not in classes for cell in cells)
    assert [r.code for r in result.remarks] == ["label_spelling"] * otherwise


def test_a_spelling_that_fits_two_classes_fits_none(tmp_path):
    labels = wanted(prediction="label", classes=("1", "01", "2"))
    result = checked(tmp_path, "id,y\n7,1.0\n8,01\n9,2\n", labels)
    assert [p.code for p in result.problems] == ["unknown_label"]


def test_many_classes_are_not_all_listed(tmp_path):
    labels = wanted(prediction="label", classes=tuple(f"c{i}" for i in range(500)))
    result = checked(tmp_path, "id,y\n7,c1\n8,nope\n9,c3\n", labels)
    assert len(result.problems[0].message) < 300


# --------------------------------------------------------------------------- hostile files


def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "submission.csv")
    start = time.monotonic()
    result = check(tmp_path / "submission.csv", wanted())
    assert time.monotonic() - start < 5
    message = "submission.csv is a pipe. Write a plain CSV file."
    assert result.problems == [Problem("not_a_file", message)]


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/passwd", "nowhere"])
def test_a_link_is_not_followed(tmp_path, target):
    (tmp_path / "submission.csv").symlink_to(target)
    result = check(tmp_path / "submission.csv", wanted())
    message = "submission.csv is a symbolic link. Write a plain CSV file."
    assert result.problems == [Problem("is_link", message)]


def test_a_link_put_in_after_the_look_is_not_followed(tmp_path, monkeypatch):
    path = tmp_path / "submission.csv"
    path.write_text(GOOD)
    look = Path.lstat

    def look_then_replace(self):
        found = look(self)
        path.unlink()
        path.symlink_to("/dev/zero")
        return found

    monkeypatch.setattr(files.Path, "lstat", look_then_replace)
    assert [p.code for p in check(path, wanted()).problems] == ["unreadable"]


def test_a_folder(tmp_path):
    (tmp_path / "submission.csv").mkdir()
    result = check(tmp_path / "submission.csv", wanted())
    message = "submission.csv is a folder. Write a plain CSV file."
    assert result.problems == [Problem("is_folder", message)]


def test_a_socket(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("submission.csv")
        result = check(Path("submission.csv"), wanted())
    assert [p.code for p in result.problems] == ["not_a_file"]


def test_a_device():
    assert [p.code for p in check(Path("/dev/null"), wanted()).problems] == ["not_a_file"]


def test_no_file(tmp_path):
    result = check(tmp_path / "submission.csv", wanted())
    message = "there is no submission.csv. Write it to the workspace."
    assert result.problems == [Problem("no_file", message)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path):
    (tmp_path / "submission.csv").write_text(GOOD)
    (tmp_path / "submission.csv").chmod(0)
    result = check(tmp_path / "submission.csv", wanted())
    assert [p.code for p in result.problems] == ["unreadable"]


def test_a_large_sparse_file_is_refused_unread(tmp_path):
    path = tmp_path / "submission.csv"
    with path.open("wb") as file:
        file.truncate(2**30)
    start = time.monotonic()
    result = check(path, wanted())
    assert time.monotonic() - start < 5
    message = "submission.csv has more than 64 MiB, far more than this task's rows can need."
    advice = "Write one row for each row of test.csv."
    assert result.problems == [Problem("too_large", f"{message} {advice}")]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\x00" * 2**25, "nul_bytes"),
        (b"," * 2**25, "not_csv"),
        (b"id,y\n" + b"x" * 2**25, "not_csv"),
        (b"id,y\n" + b'7,"' + b"x\n" * 2**24, "too_many_rows"),
        (b'id,y\n7,"' + b"x" * 2**25, "not_csv"),
        (b"id,y\n" + b"x\n" * 10_000, "ragged_rows"),
        (b"id,y\n7," + b"9" * 2**19 + b"\n8,1\n9,1\n", "infinite"),
        (b"id,y\n" + b"\n" * 9_000 + b"7,1\n", "missing_ids"),
        (b'"id,y\n7,1\n', "missing_column"),
        (b'id,y\n"7,1\n8,1\n9,1\n', "ragged_rows"),
        (os.urandom(1000) + b"\x00\xff", "nul_bytes"),
        (b"id,y\n7,1\n\x1b[2J\x1b]0;x\x07,1\n9,1\n", "extra_ids"),
    ],
)
def test_large_and_broken_files_end_soon_and_with_a_short_message(tmp_path, content, code):
    start = time.monotonic()
    result = checked(tmp_path, content)
    assert time.monotonic() - start < 20
    assert code in [p.code for p in result.problems]
    for problem in result.problems:
        assert len(problem.message) < 600
        assert problem.message.isprintable()
