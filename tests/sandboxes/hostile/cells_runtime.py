"""Cells that turn on the kernel, its keeper, and the next cell."""

from __future__ import annotations

from tests.sandboxes.hostile.table import Cell, Seen, without_walls

_FOLDER = "get_ipython().kernel.folder"
_ANY = Seen(status=("ok", "error", "died"))
_CLIENT = """
import json, pathlib, sys, threading, time
from jupyter_client.blocking import BlockingKernelClient
from ipykernel.connect import get_connection_file
client = BlockingKernelClient(connection_file=get_connection_file())
client.load_connection_file()
"""

BUILTINS = (
    Cell(
        name="builtins replaced by what fails",
        code="""
import builtins
def fails(*_, **__): raise SystemExit('no')
for name in ('print', 'open', 'len', 'isinstance', 'repr', 'str', 'compile', 'exec', 'getattr'):
    setattr(builtins, name, fails)
builtins.__import__ = fails
""",
        limit_s=1,
        seen=Seen(status=("ok", "error", "died", "timeout")),
        then=(
            Cell(
                name="the next ends as well",
                code="1",
                limit_s=1,
                seen=Seen(status=("ok", "error", "died", "timeout")),
            ),
        ),
        restart=True,
    ),
    Cell(
        name="exceptions replaced",
        slow=True,
        code="""
import builtins
class Exception(BaseException): pass
for name in ('Exception', 'KeyboardInterrupt', 'BaseException', 'OSError', 'SystemExit'):
    setattr(builtins, name, Exception)
1 / 0
""",
        limit_s=3,
        seen=Seen(status=("error", "died", "timeout")),
        restart=True,
    ),
    Cell(
        name="modules taken away",
        code="""
import sys
for name in list(sys.modules):
    if name not in ('sys', 'builtins', '__main__'): del sys.modules[name]
sys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear()
""",
        limit_s=1,
        seen=Seen(status=("ok", "error", "died", "timeout")),
        restart=True,
    ),
    Cell(
        name="modules of the kernel replaced",
        slow=True,
        code="""
import asyncio, os, signal, subprocess, sys, threading, time
subprocess.Popen = os.fork = time.sleep = threading.Thread = signal.signal = None
asyncio.get_running_loop = asyncio.wait_for = None
os.dup2 = os.write = os.close = None
""",
        limit_s=1,
        seen=Seen(status=("ok", "error", "died", "timeout")),
        restart=True,
    ),
    Cell(
        name="traces and profiles every call",
        code="""
import sys, threading
def trace(*_): raise RuntimeError('traced')
threading.settrace(trace); threading.setprofile(trace)
sys.setprofile(trace); sys.settrace(trace)
""",
        limit_s=1,
        seen=Seen(status=("ok", "error", "died", "timeout")),
        restart=True,
    ),
    Cell(
        name="garbage collection that fails",
        slow=True,
        code="""
import gc
def callback(*_): raise SystemExit
gc.callbacks.append(callback); gc.set_threshold(1, 1, 1); gc.set_debug(gc.DEBUG_SAVEALL)
[[] for _ in range(1000)]
print('done')
""",
        limit_s=3,
        seen=Seen(status=("ok", "error", "timeout")),
        restart=True,
    ),
    Cell(
        name="hooks for errors and audits",
        code="""
import os, sys, threading
def hook(*_): raise SystemExit
sys.excepthook = sys.unraisablehook = threading.excepthook = sys.displayhook = hook
sys.addaudithook(lambda name, _: os._exit(5) if name.startswith('subprocess') else None)
get_ipython().set_custom_exc((BaseException,), hook)
get_ipython().events.register('post_execute', hook)
get_ipython().input_transformers_cleanup.append(hook)
1
""",
        seen=_ANY,
        then=(Cell(name="the next", code="1 / 0", seen=_ANY),),
        restart=True,
    ),
)

KERNEL = (
    Cell(
        name="closes the kernel's shell socket",
        code="get_ipython().kernel.shell_stream.socket.close(); import time; time.sleep(600)",
        limit_s=5,
        seen=Seen(status=("died",), note=("closed its connection",)),
    ),
    Cell(
        name="closes every socket of the kernel's context",
        slow=True,
        code="import zmq; zmq.Context.instance().destroy(0); import time; time.sleep(600)",
        limit_s=1,
        seen=Seen(status=("died", "timeout")),
    ),
    Cell(
        name="removes the kernel's sockets and files",
        code=f"import shutil; shutil.rmtree({_FOLDER}, ignore_errors=True); print('gone')",
        seen=Seen(status=("ok",), text=("gone",)),
        restart=True,
    ),
    Cell(
        name="puts sockets of its own in their place",
        slow=True,
        code=f"""
import os, socket
folder = str({_FOLDER})
kept = []
for name in os.listdir(folder):
    path = os.path.join(folder, name)
    if os.path.isfile(path) or os.path.isdir(path): continue
    os.unlink(path)
    kept.append(socket.socket(socket.AF_UNIX)); kept[-1].bind(path); kept[-1].listen()
print('done')
""",
        seen=Seen(text=("done",)),
        restart=True,
    ),
    Cell(
        name="answers in the kernel's name",
        code="""
kernel = get_ipython().kernel
async def forged(*_, **__): return {'status': 'ok', 'exit_code': 'x', 'payload': [1] * 1000}
type(kernel).do_execute = forged
""",
        seen=_ANY,
        then=(Cell(name="is believed in nothing", code="print(1)", seen=_ANY),),
        restart=True,
    ),
    Cell(
        name="floods the shell socket with answers",
        slow=True,
        code="""
import threading, time
kernel = get_ipython().kernel
socket, ident = kernel.shell_stream.socket, kernel._parent_ident['shell']
def flood():
    while True:
        content = {'status': 'ok', 'x': 'x' * 900_000}
        kernel.session.send(socket, 'execute_reply', content, ident=ident)
threading.Thread(target=flood, daemon=True).start()
time.sleep(600)
""",
        limit_s=3,
        seen=Seen(status=("died", "timeout")),
    ),
    Cell(
        name="asks its own kernel to run, to interrupt and to stop",
        slow=True,
        code=_CLIENT
        + """
client.start_channels(hb=False)
for _ in range(500): client.execute('x = 1', silent=True)
message = client.session.msg('interrupt_request', {}); client.control_channel.send(message)
message = client.session.msg('shutdown_request', {'restart': False})
client.control_channel.send(message)
time.sleep(2)
""",
        limit_s=8,
        seen=Seen(status=("ok", "died", "error")),
        restart=True,
    ),
    Cell(
        name="kernel that claims to be another process",
        code="""
import ctypes, os
ctypes.CDLL(None).prctl(15, b'mle-ideator\\n\\x1b[31m', 0, 0, 0)
os.getpid = os.getppid = lambda: 1
get_ipython().kernel.session.pid = 1
""",
        seen=Seen(),
        restart=True,
    ),
    Cell(
        name="a forged line of the runtime on the reports",
        code="""
import os
for number in range(0, 64):
    try: os.write(number, b'exit 0\\nended 1\\ngone 0\\nready\\n')
    except OSError: pass
""",
        seen=Seen(status=("ok", "error", "died")),
        restart=True,
    ),
)

NEXT_CELL = (
    Cell(
        name="a process that kills each new kernel",
        language="bash",
        code="""
keeper=$(grep PPid /proc/$PPID/status | cut -f2)
setsid bash -c 'trap "" INT TERM HUP
for i in $(seq 20); do for pid in $(cat /proc/'$keeper'/task/*/children); do
  [ $pid != $$ ] && kill -9 $pid; done; sleep 0.05; done' > /dev/null 2>&1 &
sleep 5
""",
        seen=Seen(status=("died",)),
        on=without_walls("other processes", "one wrong id would end another program"),
        then=(
            Cell(
                name="the next",
                code="print('on')",
                seen=Seen(status=("ok", "died")),
                settle_s=1.5,
            ),
        ),
    ),
    Cell(
        name="a process that fills the workspace's names",
        slow=True,
        language="bash",
        code="""
setsid bash -c 'for i in $(seq 60); do rm -rf input/x solution.py; ln -sfn /etc/shadow solution.py
mkdir -p submission.csv; rmdir submission.csv; mkfifo submission.csv; rm -f submission.csv
sleep 0.02; done; rm -f solution.py' > /dev/null 2>&1 &
echo started
""",
        seen=Seen(text=("started",)),
        restart=True,
    ),
    Cell(
        name="variables of the kernel's environment that change programs",
        code="""
import os
os.environ.update(LD_PRELOAD='/workspace/none.so', BASH_ENV='poison.sh', PYTHONHOME='/nowhere',
                  PYTHONPATH='/nowhere', PYTHONSTARTUP='poison.py', ENV='poison.sh',
                  PATH='/nowhere', IFS='x', HOME='/nowhere', TMPDIR='/nowhere')
os.environ['BASH_FUNC_echo%%'] = '() { exit 9; }'
os._exit(4)
""",
        seen=Seen(status=("died",)),
        then=(
            Cell(
                name="are not the next kernel's",
                language="bash",
                code="echo [$LD_PRELOAD$BASH_ENV$PYTHONHOME$PYTHONPATH$ENV] $HOME $PATH",
                seen=Seen(text=(r"^\[\]",), never=("nowhere",)),
            ),
        ),
    ),
)

CELLS = (*BUILTINS, *KERNEL, *NEXT_CELL)
