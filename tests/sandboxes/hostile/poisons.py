"""Poisoned submissions and solutions: what agent code leaves for the runtime to read."""

from __future__ import annotations

from dataclasses import dataclass

from tests.sandboxes.hostile.table import Left, without_walls

_LINES = "['id,y', *(f'b{i},{i}' for i in range(20))]"
GOOD = f"open('submission.csv', 'w').write('\\n'.join({_LINES}) + '\\n')"
"""Scored: the answers are y = 2 i."""


@dataclass(frozen=True, kw_only=True)
class Poison:
    """A cell that writes one, and what the runtime must say of it."""

    name: str
    code: str
    problems: tuple[str, ...]
    """Codes of which at least one must be given; none: it is a valid submission."""
    restart: bool = False
    """Does it go on, until the kernel ends?"""
    left: Left | None = None
    """Why it is not written in the local sandbox."""


POISONS = (
    Poison(name="a pipe", code="import os; os.mkfifo('submission.csv')", problems=("not_a_file",)),
    Poison(
        name="a link to the answers",
        code="import os; os.symlink('@secret_file@', 'submission.csv')",
        problems=("is_link",),
    ),
    Poison(
        name="a link to an endless device",
        code="import os; os.symlink('/dev/zero', 'submission.csv')",
        problems=("is_link",),
    ),
    Poison(
        name="a link to itself",
        code="import os; os.symlink('submission.csv', 'submission.csv')",
        problems=("is_link",),
    ),
    Poison(
        name="a link to a good one",
        code=GOOD.replace("submission", "other")
        + "; import os; os.symlink('other.csv', 'submission.csv')",
        problems=("is_link",),
    ),
    Poison(
        name="a folder",
        code="import os; os.makedirs('submission.csv/deep')",
        problems=("is_folder",),
    ),
    Poison(
        name="a socket",
        code="import socket; socket.socket(socket.AF_UNIX).bind('submission.csv')",
        problems=("not_a_file",),
    ),
    Poison(
        name="a file that nobody may read",
        code=f"{GOOD}; import os; os.chmod('submission.csv', 0)",
        problems=("unreadable", ""),  # root may
    ),
    Poison(
        name="one as large as a file may be",
        code="import os; f = open('submission.csv', 'wb'); f.truncate(100 * 2**20)",
        problems=("too_large",),
    ),
    Poison(
        name="no byte",
        code="open('submission.csv', 'w').close()",
        problems=("empty_file",),
    ),
    Poison(
        name="a million columns",
        code="open('submission.csv', 'w').write(','.join(f'c{i}' for i in range(10**6)) + '\\n')",
        problems=("too_large", "not_csv", "missing_column"),
    ),
    Poison(
        name="a quote without end",
        code="open('submission.csv', 'w').write('id,y\\n\"' + 'x' * 20_000)",
        problems=("not_csv", "ragged_rows", "too_large", "missing_rows"),
    ),
    Poison(
        name="rows of different length",
        code="open('submission.csv', 'w').write('id,y\\n' + 'b1,1,2,3\\n' * 500)",
        problems=("ragged_rows",),
    ),
    Poison(
        name="bytes that are no text",
        code="import os; open('submission.csv', 'wb').write(b'id,y\\n' + os.urandom(5000))",
        problems=("nul_bytes", "not_utf8", "not_csv"),
    ),
    Poison(
        name="a zip that would be large",
        code="import gzip; open('submission.csv', 'wb').write(gzip.compress(bytes(10**6)))",
        problems=("not_csv", "compressed", "not_utf8", "binary"),
    ),
    Poison(
        name="numbers that are none",
        code=GOOD.replace("{i}' for", '{[1e999, float("nan"), -1e999][i % 3]}\' for'),
        problems=("not_a_number", "infinite", "nan", "missing_value", "not_finite"),
    ),
    Poison(
        name="numbers with a million digits",
        code="open('submission.csv', 'w').write('id,y\\n' + 'b0,' + '9' * 9_000 + '\\n')",
        problems=("too_large", "infinite", "missing_id", "missing_rows", "not_finite"),
    ),
    Poison(
        name="commands to the terminal as ids and columns",
        code="open('submission.csv', 'w').write('id,y,\\x1b]0;x\\x07\\x9b2J\\u202e\\n' + "
        "''.join(f'\\x1b[2J{i},1,2\\n' for i in range(20)))",
        problems=("extra_column", "not_csv", "ragged_rows"),
    ),
    Poison(
        name="a formula as an id",
        code="open('submission.csv', 'w').write('id,y\\n' + '=cmd|x!A0,1\\n' * 20)",
        problems=("missing_ids",),
    ),
    Poison(
        name="one that another process goes on writing",
        code="import subprocess, time; subprocess.Popen(['bash', '-c', 'for i in $(seq 200); do "
        "rm -f submission.csv; ln -s @secret_file@ submission.csv; ln -f submission.csv x; "
        "mkfifo -m 600 y; mv -f y submission.csv; sleep 0.005; done']); time.sleep(0.3)",
        problems=("is_link", "not_a_file", "no_file", "unreadable"),
        restart=True,
    ),
)

SOLUTIONS = (
    Poison(
        name="a link to the machine's passwords",
        code="import os; os.symlink('/etc/shadow', 'solution.py')",
        problems=("no_solution",),
    ),
    Poison(
        name="a link to the answers",
        code="import os; os.symlink('@secret_file@', 'solution.py')",
        problems=("no_solution",),
    ),
    Poison(
        name="a pipe",
        code="import os; os.mkfifo('solution.py')",
        problems=("no_solution",),
    ),
    Poison(
        name="a folder",
        code="import os; os.mkdir('solution.py')",
        problems=("no_solution",),
    ),
    Poison(
        name="100 MB",
        code="f = open('solution.py', 'wb'); f.truncate(100 * 2**20)",
        problems=("no_solution",),
    ),
    Poison(
        name="another's file by a hard link",
        code="import os\ntry: os.link('@secret_file@', 'solution.py')\nexcept OSError: pass",
        problems=("no_solution",),
        left=without_walls("files", "the code can read it, so it can copy it too")["local"],  # type: ignore[arg-type]
    ),
)
