"""Append-only, flushed at each event, readable after a crash."""

import msgspec
import pytest

from mle_ideator.errors import UsageError
from mle_ideator.journal import FILE, Ended, Journal, Started, Warned, read_journal
from mle_ideator.types import Metric, SandboxInfo, Task

TASK = Task(
    id="t",
    title="T",
    description="",
    type="tabular-regression",
    split="own",
    metric=Metric("rmse", False),
    id_column="id",
    targets=("y",),
    prediction="value",
    rows=(1, 1),
    source="",
    licence="",
    inputs="",
)
BOX = SandboxInfo(kind="local", python="3", libraries={}, cores=1, memory_gib=1.0, network=True)
STARTED = Started(version="0", started_at="", config={}, task=TASK, sandbox=BOX)


def test_each_event_is_in_the_file_before_the_next(tmp_path):
    seen = []

    def listener(event):
        seen.append((event, len(read_journal(tmp_path))))

    with Journal(tmp_path / FILE, [listener]) as journal:
        journal.append(STARTED)
        journal.append(Warned(at_s=1.0, message="line\nbreak \N{SNOWMAN}"))
    assert [length for _, length in seen] == [1, 2]
    assert read_journal(tmp_path) == [event for event, _ in seen]


def test_a_line_cut_by_a_crash_is_left_out(tmp_path):
    with Journal(tmp_path / FILE) as journal:
        journal.append(STARTED)
        journal.append(Ended(at_s=1.0, outcome="steps", solution=None))
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes()[:-5])
    assert read_journal(tmp_path) == [STARTED]


def test_reopening_appends(tmp_path):
    for event in (STARTED, Warned(at_s=0.0, message="again")):
        with Journal(tmp_path / FILE) as journal:
            journal.append(event)
    assert len(read_journal(tmp_path)) == 2


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"not json\n", "line 1 is no event"),
        (msgspec.json.encode(STARTED) + b'\n{"type":"surprise"}\n', "line 2 is no event"),
        (b"", "does not begin with the start"),
        (msgspec.json.encode(Warned(at_s=0.0, message="")) + b"\n", "does not begin"),
    ],
)
def test_what_is_no_journal_gets_one_clear_line(tmp_path, content, line):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_journal(tmp_path)
    assert line in str(caught.value)


def test_a_folder_without_a_journal(tmp_path):
    with pytest.raises(UsageError, match="holds no journal"):
        read_journal(tmp_path)
