"""What is left in workspace and home for the next kernel to trip over."""

from __future__ import annotations

from tests.sandboxes.hostile.table import Cell, Seen

_MODULES = (
    *("sitecustomize", "usercustomize", "ipykernel", "IPython", "zmq", "traitlets", "comm"),
    *("psutil", "tornado", "jupyter_client", "matplotlib_inline", "debugpy", "asyncio", "kernel"),
    *("pandas", "numpy", "json", "random", "subprocess", "connection", "decorator", "pygments"),
    *("programs", "keeper", "supervisor", "start", "system", "readline", "rlcompleter"),
)
# Where there are no walls, a wrong home would be the person's own.
_OWN_HOME = """
import os, pathlib
home = pathlib.Path.home()
assert str(home) == '/home/agent' or 'mle-ideator-' in home.parent.name, home
assert pathlib.Path.cwd().name == 'workspace'
"""
_CLEAN = f"""{_OWN_HOME}
import shutil
for folder in (pathlib.Path.cwd(), pathlib.Path.home()):
    for entry in list(folder.iterdir()):
        if entry.name == 'input': continue
        shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink()
"""


def _poisoned(*, code: str, name: str, slow: bool = False) -> Cell:
    """Plants, ends the kernel; the next must have run nothing of what was planted."""
    return Cell(
        name=name,
        code=f"{_OWN_HOME}\nimport sys\n{code}\nos._exit(3)",
        seen=Seen(status=("died",), note=("exit code 3",)),
        then=(
            Cell(
                name="the next kernel is clean",
                code="import os; print('poisoned' if os.path.exists('/tmp/poison') or "
                "os.path.exists('poison') else 'clean')",
                seen=Seen(text=("^clean",)),
            ),
            Cell(name="and bash", language="bash", code="echo clean", seen=Seen(text=("^clean$",))),
            Cell(name="away", code=_CLEAN, seen=Seen(status=("ok", "error"))),
        ),
        restart=True,
        slow=slow,
    )


_BAIT = "\"import os, pathlib; pathlib.Path('@here@/poison').touch(); os._exit(7)\\n\""
_SHELL_BAIT = "'touch @here@/poison; exit 7\\n'"

CELLS = (
    _poisoned(
        name="modules with the names of the kernel's own",
        code=f"""
here = os.getcwd()
for name in {_MODULES!r}:
    pathlib.Path(f'{{name}}.py').write_text({_BAIT}.replace('@here@', here))
    pathlib.Path(name + '_').mkdir(exist_ok=True)
""",
    ),
    _poisoned(
        name="packages with the names of the kernel's own",
        code=f"""
here = os.getcwd()
for name in {_MODULES!r}:
    pathlib.Path(name).mkdir()
    pathlib.Path(name, '__init__.py').write_text({_BAIT}.replace('@here@', here))
    pathlib.Path(name, '__main__.py').write_text({_BAIT}.replace('@here@', here))
""",
        slow=True,
    ),
    _poisoned(
        name="customisation and .pth files in the home",
        code=f"""
here, version = os.getcwd(), '%d.%d' % sys.version_info[:2]
bait = {_BAIT}.replace('@here@', here)
for place in (f'~/.local/lib/python{{version}}/site-packages', '~/lib', '~', '~/.ipython'):
    folder = pathlib.Path(place).expanduser(); folder.mkdir(parents=True, exist_ok=True)
    for name in ('sitecustomize.py', 'usercustomize.py', 'ipython_config.py', '.pythonrc.py',
                 'jupyter_config.py', 'ipython_kernel_config.py'):
        (folder / name).write_text(bait)
    (folder / 'poison.pth').write_text(bait.replace('\\n', ''))
""",
    ),
    _poisoned(
        name="start-up files of IPython, Jupyter and matplotlib",
        code=f"""
here = os.getcwd()
bait = {_BAIT}.replace('@here@', here)
home = pathlib.Path.home()
for name in ('.ipython/profile_default/startup/00.py', '.jupyter/migrated',
             '.ipython/profile_default/ipython_config.py',
             '.ipython/profile_default/ipython_kernel_config.py', '.jupyter/jupyter_config.py',
             '.ipython/extensions/poison.py', '.config/matplotlib/matplotlibrc'):
    (home / name).parent.mkdir(parents=True, exist_ok=True); (home / name).write_text(bait)
pathlib.Path('matplotlibrc').write_text('backend: module://poison\\n')
""",
    ),
    _poisoned(
        name="start-up files of shells and tools",
        code=f"""
here = os.getcwd()
bait = {_SHELL_BAIT}.replace('@here@', here)
for folder in (pathlib.Path.home(), pathlib.Path.cwd()):
    for name in ('.bashrc', '.bash_profile', '.profile', '.bash_login', '.bash_logout', '.inputrc',
                 '.zshrc', 'pip.conf', 'setup.cfg', '.env', 'pyvenv.cfg', 'bash', 'env', 'python',
                 'python3', 'job', 'sh'):
        (folder / name).write_text('#!/bin/sh\\n' + bait); (folder / name).chmod(0o755)
""",
    ),
    _poisoned(
        name="a program first on the path",
        code=f"""
here = os.getcwd()
bait = {_SHELL_BAIT}.replace('@here@', here)
for place in os.environ['PATH'].split(':') + ['~/bin', '~/.local/bin']:
    folder = pathlib.Path(place).expanduser()
    if not str(folder).startswith((str(pathlib.Path.home().parent), here, '/run/')):
        continue
    folder.mkdir(parents=True, exist_ok=True)
    for name in ('bash', 'sh', 'env'):
        try:
            (folder / name).unlink(missing_ok=True)
            (folder / name).write_text('#!/bin/sh\\n' + bait); (folder / name).chmod(0o755)
        except OSError as error: print(error)
""",
    ),
    _poisoned(
        name="compiled files older than their sources",
        code=f"""
import py_compile
here = os.getcwd()
pathlib.Path('json.py').write_text({_BAIT}.replace('@here@', here))
py_compile.compile('json.py', cfile='json.pyc'); py_compile.compile('json.py')
pathlib.Path('sitecustomize.pyc').write_bytes(pathlib.Path('json.pyc').read_bytes())
pathlib.Path('json.so').write_bytes(b'no library')
""",
        slow=True,
    ),
    Cell(
        name="folders in place of the kernel's files",
        code="""
import os, tempfile
home = os.path.expanduser('~')
for place in (tempfile.gettempdir(), home, os.getcwd()):
    for name in ('.ipython', '.config', '.cache', 'cell.sh', '.local', '.matplotlib'):
        try: os.mkfifo(os.path.join(place, name))
        except OSError: pass
os._exit(3)
""",
        seen=Seen(status=("died",)),
        then=(
            Cell(name="the next", code="print('next')", seen=Seen(text=("next",))),
            Cell(name="away", code=_CLEAN, seen=Seen(status=("ok", "error"))),
        ),
    ),
)
