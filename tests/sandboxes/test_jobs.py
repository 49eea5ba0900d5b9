"""Background jobs outlive cell and kernel, not the session."""

from __future__ import annotations

import asyncio
import re

import pytest

from mle_ideator.sandboxes.environment import MARK
from mle_ideator.sandboxes.processes import marked
from mle_ideator.types import Execute

pytestmark = pytest.mark.asyncio(loop_scope="module")

TRAIN = """cat > train.py <<'X'
import sys, time
print('warm' if 'lightgbm' in sys.modules else 'cold', flush=True)
for epoch in range(int(sys.argv[1])):
    print('epoch', epoch, flush=True)
    time.sleep(0.2)
print('trained')
X
"""


async def start(box, command: str) -> int:
    execution = await box.bash(f"job start {command}")
    found = re.fullmatch(r"job (\d+) started; its output goes to (\S+)\n", execution.text)
    assert found, execution.text
    return int(found[1])


async def is_running(box, number: int) -> bool:
    listed = (await box.bash("job list")).text
    line = next(line for line in listed.splitlines() if line.startswith(f"job {number}: "))
    return ": running for " in line


async def test_a_job_is_started_looked_at_waited_for(box):
    number = await start(box, "bash -c 'echo begin; sleep 4; echo end; exit 3'")
    assert await is_running(box, number)
    seen = await box.bash(f"job tail {number}")
    assert seen.text.splitlines()[1:] == ["begin"]
    late = await box.bash(f"job wait {number} 0.1")
    assert "still runs" in late.text
    assert "exit code 124" in late.note
    ended = await box.bash(f"job wait {number} 30")
    assert re.search(r"ended after \d\.\d s with exit code 3: bash -c", ended.text)
    assert "exit code 3" in ended.note
    assert (await box.bash(f"job tail {number} 1")).text.splitlines()[1:] == ["end"]
    assert not await is_running(box, number)


async def test_the_next_cell_is_told_that_a_job_has_ended(box):
    number = await start(box, "sleep 0.2")
    await asyncio.sleep(0.6)
    assert f"background job {number} ended with exit code 0" in (await box.python("1")).note
    assert "background job" not in (await box.python("1")).note


async def test_jobs_can_be_had_from_python_cells(box):
    execution = await box.python("!job start echo hallo")
    number = re.search(r"job (\d+) started", execution.text)[1]
    waited = await box.python(f"!job wait {number}\n!job tail {number}")
    assert waited.text.splitlines()[-1] == "hallo"


async def test_a_job_may_be_a_line_of_the_shell(box):
    number = await start(box, "'cd /; pwd && echo $((1 + 1)) | cat; yes | head -1'")
    waited = await box.bash(f"job wait {number}; job tail {number}")
    assert waited.text.splitlines()[2:] == ["/", "2", "y"]


async def test_a_job_has_folder_and_environment_of_its_start(box):
    execution = await box.bash("mkdir -p d; cd d; X='a b' job start bash -c 'pwd; echo $X; cat'")
    number = re.search(r"job (\d+) started", execution.text)[1]
    waited = await box.bash(f"job wait {number}; job tail {number}")
    folder, variable = waited.text.splitlines()[2:]
    assert folder.endswith("/d")
    assert variable == "a b"


@pytest.mark.parametrize("ending", ["timeout", "deaf", "death"])
async def test_a_job_outlives_what_happens_to_cells(box, ending):
    await box.bash(TRAIN)
    number = await start(box, "python train.py 30")
    if ending == "timeout":
        assert (await box.bash("sleep 60", 1)).status == "timeout"
    elif ending == "deaf":
        deaf = (
            "import signal, time\nsignal.signal(2, lambda *a: 0)\nfor i in range(99): time.sleep(1)"
        )
        assert (await box.python(deaf, 1)).status == "timeout"
    else:
        assert (await box.python("import os; os._exit(1)")).status == "died"
    assert await is_running(box, number)
    waited = await box.bash(f"job wait {number} 60; job tail {number} 1")
    assert waited.text.splitlines()[-1] == "trained", waited
    await box.bash("rm train.py")


async def test_a_job_that_kills_every_kernel_is_ended_with_the_third(box):
    await box.bash(
        "echo 'while :; do kill -9 $(cat pid) 2>/dev/null; sleep 0.05; done' > hunt.sh\n"
        "job start bash hunt.sh"
    )
    victim = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(10)"
    for _ in range(2):
        assert "kernel after kernel died" not in (await box.python(victim)).note
    execution = await box.python(victim)
    assert execution.status == "died"
    assert "kernel after kernel died" in execution.note
    assert (await box.python("import time; time.sleep(0.5); print(1)")).text == "1\n"
    await box.bash("rm hunt.sh pid")


@pytest.mark.parametrize(
    "command",
    [
        "python train.py 300",
        "bash -c 'python train.py 300; true'",
        "bash -c 'setsid sleep 631 & sleep 631'",
        "bash -c 'trap \"\" TERM; sleep 631; sleep 631'",
    ],
)
async def test_a_job_is_killed_with_what_it_has_started(box, command):
    await box.bash(TRAIN)
    number = await start(box, command)
    await asyncio.sleep(0.7)
    killed = await box.bash(f"job kill {number}")
    assert f"job {number}: ended after" in killed.text
    assert "still running" not in (await box.bash("sleep 0.2")).note
    await box.bash("rm train.py")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("", 2, "job start COMMAND"),
        ("--help", 0, "job start COMMAND"),
        ("begin x", 2, "`job begin x` is not understood"),
        ("start", 2, "not understood"),
        ("tail", 2, "not understood"),
        ("tail x", 2, "a number is needed in place of 'x'"),
        ("tail 99999", 1, "there is no job 99999; known are: "),
        ("wait 1 soon", 2, "seconds are needed in place of 'soon'"),
        ("kill -1", 2, "a number is needed in place of '-1'"),
        ("kill 99999999999999999999", 2, "a number is needed"),
    ],
)
async def test_wrong_use_is_told_clearly(box, words, code, said):
    execution = await box.bash(f"job {words} 2>&1; echo $?")
    assert said in execution.text
    assert execution.text.splitlines()[-1] == str(code)
    assert "Traceback" not in execution.text


async def test_a_command_that_is_not_there(box):
    number = await start(box, "no-such-program")
    waited = await box.bash(f"job wait {number}; job tail {number}")
    assert "with exit code 127" in waited.text
    assert "No such file" in waited.text


async def test_no_file_of_an_earlier_job_or_of_the_agent_is_overwritten(box):
    number = await start(box, "true")
    await box.bash(f"cd ~/jobs; echo mine > {number + 1}.log; ln -s mine {number + 2}.log")
    assert await start(box, "echo theirs") == number + 3
    assert (await box.bash(f"cat ~/jobs/{number + 1}.log; ls ~/jobs/mine")).text.startswith(
        "mine\n"
    )


@pytest.mark.parametrize("closed", ["ln -s /nowhere/at/all ~/jobs", "echo > ~/jobs"])
async def test_without_a_place_for_its_output_no_job_starts(box, closed):
    execution = await box.bash(f"mv ~/jobs ~/kept 2> /dev/null; {closed}; job start echo 1 2>&1")
    assert "job: no file for its output" in execution.text
    await box.bash("rm ~/jobs; mv ~/kept ~/jobs")
    await start(box, "true")


MANY = """
import json, os, socket
def ask(**request):
    keeper = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    keeper.connect(os.environ['MLE_IDEATOR_KEEPER'])
    keeper.send(json.dumps(request).encode())
    return json.loads(keeper.recv(200_000))
def start():
    return ask(do='start', command=['sleep', '641'], cwd='/', environment=dict(os.environ))
started = [start() for _ in range(101)]
print(len([job for job in started if 'job' in job]), started[-1], len(ask(do='list')) >= 100)
for job in started[:-1]:
    ask(do='kill', job=job['job'], signal=9)
"""


async def test_there_is_a_limit_for_running_jobs(box):
    assert (await box.python(MANY)).text == "100 {'refused': '100 jobs are running'} True\n"


async def test_jobs_end_with_the_session(factory, make_request):
    async with factory(make_request()) as sandbox:
        code = f"{TRAIN} job start python train.py 999; job start bash -c 'setsid sleep 651 & exit'"
        await sandbox.execute(Execute("bash", code), 30)
        code = f"sleep 0.5; echo ${MARK}"
        mark = (await sandbox.execute(Execute("bash", code), 30)).text.strip()
        assert len(marked(mark)) >= 4
    assert marked(mark) == []
