"""An IPython kernel that writes everything to one pipe: a fork of the keeper.

What differs from ipykernel:

- Prints, displays, results, tracebacks and the output of subprocesses are all written to file
  descriptor 1 at once. So they keep their true order, nothing is lost in a message queue or when
  the process dies, and a flood slows its writer down instead of filling memory.
- A request with `{"language": "bash"}` in its metadata is run by bash.
- `input()` says that nobody can answer; `exit()` ends the cell, not the kernel.
"""

from __future__ import annotations

import asyncio
import atexit
import builtins
import html
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.modules.setdefault("debugpy", None)  # type: ignore[arg-type]  # half a second, for nobody
import ipykernel.debugger  # it looks for debugpy once

if sys.modules["debugpy"] is None:
    del sys.modules["debugpy"]
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQDisplayPublisher, ZMQInteractiveShell
from IPython.core.displayhook import DisplayHook
from traitlets.config import Config

from . import preloading

_SETTINGS: dict[str, Any] = {
    "IPKernelApp": {"log_level": 50},
    "InteractiveShellApp": {"exec_PYTHONSTARTUP": False},
    "InteractiveShell": {"colors": "nocolor", "cache_size": 0},
    "HistoryManager": {"enabled": False},
    "IPythonKernel": {"_execute_sleep": 0.0},
}
_MOST_FRAMES = 10
_LONGEST_ITEM = 4000
_NOBODY = (
    "Nobody can answer: the code runs unattended, with an empty standard input. "
    "Set the value in the code instead."
)


class PipeWriter(io.FileIO):
    """Writes at once and in full, even where a child process made the pipe non-blocking."""

    def write(self, data: Any) -> int:
        written = super().write(data)
        return written if written == len(data) else self._write_rest(data, written or 0)

    def _write_rest(self, data: Any, done: int) -> int:
        os.set_blocking(self.fileno(), True)
        view = memoryview(data)
        while done < len(view):
            done += super().write(view[done:]) or 0
        return done


def text_stream(descriptor: int) -> io.TextIOWrapper:
    raw = PipeWriter(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


class Streams:
    """The kernel's output, put back before each cell if the last one closed or redirected it."""

    def __init__(self) -> None:
        self._kept = os.dup(1)
        self._connect()

    def restore(self) -> None:
        os.set_blocking(self._kept, True)
        for descriptor in (1, 2):
            if not self._is_ours(descriptor):
                os.dup2(self._kept, descriptor)
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:  # closed, removed, or whatever agent code has put there
            self._connect()

    def _connect(self) -> None:
        sys.stdout = sys.__stdout__ = text_stream(1)  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = text_stream(2)  # type: ignore[misc]

    def _is_ours(self, descriptor: int) -> bool:
        try:
            return os.path.sameopenfile(descriptor, self._kept)
        except OSError:
            return False


def shortened(text: str) -> str:
    if len(text) <= _LONGEST_ITEM:
        return text
    half = _LONGEST_ITEM // 2
    cut = len(text) - 2 * half
    return f"{text[:half]}\n[... {cut:,} characters left out ...]\n{text[-half:]}"


def as_text(data: dict[str, Any]) -> str:
    """A rich output for a reader of plain text."""
    plain = str(data.get("text/plain", ""))
    if any(kind.startswith("image/") for kind in data):
        return f"[image] {plain}".rstrip()
    if plain.startswith("<IPython.core.display"):
        if "text/markdown" in data:
            return str(data["text/markdown"])
        if "text/html" in data:
            return html.unescape(re.sub(r"<[^>]*>", " ", str(data["text/html"]))).strip()
    return plain


class TextDisplay(ZMQDisplayPublisher):
    """`display(...)` as text."""

    def publish(self, data: dict[str, Any], *_: Any, **__: Any) -> None:
        print(as_text(data))

    def clear_output(self, wait: bool = False) -> None:
        """Text that was written stays."""


class TextResult(DisplayHook):
    """The value of a cell's last expression as text."""

    session: Any = None
    pub_socket: Any = None
    topic: Any = None
    msg: Any = None
    parent_header: Any = None

    def set_parent(self, parent: Any) -> None:
        """Part of ipykernel's display hook; output is not matched to requests here."""

    def write_output_prompt(self) -> None:
        """No `Out[1]:`."""

    def write_format_data(self, format_dict: dict[str, Any], *_: Any, **__: Any) -> None:
        print(as_text(format_dict))


class TextShell(ZMQInteractiveShell):
    """IPython, writing text."""

    displayhook_class = TextResult  # type: ignore[assignment]
    display_pub_class = TextDisplay

    def _showtraceback(self, etype: type[BaseException], evalue: Any, stb: list[str]) -> None:
        stb = [item for item in stb if f"File {__file__}" not in item]
        if len(stb) > _MOST_FRAMES:
            cut = len(stb) - _MOST_FRAMES
            stb = [*stb[:4], f"[... {cut} frames left out ...]", *stb[4 - _MOST_FRAMES :]]
        print("\n".join(shortened(item) for item in stb))
        self._last_traceback: list[str] = []

    def showtraceback(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        value = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if isinstance(value, SystemExit):
            print(f"SystemExit: {'' if value.code is None else value.code}".rstrip(" :"))
        else:
            super().showtraceback(exc_tuple, *args, **kwargs)

    def init_environment(self) -> None:
        """The environment is the sandbox's: colours, which ipykernel asks for, stay off."""

    def ask_exit(self) -> None:
        """`exit()` and `quit()`: end the cell; the kernel goes on."""
        raise SystemExit

    def system_piped(self, cmd: str) -> None:
        """`!command`, with its output in the pipe like everything else."""
        self.user_ns["_exit_code"] = subprocess.call(
            ["bash", "-c", self.var_expand(cmd, depth=1)], stdin=subprocess.DEVNULL
        )

    system = system_piped


class SandboxKernel(IPythonKernel):
    """Runs Python and bash cells; replies tell only how a cell ended."""

    shell_class = TextShell

    folder: Path
    workspace: str
    streams: Streams

    def __init__(self, **settings: Any) -> None:
        # For a debugger it lists every module's file, which copies pages of all that is shared.
        module = vars(ipykernel.ipkernel)
        module["sys"] = SimpleNamespace(modules={})
        try:
            super().__init__(**settings)
        finally:
            module["sys"] = sys

    async def do_execute(
        self, code: str, silent: bool, *args: Any, cell_meta: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        self.streams.restore()
        # With any handler of its own, the loop wakes at every signal, so an interrupt gets through.
        asyncio.get_running_loop().add_signal_handler(signal.SIGURG, lambda: None)
        try:
            if (cell_meta or {}).get("language") == "bash":
                return self._bash(code)
            return _short(await super().do_execute(code, silent, *args, **kwargs))
        except (KeyboardInterrupt, asyncio.CancelledError):  # the latter in an awaiting cell
            print("KeyboardInterrupt")
            return {"status": "error"}
        except BaseException:  # of an error, say, that can not be put in words
            return {"status": "error"}
        finally:
            # An interrupt that comes now would break off the reply. The next request allows them.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.streams.restore()  # ipykernel flushes them, and sends no reply if that fails

    def finish_metadata(self, parent: Any, metadata: Any, reply_content: Any) -> Any:
        """Nobody reads it, and ipykernel's looks for error names, which replies do not have."""
        return metadata

    def raw_input(self, prompt: object = "") -> str:
        print(prompt, end="")
        raise EOFError(_NOBODY)

    def getpass(self, prompt: str = "", *_: Any, **__: Any) -> str:
        return self.raw_input(prompt)

    def _bash(self, code: str) -> dict[str, Any]:
        """From a file, so that code may be of any length. Only bash itself is waited for."""
        script = self.folder / "cell.sh"
        try:
            script.write_text(code, encoding="utf-8", errors="replace")
            process = subprocess.Popen(
                ["bash", str(script)],
                stdin=subprocess.DEVNULL,
                stdout=1,
                stderr=2,
                cwd=self.workspace,
                process_group=0,
            )
        except OSError as error:
            print(f"bash could not be started: {error}")
            return {"status": "error"}
        return _exit_reply(_wait(process))


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except KeyboardInterrupt:
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            os.killpg(process.pid, how)
            try:
                process.wait(0.3)
            except subprocess.TimeoutExpired:
                continue
            break
        raise


def _exit_reply(code: int) -> dict[str, Any]:
    return {"status": "error" if code else "ok", "exit_code": code}


def _short(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply without the error, which was written; `sys.exit(0)` is a good end."""
    name, value = reply.get("ename", ""), str(reply.get("evalue", ""))
    good = reply["status"] == "ok" or (name == "SystemExit" and value in ("", "None", "0"))
    return {"status": "ok" if good else "error"}


class SandboxApp(IPKernelApp):
    """ipykernel's application with the pipe in place of message streams, started in two steps.

    `prepare` makes all that needs no socket and no thread, before the fork; `serve` the rest.
    """

    kernel_class = SandboxKernel
    default_extensions: list[str] = []  # noqa: RUF012 a trait there

    def prepare(self) -> None:
        super(IPKernelApp, self).initialize([])
        self.init_blackhole()
        shell = TextShell.instance(config=self.config, profile_dir=self.profile_dir)
        shell.run_cell("pass", store_history=False, silent=True)  # loads what cells need
        atexit.unregister(shell.atexit_operations)

    def serve(self, connection: dict[str, Any]) -> None:
        """`connection` has the fields of a Jupyter connection file."""
        for name, value in connection.items():
            if name.endswith("_port") or name in ("transport", "ip"):
                setattr(self, name, value)
        self.session.key = connection["key"].encode()
        self.init_sockets()
        SandboxKernel.streams = Streams()
        self.displayhook = SimpleNamespace()
        self.init_signal()
        self.init_kernel()
        TextShell.instance().parent = TextShell.instance().kernel = self.kernel
        self.init_shell()
        self.start()

    def init_heartbeat(self) -> None:
        """Nobody listens: the keeper reports an end."""

    def init_crash_handler(self) -> None:
        """What goes wrong is written and ends the kernel."""


class Prepared:
    """A kernel up to the fork, kept apart from the process that it was made in.

    What libraries look at to know whether they run in a notebook is as before until `run`.
    """

    def __init__(self) -> None:
        names, main = set(vars(builtins)), sys.modules["__main__"]
        with tempfile.TemporaryDirectory() as folder:
            settings = {**_SETTINGS, "BaseIPythonApplication": {"ipython_dir": folder}}
            self._app = SandboxApp.instance(config=Config(settings))
            self._app.prepare()
        self._shell = TextShell.instance()
        self._builtins = {name: vars(builtins).pop(name) for name in set(vars(builtins)) - names}
        sys.modules["__main__"] = main
        SandboxApp.clear_instance()
        TextShell.clear_instance()

    def run(self, connection: dict[str, Any], folder: str, workspace: str) -> int:
        """In a fork: serve cells until it is ended. `folder` is the kernel's own."""
        vars(builtins).update(self._builtins)
        sys.modules["__main__"] = self._shell.user_module
        for made in (self._app, self._shell):
            for kind in type(made)._walk_mro():
                setattr(kind, "_instance", made)  # noqa: B010 each has a type of its own
        SandboxKernel.folder, SandboxKernel.workspace = Path(folder), workspace
        warnings.filterwarnings("ignore", message="To exit: use 'exit'")
        sys.path.insert(0, workspace)  # as for a script there
        preloading.make_room(workspace)
        self._app.serve(connection)
        return 0
