"""Cells that write too much, too fast, or what is no text."""

from __future__ import annotations

from tests.sandboxes.hostile.table import Cell, Seen

_CUT = Seen(status=("ok", "timeout", "limit"), text=("characters left out",))

CELLS = (
    Cell(
        name="10 GB of output",
        language="bash",
        code="head -c 10G /dev/zero | tr '\\0' x",
        limit_s=1,
        seen=_CUT,
    ),
    Cell(
        name="10 GB of output from Python",
        code="import os\nfor _ in range(10_000): os.write(1, b'x' * 999_999 + b'\\n')",
        limit_s=3,
        seen=_CUT,
        slow=True,
    ),
    Cell(
        name="output without newlines",
        code="print('x' * 50_000_000, end='')",
        seen=Seen(text=("^xxx", "characters left out", "xxx$")),
    ),
    Cell(
        name="nothing but carriage returns",
        slow=True,
        language="bash",
        code="head -c 30M /dev/zero | tr '\\0' '\\r'; echo; echo end",
        seen=Seen(text=("^end",)),
    ),
    Cell(
        name="progress bars without end",
        slow=True,
        code="while True: print('x' * 100, end='\\r')",
        limit_s=1,
        seen=Seen(status=("timeout",)),
    ),
    Cell(
        name="binary rubbish",
        language="bash",
        code="head -c 5M /dev/urandom; echo; echo end",
        seen=Seen(text=("^end",), never=("\x1b", "\x00", "\x07")),
    ),
    Cell(
        name="commands to the terminal",
        language="bash",
        code=r"printf '\e]0;title\a\e[2J\e[9999;1H\e]52;c;eA==\a\eP+q\e\\\x9b2J\x0eend\n'",
        seen=Seen(text=("end",), never=("\x1b", "\x07", "\x9b")),
    ),
    Cell(
        name="escape codes that never end",
        slow=True,
        code="print('\\x1b[' + '1;' * 5_000_000); print('\\x1b]0;' + 'x' * 5_000_000)",
        seen=Seen(status=("ok",)),
        then=(Cell(name="the next", code="print('next')", seen=Seen(text=("next",))),),
    ),
    Cell(
        name="half a character, then nothing",
        code="import os; os.write(1, b'start\\n\\xf0\\x9f')",
        seen=Seen(text=("^start",)),
        then=(Cell(name="the next", code="print('next')", seen=Seen(text=("^next",))),),
    ),
    Cell(
        name="floods from many processes",
        language="bash",
        code="for i in 1 2 3 4 5 6; do yes $i & yes $i >&2 & done; wait",
        limit_s=1,
        seen=Seen(status=("timeout",), text=("characters left out",)),
    ),
    Cell(
        name="a flood between the cells",
        language="bash",
        code="echo started; for i in 1 2 3; do (trap '' INT TERM; exec setsid yes flood) & done",
        settle_s=0.5,
        seen=Seen(text=("started",)),
        then=(
            Cell(
                name="a silent cell within it",
                code="import time; time.sleep(60)",
                limit_s=0.5,
                seen=Seen(status=("timeout",)),
            ),
        ),
        restart=True,
    ),
    Cell(
        name="takes the pipe's other end",
        slow=True,
        code="""
import fcntl, os
fcntl.fcntl(1, 1031, 4096)
for how in (os.O_RDONLY | os.O_NONBLOCK, os.O_RDWR | os.O_NONBLOCK):
    try:
        taken = os.open('/proc/self/fd/1', how)
        print('before')
        print('took', os.read(taken, 10_000))
        fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        print(error)
""",
        seen=Seen(status=("ok", "error")),
        restart=True,
    ),
    Cell(
        name="a pipe that nobody empties any more",
        slow=True,
        code="""
import os, signal, threading
taken = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)
os.set_blocking(1, False)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
print('x' * 1_000_000)
print('end')
""",
        seen=Seen(status=("ok", "error", "died")),
        restart=True,
    ),
    Cell(
        name="streams replaced by what fails",
        code="""
import sys
class Odd:
    def __getattr__(self, name): raise MemoryError(name)
sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = sys.stdin = Odd()
""",
        limit_s=2,
        seen=Seen(status=("ok", "error")),
    ),
    Cell(
        name="streams replaced by nothing",
        code="import sys; sys.stdout = sys.stderr = None; 5",
        limit_s=2,
        seen=Seen(status=("ok", "error")),
    ),
    Cell(
        name="streams that were deleted and detached",
        slow=True,
        code="import sys; sys.stdout.detach(); del sys.stdout, sys.stderr",
        limit_s=2,
        seen=Seen(status=("ok", "error")),
    ),
    Cell(
        name="a stream that hangs",
        slow=True,
        code="""
import sys, time
class Odd:
    encoding = 'utf-8'
    closed = False
    def write(self, text): time.sleep(600)
    def flush(self): time.sleep(600)
sys.stdout = sys.stderr = Odd()
print('x')
""",
        limit_s=0.6,
        seen=Seen(status=("timeout",)),
    ),
    Cell(
        name="closes all descriptors",
        code="import os; os.closerange(0, 1000)",
        seen=Seen(status=("died", "ok", "error")),
        restart=True,
    ),
    Cell(
        name="closes the kernel's sockets",
        code="import os; print('here', flush=True); os.closerange(3, 4096)",
        seen=Seen(status=("died",), text=("here",)),
    ),
)
