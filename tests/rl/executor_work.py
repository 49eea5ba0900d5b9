"""Work for the tests of the executor: what does something, hangs, crashes or breaks."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from mle_ideator.errors import SandboxError
from mle_ideator.rl.executor.values import NotFinal

SELF = "tests.rl.executor_work"

_POOL = ThreadPoolExecutor(2)


def echo(argument: bytes, inputs: list[Path]) -> bytes:
    return argument


def add_up(argument: bytes, inputs: list[Path]) -> bytes:
    return b"".join(path.read_bytes() for path in inputs)


def process(argument: bytes, inputs: list[Path]) -> bytes:
    return str(os.getpid()).encode()


def gpus(argument: bytes, inputs: list[Path]) -> bytes:
    time.sleep(float(argument or b"0"))
    return os.environ["CUDA_VISIBLE_DEVICES"].encode()


def timed_sleep(argument: bytes, inputs: list[Path]) -> bytes:
    """When it began and ended, on the clock that all processes of a machine share."""
    began = time.monotonic()
    time.sleep(float(argument))
    return msgspec.json.encode([began, time.monotonic()])


def noted(argument: bytes, inputs: list[Path]) -> bytes:
    """A line in a file when it begins; then it takes a while."""
    file, name, seconds = msgspec.json.decode(argument)
    note(file, f"{name} {os.getpid()}")
    time.sleep(seconds)
    return name.encode()


def note(file: str, line: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def noted_not_final(argument: bytes, inputs: list[Path]) -> bytes:
    return NotFinal(noted(argument, inputs))


def raises(argument: bytes, inputs: list[Path]) -> bytes:
    raise ValueError(argument.decode())


def leaves(argument: bytes, inputs: list[Path]) -> bytes:
    sys.exit(3)


def returns_text(argument: bytes, inputs: list[Path]) -> bytes:
    return "text"  # type: ignore[return-value]


def breaks(argument: bytes, inputs: list[Path]) -> bytes:
    """The sandbox is broken so many times, counted in a file."""
    file, times = msgspec.json.decode(argument)
    note(file, "tried")
    if len(Path(file).read_text().split()) <= times:
        raise SandboxError("the sandbox is gone")
    return b"well"


def exits(argument: bytes, inputs: list[Path]) -> bytes:
    """The process is gone so many times, counted in a file."""
    file, times = msgspec.json.decode(argument)
    note(file, "tried")
    if len(Path(file).read_text().split()) <= times:
        print("my last words")
        os._exit(7)
    return b"well"


def segfaults(argument: bytes, inputs: list[Path]) -> bytes:
    ctypes.string_at(0)
    return b""


def hangs_in_c(argument: bytes, inputs: list[Path]) -> bytes:
    """A loop in C that holds the interpreter's lock, and hears no signal."""
    ctypes.PyDLL(None).sleep(600)
    return b""


def hangs_with_family(argument: bytes, inputs: list[Path]) -> bytes:
    """With a child that left the session, whose parent has ended, and that ignores signals."""
    code = (
        "import os, signal, sys, time\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    subprocess.run([sys.executable, "-S", "-c", code, argument.decode()], check=True)
    time.sleep(600)
    return b""


def keeps_a_pool(argument: bytes, inputs: list[Path]) -> bytes:
    """What sandboxes do: threads that wait for the next work."""
    _POOL.submit(time.sleep, 0.01).result()
    return str(os.getpid()).encode()


def leaves_a_thread(argument: bytes, inputs: list[Path]) -> bytes:
    threading.Thread(target=time.sleep, args=(600,)).start()
    return str(os.getpid()).encode()


def closes_everything(argument: bytes, inputs: list[Path]) -> bytes:
    os.closerange(3, 1024)
    return b""


def leaves_a_file(argument: bytes, inputs: list[Path]) -> bytes:
    descriptor, name = tempfile.mkstemp()
    os.close(descriptor)
    Path(argument.decode()).write_text(name)
    time.sleep(600)
    return b""


def slow_paths(argument: bytes, inputs: list[Path]) -> bytes:
    """Where its only input is, and what."""
    time.sleep(0.5)
    digest = hashlib.sha256(inputs[0].read_bytes()).hexdigest()
    return msgspec.json.encode([str(inputs[0]), digest])
