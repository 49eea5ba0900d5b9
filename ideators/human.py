"""You are the ideator: the situation on the terminal, three lines in return.

Questions go to standard error, so that `--json` keeps standard output to itself. Answers come from
standard input, a terminal or a pipe. Nothing of the terminal is changed: it edits the lines.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import stat
import sys
import termios

from mle_ideator.idea_form import MAX_PART_CHARS, PARTS, listed, well_formed, wrong_revert
from mle_ideator.plain_text import printable
from mle_ideator.prompts import render
from mle_ideator.types import HelpState, Idea, Proposal

HEAD_LINES = 15
"""So much of the best solution is shown."""


class HumanIdeator:
    """Asks the person at the terminal, one question at a time, whoever asks.

    It keeps what was typed ahead, nothing else.
    """

    uses_terminal = True

    def __init__(self) -> None:
        self._lines = Lines()
        self._turn = asyncio.Lock()

    async def propose(self, state: HelpState) -> Proposal:
        async with self._turn:
            self._lines.forget_what_was_typed()
            _say(_situation(state))
            try:
                idea = await self._idea([s.number for s in state.situation.solutions])
            except EOFError:
                idea = None
        return Proposal(idea) if idea else Proposal(None, "the person had none")

    async def _idea(self, numbers: list[int]) -> Idea | None:
        parts = dict.fromkeys(PARTS, "-")
        reverts = f", or Revert to #k: … ({listed(numbers)})" if numbers else ""
        for name, hint in (
            ("analysis", f"Refine: …{reverts}"),
            ("action", "what to do next"),
            ("rationale", "why it should help"),
        ):
            parts[name] = await self._part(name, hint, numbers)
            if name == "action" and not parts[name]:
                return None
        return Idea(**parts)

    async def _part(self, name: str, hint: str, numbers: list[int]) -> str:
        """One part, asked for again until it is in form. Raises `EOFError`."""
        while True:
            _say(f"{name} [{hint}]: ", end="")
            answer = await self._lines.next()
            wrong = _wrong(name, answer, numbers)
            if not wrong:
                return answer
            _say(f"  {wrong}")


def _wrong(name: str, answer: str, numbers: list[int]) -> str:
    if name == "action" and not answer:
        return ""
    if len(answer) > MAX_PART_CHARS:
        return f"say it in at most {MAX_PART_CHARS} characters"
    shape = Idea(**({"analysis": "Refine", "action": "a", "rationale": "r"} | {name: answer}))
    if wrong := wrong_revert(shape, numbers):
        return wrong
    if well_formed(shape):
        return ""
    return 'start with "Refine" or "Revert to #k"' if name == "analysis" else "say it in words"


def _situation(state: HelpState) -> str:
    best = state.situation.best_solution
    lines = best.code.splitlines() if best else []
    head = [f"  {line}" for line in lines[:HEAD_LINES]]
    if len(lines) > HEAD_LINES:
        head.append(f"  … {len(lines) - HEAD_LINES} more lines")
    return render(
        "ideator/human", situation=state.situation, request=state.request, head="\n".join(head)
    )


def _say(text: str, end: str = "\n") -> None:
    """What agents wrote must not steer the terminal; a reader who is gone must not end the run."""
    try:
        print(printable(text), end=end, file=sys.stderr, flush=True)
    except OSError:
        return


# ---------------------------------------------------------------------------- what is typed


class Lines:
    """Lines of standard input, awaited without a thread, so that a wait can be broken off."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._typed = ""

    async def next(self) -> str:
        """The next line, blank ends off; a backslash at its end joins the next one to it.

        Raises `EOFError` where the input ends.
        """
        line = await self._line()
        while line.endswith("\\"):
            line = f"{line[:-1]}{await self._line()}"
        return printable(line.strip())

    def forget_what_was_typed(self) -> None:
        """On a terminal, keys that were hit before a question do not answer it."""
        if (source := _source()) is not None and os.isatty(source):
            self._typed = ""
            termios.tcflush(source, termios.TCIFLUSH)

    async def _line(self) -> str:
        while "\n" not in self._typed:
            more = await self._more()
            if not more:
                return self._rest()
            self._typed += self._decoder.decode(more)
        line, _, self._typed = self._typed.partition("\n")
        return line

    def _rest(self) -> str:
        """What stood before the end of the input, without a newline."""
        rest, self._typed = self._typed, ""
        if not rest:
            raise EOFError
        return rest

    async def _more(self) -> bytes:
        """Some bytes, or none at the end of the input."""
        source = _source()
        if source is None:
            return b""
        try:
            if not _always_ready(source):
                await _ready(source)
            return os.read(source, 65536)
        except OSError:
            return b""  # a terminal that was closed, or nothing that can be waited for
        except asyncio.CancelledError:
            # Half a line must not become a command of the shell.
            self.forget_what_was_typed()
            _say("")
            raise


async def _ready(source: int) -> None:
    """Wait until something can be read."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(source, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(source)


def _source() -> int | None:
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return None  # closed, or not there at all


def _always_ready(source: int) -> bool:
    """A regular file never blocks, and can not be waited for."""
    return stat.S_ISREG(os.fstat(source).st_mode)
