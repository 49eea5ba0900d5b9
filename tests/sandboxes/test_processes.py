"""Processes that agent code starts: listed, kept or killed, and never in the way."""

from __future__ import annotations

import re
import time

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAEMON = """
import os, time
print('start', flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for d in (0, 1, 2): os.close(d)
        os.execvp('sleep', ['sleep', '612'])
    os._exit(0)
os.wait()
"""


async def sleepers(box, seconds: int) -> int:
    """How many `sleep seconds` run, as agent code sees it."""
    code = (
        "import glob\n"
        "def line(p):\n    try: return open(p).read()\n    except OSError: return ''\n"
        "lines = [line(p).split(chr(0)) for p in glob.glob('/proc/[0-9]*/cmdline')]\n"
        f"print(sum(words[:2] == ['sleep', '{seconds}'] for words in lines))"
    )
    return int((await box.python(code)).text)


@pytest.mark.parametrize(
    "code",
    [
        "sleep 601 &",
        "setsid sleep 601 &",
        "nohup sleep 601 &",
        "(sleep 601 &)",
        "sleep 601 & disown",
    ],
)
async def test_background_of_bash_returns_at_once_and_is_listed(box, code):
    start = time.monotonic()
    execution = await box.bash(f"{code}\nsleep 0.3; echo done")
    assert time.monotonic() - start < 5
    assert "done\n" in execution.text
    assert "still running in the background" in execution.note
    assert "sleep 601" in execution.note
    pids = " ".join(re.findall(r"pid (\d+)", execution.note))
    await box.bash(f"kill -9 {pids}; sleep 0.1")
    assert "still running" not in (await box.python("")).note


async def test_popen_is_listed_and_killed_at_a_timeout(box):
    listed = await box.python("import subprocess; p = subprocess.Popen(['sleep', '602'])")
    assert "sleep 602" in listed.note
    assert (await box.python("import time; time.sleep(9)", timeout_s=0.5)).status == "timeout"
    assert await sleepers(box, 602) == 0


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess; subprocess.Popen(['sleep', '612'])",
        "import subprocess; subprocess.Popen(['sleep', '612'], start_new_session=True)",
        "import os; os.system('setsid sleep 612 &')",
        DAEMON,
        "import multiprocessing as m, time\n"
        "[m.get_context('fork').Process(target=time.sleep, args=(612,)).start() for _ in range(3)]",
        "import os, signal\nfor _ in range(40):\n    if os.fork() == 0:\n"
        "        signal.signal(signal.SIGINT, signal.SIG_IGN); os.setsid()\n"
        "        os.execvp('sleep', ['sleep', '612'])",
    ],
    ids=["popen", "session", "setsid", "daemon", "pool", "forty"],
)
async def test_what_a_stopped_cell_started_is_killed(box, code):
    execution = await box.python(f"{code}\nimport time; time.sleep(600)", timeout_s=1)
    assert execution.status == "timeout"
    assert await sleepers(box, 612) == 0
    assert "still running" not in (await box.python("")).note


async def test_what_was_killed_is_told(box):
    code = "import os, time; os.system('setsid sleep 617 &'); time.sleep(600)"
    execution = await box.python(code, timeout_s=1)
    assert "ended with the cell: pid" in execution.note
    assert "sleep 617" in execution.note


async def test_a_stopped_cell_of_bash_leaves_nothing(box):
    execution = await box.bash("setsid sleep 613 & sleep 613 & sleep 613", timeout_s=0.5)
    assert execution.status == "timeout"
    assert await sleepers(box, 613) == 0


async def test_a_background_job_outlives_the_timeout_of_a_later_cell(box):
    await box.python("kept = 1")
    await box.bash("nohup sleep 614 > job.log 2>&1 &")
    execution = await box.python("import time; time.sleep(9)", timeout_s=0.5)
    assert "variables are kept" in execution.note
    assert "still running in the background" in execution.note
    assert "sleep 614" in execution.note
    assert await sleepers(box, 614) == 1
    await box.bash("kill $(pgrep -x sleep -a | grep 614 | cut -d' ' -f1)")


async def test_the_death_of_the_kernel_ends_background_jobs(box):
    await box.bash("setsid sleep 615 &")
    assert (await box.python("import os; os._exit(1)")).status == "died"
    assert await sleepers(box, 615) == 0


async def test_workers_of_libraries_work(box):
    code = """
from concurrent.futures import ProcessPoolExecutor
from joblib import Parallel, delayed
print(Parallel(n_jobs=2)(delayed(abs)(-i) for i in range(4)))
with ProcessPoolExecutor(2) as pool:
    print(list(pool.map(abs, [-5, 6])))
"""
    execution = await box.python(code, timeout_s=60)
    assert execution.text.endswith("[0, 1, 2, 3]\n[5, 6]\n")
    await box.python("from joblib.externals.loky import get_reusable_executor as e; e().shutdown()")


async def test_zombies_are_not_listed(box):
    execution = await box.python(
        "import subprocess, time; p = subprocess.Popen('true'); time.sleep(.2)"
    )
    assert execution.note == ""


async def test_long_lists_are_cut(box):
    code = "import subprocess\nps = [subprocess.Popen(['sleep', '616']) for _ in range(9)]"
    execution = await box.python(code)
    assert execution.note.count("sleep 616") == 5
    assert "and 4 more" in execution.note
    await box.python("[p.kill() for p in ps]; [p.wait() for p in ps]")


@pytest.mark.parametrize("name", ["resource_tracker", "python -I -S /x/client.py y.py"])
async def test_no_name_hides_a_process(box, name):
    execution = await box.bash(f"(exec -a '{name}' sleep 618) & echo $! > pid; sleep 0.2")
    assert name.split(maxsplit=1)[0] in execution.note
    await box.bash("kill -9 $(cat pid); rm pid")
    code = f"(exec -a '{name}' sleep 619) & wait"
    execution = await box.bash(code, timeout_s=1)
    assert execution.status == "timeout"
    code = "import glob\nprint(sum(b'619' in open(p, 'rb').read() for p in %s))"
    listed = (
        "glob.glob('/proc/[0-9]*/cmdline') if p.split('/')[2] != str(__import__('os').getpid())"
    )
    found = await box.python(code % f"[p for p in {listed}]")
    assert found.text == "0\n"


TRACKERS = """
from multiprocessing import resource_tracker
from joblib.externals.loky.backend import resource_tracker as lokys
for module in (resource_tracker, lokys):
    module._resource_tracker.ensure_running()
pids = [module._resource_tracker._pid for module in (resource_tracker, lokys)]
"""


async def test_pythons_own_helpers_are_not_told_and_live_on(box):
    assert (await box.python(TRACKERS)).note == ""
    stopped = await box.python("import time; time.sleep(9)", timeout_s=0.5)
    assert "variables are kept" in stopped.note
    assert "ended with the cell" not in stopped.note
    alive = "import os; print(*[open(f'/proc/{p}/stat').read().split()[2] for p in pids])"
    assert set((await box.python(alive)).text.split()) <= {"S", "R"}


async def test_a_warm_run_is_told_once(box):
    (box.workspace / "long.py").write_text("import time; time.sleep(60)")
    execution = await box.bash("python long.py now & echo $! > pid; sleep 0.7")
    assert execution.note.count("long.py now") == 1, execution.note
    execution = await box.bash("python long.py too & wait", timeout_s=1)
    assert execution.note.count("long.py too") == 1, execution.note
    await box.bash("kill $(cat pid); sleep 0.1; rm long.py pid")
