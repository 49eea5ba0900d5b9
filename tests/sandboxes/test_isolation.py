"""What agent code can not get at or change, in every sandbox."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

TRAIN = "id,x,target\n1,0.5,1\n2,0.25,0\n"
ALLOWED = {
    *("PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "COLUMNS", "PWD"),
    "HOSTNAME",  # a container's own
    *("MPLBACKEND", "NO_COLOR", "PAGER", "GIT_PAGER", "TZ", "SHLVL", "_", "OLDPWD"),
    *("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "DEBIAN_FRONTEND"),
}
PREFIXES = (
    *("PYTHON", "GIT_", "PIP_", "OMP_", "GOMP_", "OPENBLAS_", "MKL_", "NUMEXPR_", "LOKY_", "SSH_"),
    *("BLIS_", "NUMBA_", "POLARS_", "RAYON_", "ARROW_", "TF_", "TORCHINDUCTOR_"),
)


@pytest.mark.parametrize(
    "code",
    [
        "import os; print(dict(os.environ))",
        "print(open('/proc/self/environ').read())",
        "import subprocess; print(subprocess.check_output('env', text=True))",
        "import glob\nfor p in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try: t = open(p).read()\n    except OSError: continue\n"
        "    if 'MLE_IDEATOR_SANDBOX' in t: print(t)",
    ],
)
async def test_keys_and_tokens_are_not_passed_on(box, code):
    assert os.environ["OPENAI_API_KEY"] == "sk-planted-1"
    execution = await box.python(code)
    assert execution.status == "ok"
    assert "OMP_NUM_THREADS" in execution.text
    for secret in ("sk-planted", "planted-2", "planted-3", "OPENAI_API_KEY", "MY_TOKEN"):
        assert secret not in execution.text


async def test_the_environment_is_an_allowlist(box):
    names = (await box.python("import os; print(*os.environ)")).text.split()
    extra = {n for n in names if n not in ALLOWED and not n.startswith((*PREFIXES, "NVIDIA_"))}
    extra -= {"MLE_IDEATOR_SANDBOX", "MLE_IDEATOR_KEEPER"}
    assert not extra


async def test_threads_are_limited(box):
    execution = await box.bash("echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS $MKL_NUM_THREADS")
    assert execution.text == "2 2 2\n"


@pytest.mark.parametrize(
    "code",
    [
        "open('input/train.csv', 'w').write('changed')",
        "open('input/train.csv', 'a').write('more')",
        "import os; os.remove('input/train.csv')",
        "import os; os.chmod('input/train.csv', 0o600); open('input/train.csv', 'w').close()",
        "import os; os.rename('input/train.csv', 'input/other.csv')",
        "import shutil; shutil.rmtree('input')",
        "import os; os.rename('input', 'moved')",
        "import os, shutil; shutil.rmtree('input'); os.symlink('/', 'input')",
        "import os; os.remove('input/train.csv'); os.mkdir('input/train.csv')",
        "import os; os.remove('input/train.csv'); os.symlink('/etc/hostname', 'input/train.csv')",
        "import os; s = os.stat('input/train.csv'); t = open('input/train.csv').read()\n"
        "open('input/train.csv', 'w').write(t.upper()); "
        "os.utime('input/train.csv', ns=(s.st_atime_ns, s.st_mtime_ns))",
    ],
)
async def test_inputs_are_as_given_after_any_cell(box, code):
    execution = await box.python(code)
    assert execution.status == "error" or "inputs are read-only" in execution.note
    after = await box.python(
        "print(open('input/train.csv').read(), open('input/more/notes.txt').read(), sep='')"
    )
    assert after.text == f"{TRAIN}as given\n\n"
    assert "inputs" not in after.note
    await box.bash("rm -rf moved input/other.csv")


async def test_inputs_of_the_task_itself_never_change(box):
    await box.bash("echo changed > input/train.csv; rm -rf input/more")
    assert (box.workspace.parent / "inputs" / "train.csv").read_text() == TRAIN
    assert (box.workspace.parent / "inputs" / "more" / "notes.txt").read_text() == "as given\n"


async def test_what_is_written_is_in_the_workspace(box):
    await box.python("open('submission.csv', 'w').write('id,y\\n1,0\\n')")
    assert (box.workspace / "submission.csv").read_text() == "id,y\n1,0\n"
    (box.workspace / "from_host.txt").write_text("hello")
    assert (await box.python("open('from_host.txt').read()")).text == "'hello'\n"


async def test_home_and_temporary_files_are_private(box):
    execution = await box.python(
        "import os, tempfile; open(os.path.expanduser('~/a'), 'w').close()\n"
        "print(os.path.expanduser('~'), tempfile.mkdtemp())"
    )
    home, temporary = execution.text.split()
    assert Path(home) != Path.home()
    assert not (Path(tempfile.gettempdir()) / Path(temporary).name).exists()


async def test_privileges_can_not_be_gained(box):
    execution = await box.bash("grep NoNewPrivs /proc/self/status; ulimit -c")
    assert execution.text.split() == ["NoNewPrivs:", "1", "0"]


async def test_agent_code_is_the_first_to_go_when_memory_runs_out(box):
    own = int(Path("/proc/self/oom_score_adj").read_text())
    execution = await box.bash("cat /proc/self/oom_score_adj")
    assert int(execution.text) > own


async def test_info_says_what_is_there(box):
    info = box.sandbox.info
    version = (await box.python("import sys; print(sys.version.split()[0])")).text.strip()
    pandas = (await box.python("import pandas; print(pandas.__version__)")).text.strip()
    assert info.python == version
    assert info.libraries["pandas"] == pandas
    assert info.cores >= 1
    assert info.memory_gib > 0.1
    assert info.covers
    assert info.does_not_cover
    seen = await box.bash("command -v python; python -c 'import sklearn; print(1)'")
    assert seen.text.endswith("\n1\n")
