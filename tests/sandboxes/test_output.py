"""The output buffer by itself: any bytes in any chunks."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mle_ideator.sandboxes.output import OutputBuffer, clean, last_state, one_line

CUT = re.compile(r"\n\[\.\.\. ([\d,]+) characters left out \.\.\.\]\n")


def text_of(data: bytes, limit: int = 1000, chunk: int = 7) -> tuple[str, int]:
    buffer = OutputBuffer(limit)
    for start in range(0, len(data), chunk):
        buffer.write(data[start : start + chunk])
    return buffer.finish()


def test_short_output_is_whole():
    assert text_of(b"one\ntwo") == ("one\ntwo", 0)
    assert text_of(b"") == ("", 0)


def test_head_and_true_tail_are_kept_and_the_cut_is_counted():
    data = "".join(f"{n}\n" for n in range(10_000))
    text, dropped = text_of(data.encode(), limit=100, chunk=1000)
    head, tail = CUT.split(text)[0], CUT.split(text)[2]
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) == len(tail) == 50
    assert dropped == len(data) - 100
    assert CUT.search(text)[1] == f"{dropped:,}"


def test_exactly_the_limit_is_not_cut():
    assert text_of(b"x" * 100, limit=100) == ("x" * 100, 0)
    assert text_of(b"x" * 101, limit=100)[1] == 1


def test_a_line_without_end_is_bounded():
    buffer = OutputBuffer(1000)
    for _ in range(100):
        buffer.write(b"x" * 100_000)
    assert len(buffer._open_line) <= 200_000
    text, dropped = buffer.finish()
    assert dropped == 100 * 100_000 - 1000
    assert len(text) < 1100


def test_a_bar_without_end_is_bounded_and_keeps_its_last_state():
    data = b"".join(b"\r%d%% of it" % n for n in range(50_000))
    assert text_of(data, chunk=4096) == ("49999% of it", 0)
    trailing = b"".join(b"%d%% of it\r" % n for n in range(50_000))
    assert text_of(trailing, chunk=4096) == ("49999% of it", 0)


def test_carriage_returns():
    assert last_state("a\rb\rc") == "c"
    assert last_state("a\r") == "a"
    assert text_of(b"a\r\nb\r\n", chunk=2) == ("a\nb\n", 0)


def test_terminal_codes_cut_between_chunks():
    for chunk in range(1, 12):
        assert text_of(b"\x1b[1;31mred\x1b[0m\n", chunk=chunk)[0] == "red\n"
    assert clean("\x1b]8;;http://x\x07link\x1b]8;;\x07\x00") == "link"


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"])), st.integers(1, 9))
def test_text_comes_through_any_chunks(text, chunk):
    assert text_of(text.encode(), limit=10_000, chunk=chunk) == (text, 0)


@given(st.binary(max_size=3000), st.integers(1, 500), st.integers(0, 300))
def test_any_bytes_are_taken_and_bounded(data, chunk, limit):
    text, dropped = text_of(data, limit=limit, chunk=chunk)
    kept = CUT.sub("", text) if dropped else text
    assert len(kept) <= limit
    assert dropped >= 0
    assert text_of(data, limit=100_000, chunk=chunk)[0] == text_of(data, limit=100_000)[0]


def test_one_line_is_printable_and_bounded():
    assert one_line("a\n\tb\x1b[31m\u2028c\ud800 ", 80) == "a b [31m c"
    assert one_line("x" * 100, 10) == "x" * 7 + "..."
    assert one_line("\n" * 10**6, 10) == ""
