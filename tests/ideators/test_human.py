"""The person as the ideator: through the command line on a real terminal, and through pipes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import select
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from mle_ideator.ideators.human import HumanIdeator
from mle_ideator.journal import read_journal
from mle_ideator.results import Record, record_of
from mle_ideator.types import Idea, Proposal
from tests.ideators.conftest import REQUEST

NONE = Proposal(None, "the person had none")
IDEA = "Refine: go on.\nUse ratios.\nThey may help.\n"
SOLVE = """
code = '''
import shutil
shutil.copy("input/sample_submission.csv", "submission.csv")
print("Validation score: 1.0")
'''
open("solution.py", "w").write(code)
exec(code)
"""


# ------------------------------------------------------------------------------ in a process


@pytest.fixture
def typed(monkeypatch):
    """Standard input is a pipe with this text; its end comes after it unless it is left open."""
    opened = []

    def typed(text: str | bytes, *, end: bool = True) -> None:
        source, sink = os.pipe()
        os.write(sink, text.encode() if isinstance(text, str) else text)
        if end:
            os.close(sink)
        else:
            opened.append(os.fdopen(sink, "wb"))
        opened.append(os.fdopen(source))
        monkeypatch.setattr(sys, "stdin", opened[-1])

    yield typed
    for file in opened:
        file.close()


@pytest.fixture
def state(story, task):
    return story(task()).solved("x = 1\n" * 20, 0.9).solved("x = 2\n", 1.2).state()


async def test_three_lines_are_an_idea(typed, state):
    typed(IDEA)
    idea = (await HumanIdeator().propose(state)).idea
    assert idea == Idea("Refine: go on.", "Use ratios.", "They may help.")


async def test_one_line_after_another_from_a_pipe(typed, state):
    typed(IDEA + IDEA.replace("ratios", "log1p"))
    ideator = HumanIdeator()
    actions = [(await ideator.propose(state)).idea.action for _ in range(2)]
    assert actions == ["Use ratios.", "Use log1p."]
    assert await ideator.propose(state) == NONE


async def test_two_sessions_at_once_are_asked_in_turn(typed, state):
    typed(IDEA + IDEA.replace("ratios", "log1p"))
    ideator = HumanIdeator()
    both = await asyncio.gather(ideator.propose(state), ideator.propose(state))
    assert [proposal.idea.action for proposal in both] == ["Use ratios.", "Use log1p."]


@pytest.mark.parametrize(
    "text",
    ["", "Refine: a\n", "Refine: a\n\n", "Refine: a\nUse ratios.\n", "\n\n\n", "Refine: a\n \t\n"],
)
async def test_no_action_or_the_end_of_input_is_no_idea(typed, state, text):
    typed(text)
    assert await HumanIdeator().propose(state) == NONE


async def test_what_is_not_in_form_is_asked_for_again(typed, state, capsys):
    typed(
        "maybe\n\nRefine"
        + "!" * 4000
        + "\nRevert to #7: a\nrevert to #1: b\nUse ratios.\n?\n\nThey help."
    )
    idea = (await HumanIdeator().propose(state)).idea
    assert idea == Idea("revert to #1: b", "Use ratios.", "They help.")
    shown = capsys.readouterr().err
    assert shown.count('start with "Refine" or "Revert to #k"') == 2
    assert "there is no solution #7; the solutions that exist are #1, #2" in shown
    assert shown.count("say it in words") == 2
    assert shown.count("say it in at most 4000 characters") == 1


async def test_a_backslash_continues_a_line_and_bytes_are_forgiven(typed, state):
    typed("Refine: é \\\n go on.\nUse ".encode() + b"\xff\x1b[2J\nThey help.\n")
    idea = (await HumanIdeator().propose(state)).idea
    assert idea == Idea("Refine: é  go on.", "Use �␛[2J", "They help.")


async def test_the_situation_is_shown_without_terminal_codes(typed, story, task, capsys):
    typed("")
    told = story(task(title="Evil \x1b]0;x\x07")).solved("\x1b[31mx = 1\n" + "y = 2\n" * 20, 0.9)
    await HumanIdeator().propose(told.solved("x = 2", 1.2).state())
    shown = capsys.readouterr()
    assert shown.out == ""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", shown.err)
    for part in (REQUEST.problem, REQUEST.goal, "rmse, lower is better", "#1  validation 0.9, the"):
        assert part in shown.err
    assert "␛[31mx = 1" in shown.err
    assert "… 6 more lines" in shown.err
    assert "Revert to #k: … (#1, #2)" in shown.err


async def test_a_regular_file_is_read(state, tmp_path: Path, monkeypatch):
    (tmp_path / "answers.txt").write_text(IDEA)
    with (tmp_path / "answers.txt").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert (await HumanIdeator().propose(state)).idea


async def test_nobody_there_is_no_idea(state, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert await HumanIdeator().propose(state) == NONE
    with os.fdopen(os.open(os.devnull, os.O_RDONLY)) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert await HumanIdeator().propose(state) == NONE


async def test_waiting_blocks_nothing_and_can_be_broken_off(typed, state):
    typed("Refine: a\n", end=False)
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    threads = threading.active_count()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await HumanIdeator().propose(state)
    ticking.cancel()
    assert ticks > 5
    assert threading.active_count() == threads
    assert not asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


# ------------------------------------------------------------------------------ on a terminal


@pytest.fixture
def terminal(monkeypatch):
    """Standard input is a terminal; its keyboard."""
    master, slave = os.openpty()
    with os.fdopen(master, "wb", buffering=0) as keyboard, os.fdopen(slave) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard


async def _shown(capsys, text: str) -> None:
    seen = ""
    while text not in seen:
        await asyncio.sleep(0.01)
        seen += capsys.readouterr().err


async def test_what_was_typed_before_the_question_does_not_answer_it(terminal, state, capsys):
    terminal.write(IDEA.encode())
    asking = asyncio.create_task(HumanIdeator().propose(state))
    await _shown(capsys, "analysis [")
    terminal.write(b"Refine: b\nTune.\nIt helps.\n")
    assert (await asking).idea == Idea("Refine: b", "Tune.", "It helps.")


async def test_half_a_line_is_not_left_for_the_shell(terminal, state, capsys):
    asking = asyncio.create_task(HumanIdeator().propose(state))
    await _shown(capsys, "analysis [")
    terminal.write(b"rm -r ")
    await asyncio.sleep(0.1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    terminal.write(b"ls\n")
    assert os.read(sys.stdin.fileno(), 100) == b"ls\n"


async def test_a_terminal_that_is_gone_is_no_idea(state, monkeypatch, capsys):
    master, slave = os.openpty()
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        asking = asyncio.create_task(HumanIdeator().propose(state))
        await _shown(capsys, "analysis [")
        os.close(master)
        assert await asking == NONE


class Terminal:
    """A command on a pseudo-terminal of its own, with somebody in front of it."""

    def __init__(self, *command: str) -> None:
        self.master, slave = os.openpty()
        self.before = termios.tcgetattr(self.master)
        self.seen = ""
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def sees(self, text: str, timeout_s: float = 60.0) -> str:
        """Wait for a text; what came before it and with it."""
        end = time.monotonic() + timeout_s
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not come:\n{self.seen}"
            assert self._read(), f"ended without {text!r}:\n{self.seen}"
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def types(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ends(self) -> tuple[int, str]:
        """The exit code and the rest of what was shown."""
        while self._read():
            pass
        return self.process.wait(timeout=60), self.seen

    def _read(self) -> bool:
        """Some more; false when all is said."""
        if not select.select([self.master], [], [], 60)[0]:
            return False
        try:
            more = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += more.decode()
        return bool(more)


HELP = {"type": "seek_help", "request": {"problem": "stuck\x1b[2J", "attempts": "a", "goal": "g"}}
CELL = {"type": "execute", "language": "python", "code": SOLVE}


@pytest.fixture
def command(tmp_path: Path):
    """The command line of a session with these actions, on data that takes no time to read."""

    def command(*actions: dict, time: str = "10m", options: tuple[str, ...] = ()) -> list[str]:
        rows = "\n".join(f"{i},{i % 7}" for i in range(60))
        (tmp_path / "train.csv").write_text(f"x,y\n{rows}\n")
        (tmp_path / "actions.json").write_text(json.dumps(actions))
        return [
            *(sys.executable, "-m", "mle_ideator", "run", "--sandbox", "local", "--time", time),
            *("--train", str(tmp_path / "train.csv"), "--target", "y", "--ideator", "human"),
            *("--implementer", f"scripted:{tmp_path / 'actions.json'}"),
            *("--out", str(tmp_path / "run"), *options),
        ]

    return command


def recorded(tmp_path: Path) -> Record:
    return record_of(read_journal(tmp_path / "run"))


def test_a_person_advises(command, tmp_path):
    with Terminal(*command(CELL, HELP, HELP, HELP)) as terminal:
        shown = terminal.sees("analysis [")
        assert "\x1b" not in shown.replace("\x1b[0m", "")
        assert "stuck␛[2J" in shown
        terminal.sees("(#1)]: ")
        terminal.types("revert to #3: a\n")
        terminal.sees("there is no solution #3; the solutions that exist are #1")
        terminal.types("Revert to #1: no\x7f\x7fit was better.\n")
        terminal.sees("action [")
        terminal.types("Use ratios.\n")
        terminal.sees("rationale [")
        terminal.types("They may help.\n")
        terminal.sees("analysis [")
        terminal.types("Refine: a\n")
        terminal.sees("action [")
        terminal.types("\x04")
        terminal.sees("analysis [")
        terminal.types("Refine: a\n\n")
        code, rest = terminal.ends()
        assert termios.tcgetattr(terminal.master) == terminal.before
    assert code == 0, rest
    steps = recorded(tmp_path).steps
    assert steps[1].idea == Idea("Revert to #1: it was better.", "Use ratios.", "They may help.")
    assert "solution.py was restored to solution #1" in steps[1].observation.text
    assert [step.observation.status for step in steps[2:4]] == ["no_idea", "no_idea"]
    assert "the person had none" in steps[2].observation.text


def test_ctrl_c_ends_the_session_in_order(command, tmp_path):
    with Terminal(*command(CELL, HELP)) as terminal:
        terminal.sees("analysis [")
        terminal.types("Refine: a\n")
        terminal.sees("action [")
        terminal.types("\x03")
        code, rest = terminal.ends()
        assert termios.tcgetattr(terminal.master) == terminal.before
    assert code == 0, rest
    assert "interrupted" in rest
    assert recorded(tmp_path).ended.outcome == "interrupted"
    assert (tmp_path / "run" / "submission.csv").exists()


@pytest.mark.slow
def test_the_session_s_time_ends_the_wait(command, tmp_path):
    with Terminal(*command(HELP, time="20s")) as terminal:
        terminal.sees("analysis [")
        terminal.types("Refine: half a li")
        code, rest = terminal.ends()
    assert code == 1, rest
    assert recorded(tmp_path).ended.outcome == "time"


def test_answers_from_a_pipe_leave_standard_output_to_json(command, tmp_path):
    done = subprocess.run(
        command(CELL, HELP, HELP, options=("--json",)),
        input=IDEA,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["help_requests"] == 2
    assert "The implementer seeks help" in done.stderr
    statuses = [step.observation.status for step in recorded(tmp_path).steps[1:3]]
    assert statuses == ["idea", "no_idea"]
