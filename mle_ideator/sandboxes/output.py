"""A cell's output as text in bounded memory: the head, the true tail, and how much was cut between.

Bytes come as the kernel writes them. They are decoded with replacement (a character may be cut
between two chunks), terminal codes are dropped, and a line that was redrawn with carriage returns
(a progress bar) becomes its last state.
"""

from __future__ import annotations

import codecs
import re
from collections import deque

_TERMINAL_CODES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|\x1b[@-Z\\^_]"  # two-character codes
)
_BROKEN_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]{0,4096})?$")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LONGEST_LINE = 64 * 1024


def clean(text: str) -> str:
    """Without terminal codes and control characters."""
    if "\x1b" in text:
        text = _TERMINAL_CODES.sub("", text)
    return _CONTROL.sub("", text)


def one_line(text: str, limit: int) -> str:
    """What agent code named, for a line of the runtime's own: printable, on one line, bounded."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def last_state(line: str) -> str:
    """A line as it stood at last, after its carriage returns."""
    if "\r" not in line:
        return line
    return next((part for part in reversed(line.split("\r")) if part), "")


class OutputBuffer:
    """Takes bytes, keeps `limit` characters: half from the start, half from the end."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._dropped = 0
        self._open_line = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> None:
        """Add what was read; any chunk size."""
        self._take_text(self._decoder.decode(data))

    def finish(self) -> tuple[str, int]:
        """The text with the cut marked, and the number of characters that were cut."""
        self._take_text(self._decoder.decode(b"", final=True))
        self._keep(clean(last_state(self._open_line)))
        self._open_line = ""
        return self._joined(), self._dropped

    def _take_text(self, text: str) -> None:
        text = self._open_line + text
        complete, newline, self._open_line = text.rpartition("\n")
        if newline:
            self._keep(self._reduced(complete) + "\n")
        if len(self._open_line) > _LONGEST_LINE:
            self._flush_long_line()

    def _flush_long_line(self) -> None:
        """Bound the memory of a line that does not end; its unfinished terminal code stays."""
        redrawn = "\r" if self._open_line.endswith("\r") else ""
        line = self._open_line = last_state(self._open_line) + redrawn
        if len(line) > _LONGEST_LINE:
            broken = _BROKEN_CODE.search(line[-5000:])
            end = len(line) - (len(broken.group()) if broken else 0)
            self._keep(clean(line[:end]))
            self._open_line = line[end:]

    @staticmethod
    def _reduced(text: str) -> str:
        if "\r" in text:
            text = "\n".join(last_state(line) for line in text.split("\n"))
        return clean(text)

    def _keep(self, text: str) -> None:
        room = self._head_limit - self._head_size
        if room > 0 and not self._tail:
            self._head.append(text[:room])
            self._head_size += min(room, len(text))
            text = text[room:]
        if text:
            self._tail.append(text)
            self._tail_size += len(text)
            self._trim_tail()

    def _trim_tail(self) -> None:
        while (extra := self._tail_size - self._tail_limit) > 0:
            first = self._tail.popleft()
            if len(first) > extra:
                self._tail.appendleft(first[extra:])
            cut = min(extra, len(first))
            self._tail_size -= cut
            self._dropped += cut

    def _joined(self) -> str:
        head, tail = "".join(self._head), "".join(self._tail)
        if not self._dropped:
            return head + tail
        return f"{head}\n[... {self._dropped:,} characters left out ...]\n{tail}"
