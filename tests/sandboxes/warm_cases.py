"""Small scripts that have to do the same in a warm run as in a new Python process."""

from __future__ import annotations

from dataclasses import dataclass, field

PROBE = "#!/usr/bin/env python\nimport sys; open({path!r}, 'w').write('warm' if 'lightgbm' in sys.modules else 'cold')\n"


@dataclass(frozen=True)
class Case:
    """`command` is run by bash where `solution.py` and `files` lie."""

    name: str
    script: str
    command: str = "python solution.py"
    warm: bool | None = True
    """Whether it has to be a warm run; `None`: nothing is said of it."""
    files: dict[str, str] = field(default_factory=dict)


def simple(name: str, script: str, **more: object) -> Case:
    return Case(name, script, **more)  # type: ignore[arg-type]


MAIN_THINGS = [
    simple("arguments", "import sys; print(sys.argv, sys.orig_argv)", command="python solution.py a '' 'b c' -v --x=1"),
    simple("the main module", "print(__name__, __file__, __doc__, __package__, __spec__, __cached__, __annotations__, type(__loader__), __builtins__)"),
    simple("names in main", "print(list(globals())); import __main__; print(__main__ is __import__('sys').modules['__main__'])"),
    simple("a doc string and annotations", '"""Doc."""\nx: int = 1\nprint(__doc__, __annotations__)'),
    simple("the guard", "def main():\n    print('main')\nif __name__ == '__main__':\n    main()"),
    simple("paths", "import sys; print(sys.path, sys.executable, sys.prefix, sys.path_hooks, len(sys.meta_path))"),
    simple("flags", "import sys; f = sys.flags; print(f.optimize, f.isolated, f.dev_mode, f.utf8_mode, f.interactive, f.bytes_warning, f.dont_write_bytecode, f.hash_randomization, f.ignore_environment, sys.warnoptions, sys._xoptions)"),
    simple("an empty script", ""),
    simple("only a comment", "# nothing"),
    simple("no line end", "print(1)#"),
    simple("windows lines", "print(1)\r\nif True:\r\n    print(2)\r\n"),
    simple("a mark of the byte order", "\ufeffprint('é')"),
    simple("future", "from __future__ import annotations\ndef f(x: Undefined): ...\nprint(f.__annotations__)"),
    simple("no future of the runner's", "def f(x: int): ...\nprint(f.__annotations__)"),
    simple("source text", "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))"),
    simple("pickles of main", "import pickle\nclass A: pass\nprint(pickle.dumps(A()), type(pickle.loads(pickle.dumps(A()))))"),
    simple("settings", "import sys, locale, gc, threading, signal; print(sys.getrecursionlimit(), sys.getswitchinterval(), locale.getlocale(), locale.getpreferredencoding(), sys.getfilesystemencoding(), gc.get_threshold(), gc.isenabled(), sys.gettrace(), sys.getprofile(), sys.displayhook, sys.excepthook, threading.excepthook, sys.unraisablehook)"),
    simple("few objects", "import gc; print(len(gc.get_objects()) < 100_000)"),
]
SURROUNDINGS = [
    simple("folder, mask, priority", "import os; print(os.getcwd(), oct(os.umask(0)), os.nice(0), sorted(os.sched_getaffinity(0)), os.getuid(), os.getgroups())", command="umask 027; nice -n 3 python solution.py"),
    simple("limits", "import resource; print([resource.getrlimit(n) for n in range(16)])"),
    simple("changed limits", "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))", command="ulimit -n 100; python solution.py", warm=False),
    simple("memory limit", "try:\n    b = bytearray(2 << 30)\nexcept MemoryError:\n    print('no')", command="ulimit -v 1500000; python solution.py", warm=False),
    simple("one processor", "import os; print(os.sched_getaffinity(0))", command="taskset -c 0 python solution.py", warm=False),
    simple("environment", "import os; print(sorted(i for i in os.environ.items() if i[0] not in ('PATH', '_')))"),
    simple("a variable", "import os; print(os.environ['X'], os.environb[b'X'], os.popen('echo $X').read())", command="X='a=b é' python solution.py"),
    simple("no variable", "import os; print('TERM' in os.environ, os.getenv('TERM'))", command="unset TERM; python solution.py"),
    simple("almost no environment", "import os; print(sorted(set(os.environ) - {'_'}))", command="P=$(command -v python); env -i $P solution.py", warm=False),
    simple("threads set", "import os; print(os.environ['OMP_NUM_THREADS'])", command="OMP_NUM_THREADS=1 python solution.py", warm=False),
    simple("what a module reads", "import sklearn; print(sklearn.get_config()['working_memory'])", command="SKLEARN_WORKING_MEMORY=7 python solution.py", warm=False),
    simple("time zone", "import time, datetime; print(time.tzname, datetime.datetime.fromtimestamp(0), time.localtime(0).tm_hour)", command="TZ=Asia/Tokyo python solution.py"),
    simple("language", "import locale; print(locale.getlocale(), __import__('sys').stdout.encoding)", command="LANG=C LC_ALL=C python solution.py", warm=False),
    simple("warnings by variable", "import warnings; warnings.warn('w')", command="PYTHONWARNINGS=ignore python solution.py", warm=False),
    simple("another path", "import extra; print(extra.__file__)", command="PYTHONPATH=more python solution.py", files={"more/extra.py": ""}, warm=False),
    simple("startup", "print(1)", command="PYTHONSTARTUP=$PWD/s.py python solution.py", files={"s.py": "print('no')"}, warm=False),
    simple("another home", "import os, site; print(os.path.expanduser('~'), site.USER_SITE, site.USER_BASE, site.ENABLE_USER_SITE)", command="HOME=/tmp python solution.py"),
    simple("user site", "import os, site; print(os.path.expanduser('~') in site.USER_SITE, site.USER_BASE, site.getsitepackages())"),
    simple("temporary files", "import tempfile, os; print(tempfile.gettempdir() == os.environ['TMPDIR'])"),
    simple("temporary files elsewhere", "import tempfile; print(tempfile.gettempdir())", command="mkdir t; TMPDIR=$PWD/t python solution.py"),
    simple("its use of time and memory", "import resource, time, psutil; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime < 3, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime == 0, time.process_time() < 5, abs(psutil.Process().create_time() - time.time()) < 30, time.thread_time() < 5)"),
    simple("its own ids", "import os, threading; print(os.getpid() == threading.get_native_id() == threading.main_thread().native_id, threading.get_ident() == threading.main_thread().ident, threading.current_thread() is threading.main_thread(), os.getpid() == int(os.readlink('/proc/self')))"),
    simple("its words", "print(open('/proc/self/comm').read())"),
    simple("open descriptors", "import os; print(sorted(os.listdir('/proc/self/fd')))"),
    simple("one more descriptor", "import os; print(os.read(5, 9))", command="exec 5< solution.py; python solution.py", warm=False),
    simple("a large argument", "import sys; print(len(sys.argv[1]))", command="""python solution.py "$(printf 'x%.0s' $(seq 120000))" """, warm=True),
    simple("a huge environment", "import os; print(len(os.environ['X']) + len(os.environ['Y']))", command="""X=$(printf 'x%.0s' $(seq 120000)) Y=$(printf 'x%.0s' $(seq 120000)) python solution.py""", warm=False),
    simple("signals as they are", "import signal; print({s: str(signal.getsignal(s)) for s in sorted(signal.valid_signals())}, signal.pthread_sigmask(0, []))"),
    simple("signals in the background", "import signal; print(signal.getsignal(2), signal.getsignal(3))", command="python solution.py & wait $!"),
    simple("signals that are ignored", "import signal, subprocess; print(signal.getsignal(1), signal.getsignal(15)); print(subprocess.run('grep SigIgn /proc/self/status', shell=True, capture_output=True).stdout)", command="trap '' TERM; nohup python solution.py"),
    simple("blocked signals", "import signal; print(signal.pthread_sigmask(0, []))", command="""python -c "import signal, subprocess; signal.pthread_sigmask(0, [10]); subprocess.run(['python', 'solution.py'])" """),
]
STREAMS = [
    simple("input by pipe", "import sys; print(sys.stdin.read(), sys.stdin.seekable(), sys.stdin.encoding)", command="echo hallo | python solution.py"),
    simple("input by file", "import sys; print(input(), sys.stdin.readlines(), sys.stdin.seekable(), sys.stdin.seek(0), sys.stdin.name)", command="python solution.py < data.txt", files={"data.txt": "one\ntwo\nthree"}),
    simple("nothing to read", "input('name? ')", command="python solution.py < /dev/null"),
    simple("no input", "import sys; print(sys.stdin)", command="python solution.py <&-", warm=False),
    simple("no output", "import sys; sys.stderr.write(str(sys.stdout)); print('x')", command="python solution.py >&-", warm=False),
    simple("no errors", "import sys; print(sys.stderr); 1 / 0", command="python solution.py 2>&-", warm=False),
    simple("a broken pipe", "for i in range(100000):\n    print(i)", command="python solution.py | head -1; echo ${PIPESTATUS[@]}"),
    simple("a full device", "print('x')", command="python solution.py > /dev/full"),
    simple("order", "import os, sys, subprocess\nprint('a')\nsys.stderr.write('b\\n')\nos.system('echo c')\nsubprocess.run(['echo', 'd'])\nsys.stdout.write('e')\nos.write(2, b'f')\nprint('g', end='')\nos.write(1, b'h')", command="python solution.py 2>&1"),
    simple("streams", "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr):\n    print(s, s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.newlines, s.isatty(), s.fileno(), type(s.buffer), s.seekable())\nprint(sys.stdout is sys.__stdout__, sys.stdin is sys.__stdin__)", command="python solution.py < solution.py > out.txt"),
    simple("appending", "import sys; print('x'); print(sys.stdout.tell())", command="echo begin > out.txt; python solution.py >> out.txt; cat out.txt"),
    simple("output closed by the script", "import sys; print('a'); sys.stdout.close()"),
    simple("output replaced", "import sys\nsys.stdout = open('log.txt', 'w')\nprint('in the file')"),
    simple("files left open", "f = open('a.txt', 'w')\nf.write('text')\ndef g():\n    h = open('b.txt', 'wb')\n    h.write(b'bytes')\n    g.kept = h\ng()\nclass A:\n    f = open('c.txt', 'w')\n    f.write('in a class')"),
    simple("compiled code that prints", "import ctypes; ctypes.CDLL(None).printf(b'from C\\n'); print('from Python')"),
    simple("bytes", "import sys; sys.stdout.buffer.write(b'\\xff\\n'); print('é', '\\udcff')"),
]
ENDINGS = [
    *(
        simple(f"ends by {end}", f"import sys, os, signal\nprint('x')\n{end}\nprint('no')")
        for end in (
            *("sys.exit(3)", "sys.exit('text')", "sys.exit(None)", "sys.exit()", "sys.exit(-1)"),
            *("sys.exit(256 + 7)", "sys.exit(True)", "sys.exit([1, 2])", "exit(4)", "quit()"),
            *("raise SystemExit", "os._exit(5)", "os.abort()", "1 / 0", "raise KeyboardInterrupt"),
            *("os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 2)"),
            *("os.kill(os.getpid(), 11)", "os.kill(os.getpid(), signal.SIGUSR1)", "raise BaseException('b')"),
            *("raise ExceptionGroup('g', [ValueError(1)])", "sys.setrecursionlimit(99); x = [[[[[]]]]]"),
        )
    ),
    simple("an exception", "def f(x):\n    return 1 / x\n\nf(\n    0\n)"),
    simple("chained exceptions", "def f():\n    try:\n        {}['a']\n    except KeyError as e:\n        raise ValueError('v') from e\ntry:\n    f()\nfinally:\n    [][1]"),
    simple("an exception with notes", "e = ValueError('é')\ne.add_note('note')\nraise e"),
    simple("an exception in a module", "import helper\nhelper.f()", files={"helper.py": "def f():\n    raise KeyError('in helper')\n"}),
    simple("an error of syntax", "print('x')\nif True\n    pass"),
    simple("an error of syntax in a module", "import helper", files={"helper.py": "def f(:\n"}),
    simple("bad indentation", "if 1:\n  a = 1\n b = 2"),
    simple("a warning of syntax", "x = 1\nif x is 1: print('\\d')"),
    simple("a byte of no text", "print(1)", command=r"printf 'print(\"\xe9\")\n' > solution.py; python solution.py", warm=None),
    simple("a zero byte", "print(1)", command=r"printf 'print(1)\n\0' > solution.py; python solution.py", warm=None),
    simple("another coding", "print(1)", command=r"printf '# coding: latin-1\nprint(\"\xe9\")\n' > solution.py; python solution.py", warm=None),
    simple("a hook", "import sys\ndef hook(kind, value, tb):\n    import traceback\n    print('hook', kind, value, len(traceback.extract_tb(tb)), sys.last_value is value)\nsys.excepthook = hook\n1 / 0"),
    simple("a hook that fails", "import sys\ndef hook(*a):\n    raise ValueError('in the hook')\nsys.excepthook = hook\n1 / 0"),
    simple("a hook that exits", "import sys\nsys.excepthook = lambda *a: sys.exit(9)\n1 / 0"),
    simple("exit functions", "import atexit, sys\natexit.register(print, 'one')\natexit.register(print, 'two')\natexit.register(lambda: 1 / 0)\natexit.register(lambda: print(sys.modules['__main__'].__file__))\nprint('end')"),
    simple("exit functions after an error", "import atexit\natexit.register(print, 'one')\nraise ValueError"),
    simple("threads are waited for", "import threading, time\ndef f():\n    time.sleep(0.2)\n    print('thread')\nthreading.Thread(target=f).start()\nprint('main')"),
    simple("daemons are not waited for", "import threading, time\ndef f():\n    while True:\n        x = time.time(), threading\nthreading.Thread(target=f, daemon=True).start()\nopen('a.txt', 'w').write('x')\nf = open('b.txt', 'w')\nf.write('left')\nprint('main')"),
    simple("an error in a thread", "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T')\nt.start()\nt.join()\nprint('main')"),
    simple("a thread that exits", "import threading, sys\nt = threading.Thread(target=lambda: sys.exit(3))\nt.start()\nt.join()\nprint('main')"),
    simple("finalizers", "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\nprint('end')"),
    simple("deletion of what is global", "import os\nlimit = 3\nclass A:\n    def __init__(self, n):\n        self.n = n\n    def __del__(self):\n        print('del', self.n, limit, os.sep)\na = A(1)\nc = A(2)\nc.c = c"),
    simple("deletion in a module", "import helper\nprint('end')", files={"helper.py": "import os\nclass A:\n    def __del__(self):\n        print('del', os.sep)\na = A()\n"}),
    simple("generators are closed", "def g():\n    try:\n        yield 1\n    finally:\n        print('closed')\nx = g()\nnext(x)"),
    simple("a signal of its own", "import signal, os, time\nsignal.signal(15, lambda *a: print('got', a[0]))\nos.kill(os.getpid(), 15)\ntime.sleep(0.1)\nprint('end')"),
    simple("a signal from outside", "import signal, time, sys\nsignal.signal(15, lambda *a: (print('got', a[0]), sys.exit(4)))\nopen('ready', 'w')\ntime.sleep(30)", command="python solution.py & while [ ! -e ready ]; do sleep 0.05; done; kill $!; wait $!; echo $?", warm=None),
    simple("killed from outside", "import time\nopen('ready', 'w')\ntime.sleep(30)", command="python solution.py & while [ ! -e ready ]; do sleep 0.05; done; kill -9 $!; wait $!; echo $?", warm=None),
    simple("a job of the shell", "import time\nopen('ready', 'w')\ntime.sleep(30)", command="set -m; python solution.py & while [ ! -e ready ]; do sleep 0.05; done; kill %1; wait %1; echo $?", warm=None),
    simple("interrupted from outside", "import time\nopen('ready', 'w')\ntry:\n    time.sleep(30)\nexcept KeyboardInterrupt:\n    print('interrupted')\n    raise", command="set -m; python solution.py & while [ ! -e ready ]; do sleep 0.05; done; kill -INT $!; wait $!; echo $?", warm=None),
    simple("a time limit", "import time\nprint('x')\ntime.sleep(30)", command="timeout 2 python solution.py; echo $?", warm=None),
    simple("a trace", "import sys\ndef t(f, e, a):\n    if f.f_code.co_filename == __file__: print(e, f.f_lineno)\nsys.settrace(t)\ndef g():\n    return 1\ng()\nsys.settrace(None)"),
    simple("faults are told", "import faulthandler; print(faulthandler.is_enabled()); faulthandler.enable(); print(faulthandler.is_enabled())"),
    simple("a process that forks", "import os\nif os.fork() == 0:\n    print('child')\nelse:\n    os.wait()\n    print('parent')"),
    simple("a daemon", "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        open('d.txt', 'w').write('daemon')\n    os._exit(0)\nos.wait()\nwhile not os.path.exists('d.txt') or not os.path.getsize('d.txt'): time.sleep(0.01)\nprint('end')"),
]
WORKERS = """
import multiprocessing as mp, os, sys
def square(x):
    return x * x
if __name__ == "__main__":
    mp.set_start_method({how!r})
    with mp.Pool(2) as pool:
        print(pool.map(square, range(5)))
    p = mp.Process(target=square, args=(1,)); p.start(); p.join(); print(p.exitcode, p.name)
    q = mp.Queue(); q.put(1); print(q.get())
"""
PROCESSES = [
    *(simple(f"workers by {how}", WORKERS.format(how=how)) for how in ("fork", "spawn", "forkserver")),
    simple("workers by spawn, from elsewhere", WORKERS.format(how="spawn"), command="mkdir d; cp solution.py d; cd /; python $OLDPWD/d/solution.py", warm=None),
    simple("joblib", "from joblib import Parallel, delayed\ndef f(x):\n    return x * x\nprint(Parallel(n_jobs=2)(delayed(f)(i) for i in range(4)))"),
    simple("executors", "from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor\ndef f(x):\n    return x + 1\nif __name__ == '__main__':\n    for kind in (ProcessPoolExecutor, ThreadPoolExecutor):\n        with kind(2) as e:\n            print(list(e.map(f, range(3))))"),
    simple("itself", "import sys, subprocess\nif len(sys.argv) == 1:\n    print(subprocess.run([sys.executable, __file__, 'x'], capture_output=True))\n    print(subprocess.run(['python', __file__, 'y'], capture_output=True))\nelse:\n    print('inner', sys.argv[1], sys.path[0])"),
    simple("asyncio", "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', 'x')\n    print(await p.wait())\nasyncio.run(f())"),
    simple("a pipe between children", "import os; os.system('yes | head -1'); os.system('yes | head -1 | cat')"),
]
FILES = [
    simple("a module beside it", "import tools; print(tools.__file__, tools.__name__, tools.__spec__.origin)", files={"tools.py": "x = 1"}),
    simple("a package beside it", "from mine.part import f; print(f(), f.__module__)", files={"mine/__init__.py": "", "mine/part.py": "def f(): return 1"}),
    simple("pandas.py beside it", "import pandas; print(pandas.__file__)", files={"pandas.py": ""}, warm=False),
    simple("json.py beside it", "import json; print(json.__file__)", files={"json.py": ""}, warm=False),
    simple("a package yaml beside it", "import random; print(random.__file__)", files={"random/__init__.py": ""}, warm=False),
    simple("what libraries look for", "import pandas; print('x')", files={"bottleneck.py": "print('mine')"}, warm=False),
    simple("utils beside it", "import utils; print(utils.__path__)", files={"utils/__init__.py": "", "data.csv": "a\n1"}),
    simple("data beside it", "print(open('data.csv').read()); import pandas as pd; print(pd.read_csv('data.csv'))", files={"data.csv": "a,b\n1,2\n"}),
    simple("written files", "import pandas as pd; pd.DataFrame({'a': [1]}).to_csv('out.csv', index=False)"),
    simple("a link to it", "import sys; print(__file__, sys.argv, sys.path[0])", command="mkdir d; ln -s $PWD/solution.py d/s.py; python d/s.py", warm=True),
    simple("in another folder", "import sys, side; print(__file__, sys.path[0], side.x)", command="mkdir w; cd w; python ../sub/../solution.py", files={"side.py": "x = 1", "sub/a": ""}),
    simple("by a full path", "import sys; print(__file__, sys.path[0])", command="python $PWD/solution.py"),
    simple("with a space and no ASCII", "print(__file__); 1 / 0", command="mv solution.py 'sö lution.py'; python 'sö lution.py'", warm=None),
    simple("with a dash", "print(__file__)", command="mv solution.py ./-s.py; python ./-s.py; python -- -s.py", warm=None),
    simple("no such file", "", command="python nothing.py", warm=None),
    simple("a folder", "", command="mkdir app; echo 'import sys; print(sys.argv, sys.path[0], __file__)' > app/__main__.py; python app x", warm=None),
    simple("an archive", "", command="echo 'print(__file__)' > __main__.py; python -m zipfile -c app.zip __main__.py; python app.zip; cp app.zip app.py; python app.py; rm app.py", warm=None),
    simple("compiled", "print(__file__)", command="python -m py_compile solution.py; cp __pycache__/*.pyc s.pyc; rm -r __pycache__; python s.pyc; rm s.pyc", warm=None),
    simple("without a name's end", "print(__file__)", command="mv solution.py solution; python solution", warm=None),
    simple("executable", "#!/usr/bin/env python\nimport sys; print(sys.argv, __file__)", command="chmod +x solution.py; ./solution.py a"),
    simple("unbuffered", "import sys; print(sys.argv)", command="python -u solution.py a -u"),
    simple("with options", "import sys; print(sys.flags.optimize, __debug__)", command="python -O solution.py", warm=False),
    simple("warnings on", "import warnings; warnings.warn('w', DeprecationWarning)", command="python -W error solution.py", warm=False),
    simple("a module", "print(__name__, __spec__.name)", command="python -m solution", warm=False),
    simple("a line", "", command="python -c 'import sys; print(sys.argv)' a", warm=None),
    simple("from the input", "import sys; print(sys.argv)", command="python - a < solution.py; python < solution.py", warm=False),
    simple("no words", "", command="python '' < /dev/null; python --version", warm=None),
    simple("python3", "print(__file__)", command="python3 solution.py; python3.11 solution.py", warm=True),
    simple("a deleted folder", "print(1)", command="mkdir d; cp solution.py d; cd d; rm -r ../d; python solution.py", warm=None),
]
LIBRARIES = [
    simple("seeded numpy", "import numpy as np; np.random.seed(1); print(np.random.rand(3)); print(np.random.default_rng(1).random(3))"),
    simple("seeded random", "import random; random.seed(1); print(random.random())"),
    simple("hashes", "print(hash('a'), {'a', 'b', 'c'})"),
    simple("warnings of the script", "import warnings\nwarnings.warn('a')\nwarnings.warn('b', DeprecationWarning)\nfor i in range(2):\n    warnings.warn('c', stacklevel=1)"),
    simple("warnings of a library", "import numpy as np\nnp.array([1.0]) / 0\nimport pandas as pd\npd.Series([1]).apply(lambda x: np.float64(x) / 0)"),
    simple("logging", "import logging\nlogging.warning('w')\nlogging.basicConfig(level=10, force=True)\nlogging.info('i')\nprint(logging.getLogger().handlers)"),
    simple("chained assignment", "import pandas as pd\nd = pd.DataFrame({'a': [1, 2]})\nd[d.a > 1]['a'] = 3\nprint(d)"),
    *(
        simple(
            f"models with {threads} threads",
            "import numpy as np, lightgbm as lgb, warnings\nfrom sklearn.ensemble import RandomForestClassifier\nfrom sklearn.linear_model import Ridge, LogisticRegression\nfrom sklearn.decomposition import PCA\n"
            "r = np.random.default_rng(0); x = r.normal(size=(400, 20)); y = (x[:, 0] + r.normal(size=400) > 0).astype(int)\n"
            f"for m in (RandomForestClassifier(20, random_state=0, n_jobs={threads}), LogisticRegression(), lgb.LGBMClassifier(n_estimators=20, n_jobs={threads}, seed=1, deterministic=True, verbose=-1)):\n"
            "    print(m.fit(x, y).predict_proba(x).tobytes().hex()[-400:])\n"
            "print(PCA(3, random_state=0).fit_transform(x).tobytes().hex()[-400:], Ridge().fit(x, y).coef_.tobytes().hex())",
        )
        for threads in (1, 2)
    ),
]
ALL = [*MAIN_THINGS, *SURROUNDINGS, *STREAMS, *ENDINGS, *PROCESSES, *FILES, *LIBRARIES]
