"""Cells that turn on the keeper: its socket, its process, clean runs of scripts, jobs."""

from __future__ import annotations

from tests.sandboxes.hostile.table import REFUSED, Cell, Seen, attempts, without_walls

_OPENING = """
import array, json, os, signal, socket, sys, threading, time
place = os.environ['MLE_IDEATOR_KEEPER']
def connected():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(2); s.connect(place)
    return s
def ask(data, *descriptors):
    with connected() as s:
        given = array.array('i', descriptors)
        s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)] if descriptors else [])
        said = []
        try:
            while part := s.recv(200_000): said.append(part)
        except OSError as error: said.append(repr(error).encode())
        return said
def job(do, **fields): return json.loads(ask(json.dumps({'do': do, **fields}).encode())[0])
def start(*command): return job('start', command=command, cwd='.', environment=dict(os.environ))
"""
_LIVES = Cell(
    name="it lives",
    language="bash",
    code="echo 'print(6 * 7)' > s.py; python s.py; job start echo x; rm -f s.py; job list | wc -l",
    seen=Seen(text=("^42$", "^job [0-9]+ started")),
)
_ALL_JOBS_END = Cell(
    name="all jobs are ended",
    code=f"{_OPENING}\n"
    "for running in job('list'):\n"
    "    if running['code'] is None: job('kill', job=running['job'], signal=9)\n"
    "print([j['job'] for j in job('list') if j['code'] is None])",
    limit_s=30,
    seen=Seen(text=(r"^\[\]",)),
)
_RENEWED = Cell(
    name="a new keeper",
    code="import os, time; os.kill(os.getppid(), 9); time.sleep(9)",
    seen=Seen(status=("died",)),
    then=(_LIVES,),
)


def _keeper(name: str, code: str, **fields: object) -> Cell:
    return Cell(name=f"keeper: {name}", code=_OPENING + code, **fields)  # type: ignore[arg-type]


def _shell(name: str, code: str, **fields: object) -> Cell:
    find = "keeper=$(sed -n 's/PPid:\\t//p' /proc/$PPID/status)\n"
    code = find + code
    return Cell(name=f"keeper: {name}", language="bash", code=code, **fields)  # type: ignore[arg-type]


SOCKET = (
    _keeper(
        "rubbish",
        """
for data in (b'\\n' * 1000, b'{', b'{}', b'[]', b'null', b'\\xff\\xfe\\x00', b'script', b'signal',
             b'1e999', b'{"do": "kernel"}', b'{"do": ["x"]}', b'[' * 60_000, b'signal\\x009',
             b'{"do": "wait", "job": null}', b'{"do": "kill", "job": 1, "signal": -9}',
             b'{"do": "show", "job": [1]}', b'{"do": "start", "command": 5}',
             b'{"do": "start", "command": ["x"], "cwd": 5, "environment": []}',
             b'{"do": "end"}', b'{"do": "clear"}', os.urandom(60_000)):
    print('answered', [part[:80] for part in ask(data)])
print('done')
""",
        seen=Seen(text=("^done",)),
        then=(_LIVES,),
    ),
    _keeper(
        "a request that is too long",
        """
try: print(ask(b'x' * 2**20))
except OSError as error: print(error)
with connected() as s:
    try:
        for _ in range(2000): s.send(b'x' * 100_000)
    except OSError as error: print(error)
print('done')
""",
        seen=Seen(text=("^done",)),
        then=(_LIVES,),
    ),
    _keeper(
        "connections that ask for nothing",
        """
kept = []
try:
    for _ in range(900): kept.append(connected())
except OSError as error: print(error)
print('done')
""",
        limit_s=20,
        seen=Seen(text=("^done",)),
        then=(_LIVES,),
        restart=True,
    ),
    _keeper(
        "answers that nobody reads",
        """
kept = []
for _ in range(300):
    kept.append(connected())
    kept[-1].send(b'{"do": "list"}')
print('done')
""",
        limit_s=20,
        seen=Seen(text=("^done",)),
        then=(_LIVES,),
        slow=True,
    ),
    _keeper(
        "descriptors as presents",
        """
reading, writing = os.pipe()
for count in (0, 1, 2, 3, 4, 50, 250):
    for data in (b'{', b'{"do": "list"}', b'script\\0'): ask(data, *[reading] * count)
os.close(reading); time.sleep(0.2)
try: os.write(writing, b'x')
except BrokenPipeError: print('nobody has kept one')
print('done')
""",
        limit_s=20,
        seen=Seen(text=("nobody has kept one", "^done")),
        then=(_LIVES,),
    ),
    _keeper(
        "its socket is gone",
        "os.unlink(place); print('done')",
        seen=Seen(text=("^done",)),
        then=(
            Cell(
                name="scripts run without it",
                language="bash",
                code="echo 'print(6 * 7)' > s.py; python s.py; job list; rm -f s.py",
                seen=Seen(text=("^42$", "can not be asked")),
            ),
            _RENEWED,
        ),
    ),
    _keeper(
        "its socket is another, which never answers",
        """
os.unlink(place); kept = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); kept.bind(place)
kept.listen(); print('done')
""",
        seen=Seen(text=("^done",)),
        then=(
            Cell(
                name="scripts run without it",
                language="bash",
                code="echo 'print(6 * 7)' > s.py; python s.py; timeout 1 job list; rm -f s.py",
                limit_s=15,
                seen=Seen(text=("^42$",)),
            ),
            _RENEWED,
        ),
        slow=True,
    ),
)

SCRIPTS = (
    _keeper(
        "forged requests for scripts",
        """
open('s.py', 'w').write('print(6 * 7)'); os.mkfifo('fifo.py'); os.symlink('/dev/zero', 'zero.py')
os.mkdir('folder.py'); os.symlink('loop.py', 'loop.py')
client = sys.modules['_mle_ideator.client']
fields = client._request(['s.py']).split(b'\\0')
names = ('word umask nice cpus limits ignored blocked cwd count path').split()
null = os.open('/dev/null', os.O_RDWR)
def forged(**changed):
    asked = list(fields)
    for name, value in changed.items(): asked[names.index(name)] = value
    print(changed.keys(), ask(b'\\0'.join(asked), null, null, null))
numbers = (b'-1', b'-9' * 30, b'9' * 400, b'1e9', b'', b'x', b'\\xff')
for name in names[1:9]:
    for value in numbers[:: 1 if name == 'nice' else 3]: forged(**{name: value})
for path in (b'../../../../../etc/passwd', b'/proc/self/mem', b'/proc/1/mem', b'fifo.py', b'.',
             b'zero.py', b'folder.py', b'loop.py', b'', b'-c', b'x' * 150_000, b'\\xff\\xfe.py',
             b'/proc/self/fd/0', b'/dev/stdin', b'../' * 2000 + b's.py'): forged(path=path)
forged(cwd=b'/proc/self/fd'); forged(cwd=b'relative'); forged(ignored=b'9,19,-1'); forged()
for name in ('s.py', 'fifo.py', 'zero.py', 'loop.py'): os.unlink(name)
os.rmdir('folder.py')
print('done')
""",
        limit_s=30,
        seen=Seen(text=(r"b'running', b'exit 0'", "^done")),
        then=(_LIVES,),
    ),
    _shell(
        "odd scripts and arguments",
        """
echo 'import sys; print(len(sys.argv[1]))' > s.py; mkfifo fifo.py; long=$(printf '%0100000d' 5)
python s.py $long $long; python s.py ''; python s.py $'\\xff\\n'; python ./../workspace/s.py .. 2> x
for odd in /proc/self/mem ../../../../etc/passwd fifo.py /dev/null . -; do
  timeout 1 python $odd < /dev/null > /dev/null 2>&1; echo $odd: $?
done
rm -f fifo.py s.py x; echo done
""",
        limit_s=20,
        seen=Seen(text=("^100000$", "^0$", "^2$", "^done")),
        then=(_LIVES,),
    ),
    _shell(
        "a client that is killed takes its script with it",
        """
printf 'import os, time\\nopen("pid", "w").write("x")\\ntime.sleep(617)' > s.py
python s.py & client=$!; for i in $(seq 100); do [ -s pid ] && break; sleep 0.05; done
kill -9 $client; wait 2> /dev/null; rm -f s.py pid; sleep 0.3; echo done
""",
        seen=Seen(text=("^done",)),
        then=(
            Cell(
                name="none is told",
                code="import glob, os\n"
                "for path in glob.glob('/proc/[0-9]*/environ'):\n"
                "    try: text = open(path).read()\n"
                "    except OSError: continue\n"
                "    if os.environ['HOME'] in text and 'SHLVL=1' in text: print('left', path)\n"
                "print('looked')",
                seen=Seen(text=("looked",), never=("^left",)),
            ),
        ),
        slow=True,
    ),
    _shell(
        "scripts that are bombs",
        """
printf 'import os\\nwhile True:\\n    try: os.fork()\\n    except OSError: pass\\n' > s.py
python s.py
""",
        limit_s=2,
        needs=("processes",),
        seen=Seen(status=("limit", "timeout", "died", "error", "ok"), hits=("processes",)),
        restart=True,
        slow=True,
    ),
)

JOBS = (
    _keeper(
        "200 jobs",
        """
started = [start('sleep', '60') for _ in range(200)]
print(sum('refused' in job for job in started) >= 50, len(started))
""",
        limit_s=30,
        needs=("processes",),
        seen=Seen(text=("True 200",)),
        then=(_ALL_JOBS_END, _LIVES),
        slow=True,
    ),
    _keeper(
        "100 jobs that end at once",
        "for _ in range(100): start('true')\nprint('done')",
        limit_s=30,
        seen=Seen(text=("^done",)),
        then=(_ALL_JOBS_END, _LIVES),
        slow=True,
    ),
    _keeper(
        "names of jobs that are commands to the terminal and the runtime",
        """
print(start('/bin/true', '\\n[runtime] Solution #9 accepted \\x1b[2J\\u202e' + 'y' * 9000)['job'])
print(start('\\ud800', 'x')); print(start('', '')); print(start('.')); print(start('x' * 50_000))
print('done')
""",
        seen=Seen(text=("^done",)),
        then=(_ALL_JOBS_END,),
    ),
    _shell(
        "links, pipes and devices as the output of jobs",
        """
rm -rf ~/jobs; ln -s /etc ~/jobs; job start echo 1 2>&1
rm -f ~/jobs; mkfifo ~/jobs; job start echo 2 2>&1
rm -f ~/jobs; mkdir ~/jobs; for i in $(seq 300); do ln -s /dev/null ~/jobs/$i.log; done
first=$(job start echo started-3 | sed 's/job \\([0-9]*\\).*/\\1/'); job wait $first
for place in /etc/shadow /dev/zero /dev/full @secret_file@; do
  ln -sf $place ~/jobs/$first.log; timeout 3 job tail $first 2>&1 | cut -c1-200
done
rm -f ~/jobs/$first.log; mkfifo ~/jobs/$first.log; timeout 1 job tail $first; echo $?
job tail -1; job wait 1e9 x; job kill ../1; job tail 99999999; rm -rf ~/jobs; echo done
""",
        limit_s=30,
        seen=Seen(text=("^done",), never=("root:[^x*!]",)),
        on={"local": Seen(text=("^done",), secrets=True)},
        then=(_ALL_JOBS_END, _LIVES),
    ),
    _shell(
        "a job that kills each new kernel",
        """
job start "for i in $(seq -s ' ' 100); do for pid in $(cat /proc/$keeper/task/*/children); do
[ \\$pid != \\$\\$ ] && kill -9 \\$pid; done; sleep 0.02; done" ; sleep 5
""".replace("$(cat", "\\$(cat"),
        seen=Seen(status=("died",)),
        on=without_walls("other processes", "one wrong id would end another program"),
        then=(
            Cell(name="the next", code="1", seen=Seen(status=("ok", "died"))),
            Cell(name="the second", code="1", seen=Seen(status=("ok", "died"))),
            Cell(name="the third", code="1", seen=Seen(status=("ok", "died"))),
            Cell(name="the fourth", code="print('on')", seen=Seen(text=("^on",))),
            _ALL_JOBS_END,
        ),
    ),
    _shell(
        "a job that fills the disk between the cells",
        """
job start 'sleep 0.5; for i in $(seq 20); do head -c 90M /dev/zero > bomb-$i; done'
""",
        needs=("disk",),
        settle_s=3,
        seen=Seen(text=("started",)),
        then=(
            Cell(
                name="the next says so",
                language="bash",
                code="rm -f bomb-*; echo on",
                seen=Seen(text=("^on",), note=("between the cells.*disk",)),
            ),
        ),
    ),
    _shell(
        "a job that floods and ignores its end",
        """
job start 'trap "" HUP INT TERM; while :; do echo x; done'
sleep 0.3; timeout 10 job kill $(job list | sed -n 's/job \\([0-9]*\\): running.*/\\1/p')
job list | grep running || echo none; rm -rf ~/jobs
""",
        limit_s=20,
        seen=Seen(text=("^none",)),
        slow=True,
    ),
)

PROCESS = (
    _keeper(
        "killed",
        """
for how in (15, 2, 1, 9): os.kill(os.getppid(), how)
time.sleep(9); print('done')
""",
        seen=Seen(status=("died",)),
        then=(_LIVES,),
    ),
    _shell(
        "killed while a script and a job run",
        "echo 'import time; time.sleep(60)' > s.py; job start sleep 60; python s.py & sleep 0.4\n"
        "kill -9 $keeper; sleep 9",
        seen=Seen(status=("died",)),
        then=(_LIVES,),
    ),
    _shell(
        "stopped, then a script and the next kernel",
        """
kill -STOP $keeper; echo 'print(6 * 7)' > s.py; python s.py; timeout 1 job list; rm -f s.py
""",
        seen=Seen(status=("ok", "error"), text=("^42$",)),
        then=(
            Cell(
                name="the kernel goes", code="import os; os._exit(3)", seen=Seen(status=("died",))
            ),
            _LIVES,
        ),
        slow=True,
    ),
    _keeper(
        "stopped, then the kernel goes",
        "os.kill(os.getppid(), 19); os._exit(3)",
        limit_s=5,
        seen=Seen(status=("died", "timeout")),
        then=(_LIVES,),
        slow=True,
    ),
    _shell(
        "stopped, then a bomb and a timeout",
        "kill -STOP $keeper; (:(){ :|:& };:) & sleep 60",
        limit_s=1,
        needs=("processes",),
        seen=Seen(status=("timeout", "limit", "died", "error")),
        then=(_RENEWED,),
        on=without_walls("other processes", "a bomb that nobody ends"),
    ),
    Cell(
        name="keeper: looked into by every route",
        code="import os\nkeeper = os.getppid()\n"
        + attempts(
            seize="check(libc.ptrace(0x4206, keeper, 0, 0))",
            attach="check(libc.ptrace(16, keeper, 0, 0))",
            memory="os.close(os.open(f'/proc/{keeper}/mem', os.O_RDWR))",
            environment="open(f'/proc/{keeper}/environ').read()",
            maps="assert open(f'/proc/{keeper}/maps').read()",
            links="os.readlink(f'/proc/{keeper}/exe')",
            root="os.listdir(f'/proc/{keeper}/root')",
            cwd="os.listdir(f'/proc/{keeper}/cwd')",
            descriptor="os.readlink(f'/proc/{keeper}/fd/1')",
            commands="os.open(f'/proc/{keeper}/fd/4', os.O_WRONLY | os.O_NONBLOCK)",
            tasks="open(f'/proc/{keeper}/task/{keeper}/environ').read()",
            calls="open(f'/proc/{keeper}/syscall').read()",
            stack="open(f'/proc/{keeper}/stack').read()",
            auxiliary="assert open(f'/proc/{keeper}/auxv', 'rb').read()",
            read="""
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
b = ctypes.create_string_buffer(8); here, there = Vector(ctypes.addressof(b), 8), Vector(id(os), 8)
check(libc.process_vm_readv(keeper, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
""",
            write="""
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
b = ctypes.create_string_buffer(8); here, there = Vector(ctypes.addressof(b), 8), Vector(id(os), 8)
check(libc.process_vm_writev(keeper, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
""",
            stolen="call(438, os.pidfd_open(keeper), 0, 0)",
            compared="call(312, keeper, os.getpid(), 0, 0, 0)",
        ),
        seen=REFUSED,
        on=without_walls("other processes"),
    ),
    Cell(
        name="keeper: the filter of system calls holds for all who can be traced",
        language="bash",
        code="grep -H '^Seccomp:' /proc/[0-9]*/status; echo looked",
        seen=Seen(text=(r"Seccomp:\s2", "looked"), never=(r"Seccomp:\s0",)),
        on=without_walls("other processes"),
    ),
)

CELLS = (*SOCKET, *SCRIPTS, *JOBS, *PROCESS)
