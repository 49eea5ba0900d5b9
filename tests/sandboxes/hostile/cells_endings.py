"""Cells that crash, hang, exit, or do not let themselves be stopped."""

from __future__ import annotations

from tests.sandboxes.hostile.table import Cell, Seen


def _died(why: str) -> Seen:
    return Seen(status=("died",), note=(why,))


_KEPT = Seen(status=("timeout",), note=("variables are kept",))
_STOPPED = Seen(status=("timeout",))
_KILLED = Seen(status=("timeout",), note=("was killed",))

CRASHES = (
    Cell(
        name="reads address 0", code="import ctypes; ctypes.string_at(0)", seen=_died("signal 11")
    ),
    Cell(name="aborts", code="import os; os.abort()", seen=_died("signal 6")),
    Cell(
        name="calls a function at a random address",
        slow=True,
        code="import ctypes; ctypes.CFUNCTYPE(None)(0xDEADBEEF)()",
        seen=_died("signal 11"),
    ),
    Cell(
        name="divides by 0 in compiled code",
        slow=True,
        code="import os, signal; os.kill(os.getpid(), signal.SIGFPE)",
        seen=_died("signal 8"),
    ),
    Cell(
        name="recurses without end",
        slow=True,
        code="def f(): return f() + 1\nf()",
        seen=Seen(status=("error",), text=("RecursionError",)),
    ),
    Cell(
        name="overflows the stack of C",
        code="import sys; sys.setrecursionlimit(10**9)\ndef f(_): return list(map(f, [1]))\nf(1)",
        seen=_died("signal 11"),
    ),
    Cell(
        name="writes over the interpreter's objects",
        code="import ctypes; ctypes.memset(id(None), 0x41, 64)",
        seen=_died("signal (11|6|7)"),
    ),
    Cell(
        name="sends itself every signal",
        code="""
import os, signal
for number in sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}):
    try: signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError): pass
for number in (signal.SIGUSR1, signal.SIGSEGV, signal.SIGKILL):
    os.kill(os.getpid(), number)
""",
        seen=_died("signal 10"),
    ),
)

EXITS = (
    Cell(name="_exit 0", code="import os; print('a'); os._exit(0)", seen=_died("exit code 0")),
    Cell(name="_exit 255", slow=True, code="import os; os._exit(255)", seen=_died("exit code 255")),
    Cell(name="sys.exit", code="import sys; sys.exit(0)", seen=Seen(text=("SystemExit",))),
    Cell(
        name="sys.exit with an object",
        slow=True,
        code="import sys; sys.exit(object())",
        seen=Seen(status=("error",)),
    ),
    Cell(name="quit", code="quit(); print('on')", seen=Seen(never=("^on",))),
    Cell(
        name="quit in a thread and at exit",
        slow=True,
        code="""
import atexit, os, sys, threading
atexit.register(lambda: [None for _ in iter(int, 1)])
threading.Thread(target=sys.exit).start()
threading.Thread(target=quit).start()
print('here')
""",
        seen=Seen(text=("here",)),
        restart=True,
    ),
    Cell(
        name="raises what is no exception of programs",
        code="class Odd(BaseException): pass\nraise Odd('odd')",
        seen=Seen(status=("error",), text=("odd",)),
    ),
    Cell(
        name="raises CancelledError",
        code="import asyncio; raise asyncio.CancelledError",
        seen=Seen(status=("error",)),
    ),
    Cell(
        name="raises GeneratorExit in a coroutine",
        slow=True,
        code="import asyncio\nawait asyncio.sleep(0)\nraise GeneratorExit",
        seen=Seen(status=("error",)),
    ),
    Cell(
        name="stops the kernel's loop",
        code="import asyncio; asyncio.get_running_loop().stop(); print('stopped')",
        seen=Seen(status=("ok", "died"), text=("stopped",)),
        restart=True,
    ),
    Cell(
        name="cancels all tasks of the kernel",
        code="import asyncio\nfor task in asyncio.all_tasks(): task.cancel()",
        seen=Seen(status=("ok", "error", "died")),
        restart=True,
    ),
    Cell(
        name="replaces itself by another program",
        code="import os; os.execv('/bin/sleep', ['sleep', '600'])",
        limit_s=5,
        seen=Seen(status=("died", "timeout")),
    ),
    Cell(
        name="exits in a fork that goes on as a second kernel",
        code="import os\nif os.fork(): os._exit(7)\nprint('child')",
        seen=_died("exit code 7"),
    ),
    Cell(
        name="goes on in a fork and in the kernel",
        slow=True,
        code="import os\npid = os.fork()\nprint('half')",
        seen=Seen(status=("ok", "died"), text=("half",)),
        restart=True,
    ),
    Cell(
        name="dies a moment after the cell",
        code="""
import faulthandler, signal
faulthandler.dump_traceback_later(0.3, exit=True)
signal.setitimer(signal.ITIMER_REAL, 0.4)
""",
        settle_s=0.8,
        then=(
            Cell(
                name="the next",
                code="print('ran')",
                seen=Seen(text=("ran",), note=("had died since the last cell",)),
            ),
        ),
    ),
)

HANGS = (
    Cell(
        name="waits for a lock that it holds",
        code="import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        limit_s=0.6,
        seen=_KEPT,
    ),
    Cell(
        name="reads its own pipe",
        code="import os; reading, writing = os.pipe(); os.read(reading, 1)",
        limit_s=0.6,
        seen=_KEPT,
    ),
    Cell(
        name="two threads wait for each other",
        slow=True,
        code="""
import threading, time
a, b = threading.Lock(), threading.Lock()
def take(first, second):
    with first: time.sleep(0.1); second.acquire()
threads = [threading.Thread(target=take, args=pair) for pair in ((a, b), (b, a))]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
        limit_s=0.6,
        seen=_STOPPED,
        restart=True,
    ),
    Cell(
        name="keeps the interpreter's lock",
        code="import re; re.match(r'(a+)+$', 'a' * 60 + 'b')",
        limit_s=0.6,
        seen=_STOPPED,
        slow=True,
    ),
    Cell(name="a number without end", code="10**10**8", limit_s=0.6, seen=_STOPPED, slow=True),
    Cell(
        name="ignores interrupts",
        slow=True,
        code="import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)",
        limit_s=0.6,
        seen=_KILLED,
    ),
    Cell(
        name="ignores every signal",
        code="""
import signal, time
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True:
    try: time.sleep(1)
    except BaseException: pass
""",
        limit_s=0.6,
        seen=_KILLED,
    ),
    Cell(
        name="blocks every signal",
        code="""
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
time.sleep(600)
""",
        limit_s=0.6,
        seen=_KILLED,
        slow=True,
    ),
    Cell(
        name="swallows every exception",
        code="while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        limit_s=0.6,
        seen=_STOPPED,
        slow=True,
    ),
    Cell(
        name="bash that ignores every signal",
        language="bash",
        code="trap '' HUP INT QUIT TERM PIPE; echo partial; while :; do :; done",
        limit_s=0.6,
        seen=Seen(status=("timeout",), text=("partial",)),
    ),
    Cell(
        name="stops itself",
        code="import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        limit_s=0.6,
        seen=_STOPPED,
    ),
    Cell(
        name="stops its whole group",
        language="bash",
        code="kill -STOP $PPID 0",
        limit_s=0.6,
        seen=_STOPPED,
        slow=True,
    ),
    Cell(
        name="waits within a patched wait",
        code="""
import signal, time
def never(*_, **__):
    while True:
        try: time.sleep(60)
        except BaseException: pass
signal.default_int_handler = never
signal.signal(signal.SIGINT, never)
signal.signal = lambda *_: None
time.sleep(600)
""",
        limit_s=0.6,
        seen=_KILLED,
        slow=True,
    ),
    Cell(
        name="a thread that interrupts the kernel again and again",
        slow=True,
        code="""
import os, signal, threading, time
def interrupt():
    for _ in range(400):
        os.kill(os.getpid(), signal.SIGINT); time.sleep(0.001)
threading.Thread(target=interrupt, daemon=True).start()
time.sleep(0.1)
""",
        seen=Seen(status=("ok", "error")),
        settle_s=1,
    ),
    Cell(
        name="a thread that interrupts the kernel for ever",
        code="""
import os, signal, threading, time
def interrupt():
    while True:
        os.kill(os.getpid(), signal.SIGINT); time.sleep(0.001)
threading.Thread(target=interrupt, daemon=True).start()
while True:
    try: time.sleep(1)
    except BaseException: pass
""",
        limit_s=0.6,
        seen=Seen(status=("timeout", "error")),
        restart=True,
        slow=True,
    ),
    Cell(
        name="waits for terminal input",
        code="input('password: ')",
        seen=Seen(status=("error",), text=("Nobody can answer",)),
    ),
    Cell(
        name="reads the terminal itself",
        language="bash",
        code="read -r -t 5 x < /dev/tty; echo [$x]",
        seen=Seen(text=(r"\[\]",)),
    ),
)

THREADS = (
    Cell(
        name="threads that never end",
        code="""
import threading, time
def forever():
    while True: time.sleep(0.01)
for daemon in (True, False) * 4: threading.Thread(target=forever, daemon=daemon).start()
print(threading.active_count() > 8)
""",
        seen=Seen(text=("True",)),
        restart=True,
    ),
    Cell(
        name="threads that never let go of the processor",
        slow=True,
        code="""
import sys, threading
sys.setswitchinterval(0.001)
def spin():
    while True: pass
for _ in range(4): threading.Thread(target=spin).start()
print('started')
""",
        seen=Seen(text=("started",)),
        restart=True,
    ),
    Cell(
        name="native threads that never end",
        slow=True,
        code="""
import ctypes
libc = ctypes.CDLL(None)
thread = ctypes.c_void_p()
pause = ctypes.cast(libc.pause, ctypes.c_void_p)
print([libc.pthread_create(ctypes.byref(thread), None, pause, None) for _ in range(8)])
""",
        seen=Seen(text=(r"\[0, 0,",)),
        restart=True,
    ),
    Cell(
        name="the main thread ends, another goes on",
        slow=True,
        code="""
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(__import__('platform').machine(), 93), 0)
""",
        limit_s=0.6,
        seen=Seen(status=("timeout", "died")),
    ),
)

OBJECTS = (
    Cell(
        name="a representation without end",
        code="class A:\n    def __repr__(self):\n        while True: pass\nA()",
        limit_s=0.6,
        seen=_STOPPED,
    ),
    Cell(
        name="a representation that is no text, recursive, or ends the kernel",
        slow=True,
        code="""
class A:
    def __repr__(self): return 5
class B:
    def __repr__(self): return repr(self)
class C:
    def _repr_mimebundle_(self, *_, **__): return [(1, 2)], 3
    def _repr_html_(self): raise SystemExit
    def __getattr__(self, name): raise KeyboardInterrupt
for odd in (A(), B(), C()):
    try: display(odd)
    except BaseException as error: print(type(error).__name__)
A()
""",
        seen=Seen(status=("ok", "error")),
    ),
    Cell(
        name="a representation of 200 MB",
        code="class A:\n    def __repr__(self): return 'x' * 200_000_000\nA()",
        limit_s=20,
        seen=Seen(status=("ok", "limit", "died"), text=("characters left out",)),
        slow=True,
    ),
    Cell(
        name="an exception whose text fails",
        code="class A(Exception):\n    def __str__(self): raise ValueError(self)\nraise A",
        limit_s=2,
        seen=Seen(status=("error",)),
    ),
    Cell(
        name="an exception whose text has no end",
        code="class A(Exception):\n    def __str__(self):\n        while True: pass\nraise A",
        limit_s=0.6,
        seen=_STOPPED,
        slow=True,
    ),
    Cell(
        name="an exception whose text ends the kernel",
        code="import os\nclass A(Exception):\n    def __str__(self): os._exit(9)\nraise A",
        seen=_died("exit code 9"),
    ),
    Cell(
        name="an exception that is its own cause, 100 groups deep",
        code="""
error = ValueError('deep')
for _ in range(100): error = ExceptionGroup('group', [error, error])
error.__cause__ = error.__context__ = error
raise error
""",
        limit_s=3,
        seen=Seen(status=("error", "timeout", "died")),
        restart=True,
        slow=True,
    ),
    Cell(
        name="an exception whose class lies about its name",
        slow=True,
        code="""
class Meta(type):
    @property
    def __name__(cls): raise SystemExit
class A(Exception, metaclass=Meta): __module__ = None; __qualname__ = 'x' * 1_000_000
raise A('a')
""",
        seen=Seen(status=("error", "ok")),
    ),
    Cell(
        name="a finaliser without end",
        code="class A:\n    def __del__(self):\n        while True: pass\nA(); print('after')",
        limit_s=0.6,
        seen=_STOPPED,
    ),
)

CELLS = (*CRASHES, *EXITS, *HANGS, *THREADS, *OBJECTS)
