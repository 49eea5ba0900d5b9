"""How cells end: they die, hang, exit, ignore signals. The next cell always works."""

from __future__ import annotations

import asyncio
import time

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os; os.kill(os.getpid(), 9)", "signal 9, likely memory"),
        ("import os; os._exit(3)", "exit code 3"),
        ("import os; os.abort()", "signal 6"),
        ("import ctypes; ctypes.string_at(0)", "signal 11"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "signal 15"),
        ("import os; os.closerange(3, 4096); print('still here', flush=True); while_ = 1", ""),
    ],
    ids=["kill", "_exit", "abort", "segfault", "term", "closerange"],
)
async def test_dead_kernel_is_told_at_once(box, code, why):
    await box.python("kept = 1; open('kept.txt', 'w').write('on disk')")
    start = time.monotonic()
    execution = await box.python(f"print('before', end='')\n{code}", timeout_s=60)
    assert time.monotonic() - start < 10
    assert execution.status == "died"
    assert execution.text.startswith("before")
    assert "the kernel died" in execution.note
    assert why in execution.note
    after = await box.python("print(open('kept.txt').read(), 'kept' in globals())")
    assert after.text == "on disk False\n"


async def test_kernel_that_closes_its_connection_is_not_waited_for(box):
    code = "print('before')\nget_ipython().kernel.shell_stream.socket.close()\n"
    execution = await box.python(code + "import time; time.sleep(100)", timeout_s=60)
    assert execution.status == "died"
    assert execution.text.startswith("before")
    assert "closed its connection" in execution.note
    assert execution.duration_s < 10


async def test_kernel_that_died_between_cells_is_told_with_the_next(box):
    await box.python("kept = 1; import os; print(os.getpid())")
    await box.bash("(sleep 0.3; kill -9 $PPID) & ")
    await asyncio.sleep(1)
    execution = await box.python("print('ran')")
    assert execution.status == "ok"
    assert execution.text.endswith("ran\n")
    assert "had died since the last cell (signal 9" in execution.note


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit()", "ok"),
        ("exit()", "ok"),
        ("quit()", "ok"),
        ("raise SystemExit(0)", "ok"),
        ("import sys; sys.exit(3)", "error"),
        ("import sys; sys.exit('no data')", "error"),
    ],
)
async def test_exit_ends_the_cell_not_the_kernel(box, code, status):
    await box.python("kept = 5")
    execution = await box.python(f"print('a')\n{code}\nprint('not reached')")
    assert execution.status == status
    assert execution.text.startswith("a\nSystemExit")
    assert "not reached" not in execution.text
    assert (await box.python("kept")).text == "5\n"


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(100)",
        "while True: pass",
        "import asyncio; await asyncio.sleep(100)",
        "import os; os.system('sleep 100')",
        "import subprocess; subprocess.run(['sleep', '100'])",
        "import threading; threading.Event().wait()",
        "try:\n    import time; time.sleep(100)\nexcept KeyboardInterrupt:\n    time.sleep(100)",
        "!sleep 100",
        "input_ = open('/dev/zero', 'rb')\nwhile input_.read(1): pass",
    ],
)
async def test_timeout_interrupts_and_keeps_variables(box, code):
    for _ in range(3):  # a kernel that gets too little processor time may hear of it too late
        await box.python("kept = 7")
        execution = await box.python(f"print('partial', end='')\n{code}", timeout_s=0.6)
        assert execution.status == "timeout"
        assert execution.text.startswith("partial")
        if "variables are kept" in execution.note:
            break
    assert "variables are kept" in execution.note
    assert "Shorten it" in execution.note
    assert "in the background" in execution.note
    after = await box.python("print(kept)")
    assert after.text == "7\n"
    assert "still running" not in after.note


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(100)",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import signal, time\nfor s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, "
        "signal.SIG_IGN)\nwhile True:\n    time.sleep(1)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "10**10**8",
        "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')",
    ],
    ids=["ignores", "swallows", "ignores-term", "stopped", "power", "regex"],
)
async def test_timeout_kills_what_does_not_react(box, code):
    await box.python("kept = 7; open('kept.txt', 'w').write('on disk')")
    execution = await box.python(f"print('partial', flush=True)\n{code}", timeout_s=0.6)
    assert execution.status == "timeout"
    assert execution.text.startswith("partial\n")
    assert "was killed" in execution.note or "variables are kept" in execution.note
    after = await box.python("print(open('kept.txt').read(), 'kept' in globals())")
    assert after.text == f"on disk {'variables are kept' in execution.note}\n"


async def test_timeout_of_bash_keeps_variables_and_partial_output(box):
    await box.python("kept = 8")
    execution = await box.bash("echo partial; sleep 100; echo late", timeout_s=0.6)
    assert execution.status == "timeout"
    assert execution.text.startswith("partial\n")
    assert "late" not in execution.text
    assert (await box.python("kept")).text == "8\n"


async def test_timeout_of_bash_that_ignores_signals(box):
    execution = await box.bash("trap '' INT TERM; echo partial; while :; do :; done", 0.6)
    assert execution.status == "timeout"
    assert execution.text.startswith("partial\n")


async def test_a_late_interrupt_never_hits_the_next_cell(box):
    await box.python("import time; kept = 1")
    for _ in range(15):
        execution = await box.python("time.sleep(0.05)", timeout_s=0.05)
        assert execution.status in ("ok", "timeout")
        after = await box.python("time.sleep(0.02); print(kept)")
        assert (after.status, after.text) == ("ok", "1\n")


async def test_cancelling_interrupts_and_cleans_up(box):
    await box.python("kept = 9")
    code = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    cell = asyncio.create_task(box.python(code))
    await asyncio.sleep(0.5)
    start = time.monotonic()
    cell.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cell
    assert time.monotonic() - start < 5
    after = await box.python("print(kept)")
    assert after.text.endswith("9\n")
    assert "still running" not in after.note


async def test_cancelling_a_cell_that_ignores_it(box):
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    cell = asyncio.create_task(box.python(code))
    await asyncio.sleep(0.5)
    cell.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(cell, 5)


async def test_cells_asked_at_once_run_one_after_the_other(box):
    codes = [f"import time; print('in', {n}); time.sleep(0.1); print('out', {n})" for n in (1, 2)]
    first, second = await asyncio.gather(*map(box.python, codes))
    assert (first.text, second.text) == ("in 1\nout 1\n", "in 2\nout 2\n")


@pytest.mark.parametrize("code", ["", "   \n", "# nothing", "pass"])
async def test_cells_that_do_nothing(box, code):
    for run in (box.python, box.bash):
        if code != "pass":
            execution = await run(code)
            assert (execution.status, execution.text, execution.note) == ("ok", "", "")
