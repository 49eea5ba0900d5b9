"""Bombs, and what gets round the bounds. Dropped only where the sandbox says that it holds them."""

from __future__ import annotations

from tests.sandboxes.hostile.table import REFUSED, Cell, Left, Seen, attempts, without_walls

_MEMORY = Seen(
    status=("limit", "died", "error", "ok"),
    hits=("memory",),
    note=("memory",),
    never=("^survived",),
)
_PROCESSES = Seen(status=("limit", "error", "ok", "timeout", "died"), hits=("processes",))
_DISK = Seen(status=("limit", "error", "ok"), hits=("disk", "memory"), never=("^survived",))
_FILE = Seen(status=("error", "ok", "limit", "died"), hits=("file_size",), never=("^survived",))

MEMORY = (
    Cell(
        name="memory, bit by bit",
        code="kept = []\nfor _ in range(8000): kept.append(bytearray(2**20))\nprint('survived')",
        limit_s=20,
        needs=("memory",),
        seen=_MEMORY,
    ),
    Cell(
        name="memory, all at once",
        code="kept = b'x' * 8 * 2**30; print('survived')",
        limit_s=20,
        needs=("memory",),
        seen=Seen(status=("limit", "died", "error"), never=("^survived",)),
    ),
    Cell(
        name="memory, many processes a bit each",
        slow=True,
        language="bash",
        code="""
for i in $(seq 40); do
  python -S -c 'import time; kept = b"x" * (64 << 20); time.sleep(3); print("survived", "all")' &
done; wait
""",
        limit_s=20,
        needs=("memory", "processes"),
        seen=Seen(status=("limit", "died", "error", "ok"), hits=("memory",), note=("memory",)),
    ),
    Cell(
        name="memory in /dev/shm",
        language="bash",
        code="head -c 4G /dev/zero > /dev/shm/bomb && echo survived; rm -f /dev/shm/bomb; true",
        limit_s=20,
        needs=("memory",),
        seen=Seen(status=("limit", "died", "error", "ok"), never=("^survived",)),
        on={"local": Left("this machine's own memory would fill up", "memory")},
        restart=True,
    ),
    Cell(
        name="memory without a name (memfd)",
        code="""
import os
bomb = os.memfd_create('bomb')
for _ in range(8000): os.write(bomb, b'x' * 2**20)
print('survived')
""",
        limit_s=20,
        needs=("memory",),
        seen=Seen(status=("limit", "died", "error"), never=("^survived",)),
    ),
    Cell(
        name="memory shared by processes that are gone",
        code="""
import multiprocessing.shared_memory as shared, os
for _ in range(8):
    block = shared.SharedMemory(create=True, size=2**29)
    block.buf[:] = bytes(2**20) * 512
print('survived')
""",
        limit_s=20,
        needs=("memory",),
        seen=Seen(status=("limit", "died", "error"), never=("^survived",)),
        on={"local": Left("this machine's own memory would fill up", "memory")},
        restart=True,
        slow=True,
    ),
    Cell(
        name="pages of System V and locks on memory",
        code=attempts(
            sysv="check(libc.shmget(0, ctypes.c_size_t(2**40), 0o1600))",
            lock="import mmap; kept = mmap.mmap(-1, 2**29); address = ctypes.addressof("
            "ctypes.c_char.from_buffer(kept)); check(libc.mlock(ctypes.c_void_p(address), "
            "ctypes.c_size_t(2**29)))",
            all="check(libc.mlockall(7)); assert False, 'is root'",
        ),
        seen=Seen(never=("sysv: DONE",)),
        on=without_walls("memory", "a segment stays in the machine after the process"),
        restart=True,
    ),
    Cell(
        name="promises of memory (overcommit)",
        code="""
import mmap
kept = []
try:
    for _ in range(64): kept.append(mmap.mmap(-1, 2**36, flags=0x4022))
except (OSError, ValueError, MemoryError) as error:
    print(error)
print(len(kept) >= 0)
for path in ('/proc/sys/vm/overcommit_memory', '/proc/sys/vm/swappiness'):
    try: open(path, 'r+').close(); print('DONE')
    except OSError as error: print('refused', error)
""",
        seen=Seen(text=("True", "refused"), never=("DONE",)),
        on={"local": Seen(text=("True",))},
        restart=True,
    ),
    Cell(
        name="a map of a huge file with holes",
        code="""
import mmap, os
hole = os.open('hole', os.O_RDWR | os.O_CREAT)
try:
    os.ftruncate(hole, 50 * 2**20)
    kept = mmap.mmap(hole, 50 * 2**20)
    os.ftruncate(hole, 0)
    kept[0] = 1
finally:
    os.unlink('hole')
""",
        seen=Seen(status=("died",), note=("signal 7",)),
    ),
)

PROCESSES = (
    Cell(
        name="fork bomb of bash",
        language="bash",
        code=":(){ :|:& };:\nsleep 60",
        limit_s=2,
        needs=("processes",),
        seen=_PROCESSES,
        restart=True,
    ),
    Cell(
        name="fork bomb of Python",
        slow=True,
        code="""
import os, time
while True:
    try: os.fork()
    except OSError: pass
""",
        limit_s=3,
        needs=("processes",),
        seen=_PROCESSES,
        restart=True,
    ),
    Cell(
        name="fork bomb that leaves its session at every step",
        code="""
import os
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
""",
        limit_s=2,
        needs=("processes",),
        seen=_PROCESSES,
        restart=True,
        slow=True,
    ),
    Cell(
        name="threads without end",
        code="""
import threading, time
try:
    for _ in range(5000): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    print('survived')
except RuntimeError as error:
    print(error)
""",
        needs=("processes",),
        seen=Seen(status=("ok", "error", "limit"), hits=("processes",), never=("^survived",)),
        restart=True,
    ),
    Cell(
        name="300 short children",
        language="bash",
        code="for i in $(seq 300); do /bin/true; done; echo done",
        limit_s=30,
        seen=Seen(text=("done",)),
    ),
    Cell(
        name="10,000 short children",
        language="bash",
        code="for i in $(seq 10000); do (:); done; echo done",
        limit_s=60,
        seen=Seen(text=("done",)),
        slow=True,
    ),
    Cell(
        name="a swarm of zombies",
        code="""
import os
for _ in range(30):
    if os.fork() == 0: os._exit(0)
print('done')
""",
        seen=Seen(text=("done",)),
        restart=True,
    ),
    Cell(
        name="children that left: double fork, setsid, nohup, disown",
        language="bash",
        code="""
(setsid sleep 611 & ) ; nohup sleep 612 > /dev/null 2>&1 & disown
setsid nohup bash -c 'trap "" HUP INT TERM; sleep 613; sleep 614' > /dev/null 2>&1 &
python -S -c 'import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100); os.environ.clear(); time.sleep(615)
'
sleep 0.3; echo done
""",
        seen=Seen(text=("done",), note=("still running in the background: pid .*sleep 61",)),
        then=(
            Cell(
                name="they are gone with the kernel",
                code="import os; os._exit(0)",
                seen=Seen(status=("died",)),
            ),
            Cell(
                name="none is left",
                language="bash",
                code="ps -eo args 2>/dev/null | grep '[s]leep 61' || echo none",
                seen=Seen(text=("none",)),
                on={"local": Seen()},  # it sees other sessions' as well
            ),
        ),
    ),
    Cell(
        name="children that a stopped cell left everywhere",
        code="""
import os, time
for number in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            while True: time.sleep(1)
        os._exit(0)
time.sleep(600)
""",
        limit_s=0.7,
        seen=Seen(status=("timeout",)),
        then=(
            Cell(
                name="none is told",
                code="1",
                seen=Seen(text=("1",)),
            ),
        ),
    ),
)

DISK = (
    Cell(
        name="one file that is too large",
        language="bash",
        code="head -c 1G /dev/zero > bomb && echo survived",
        seen=_FILE,
        then=(Cell(name="away", language="bash", code="rm -f bomb", seen=Seen()),),
    ),
    Cell(
        name="a file of 1 TB with nothing in it",
        code="import os; os.truncate(os.open('bomb', os.O_RDWR | os.O_CREAT), 2**40)",
        seen=Seen(status=("error", "died", "limit"), never=("^survived",)),
    ),
    Cell(
        name="many small files",
        code="""
for number in range(60):
    with open(f'bomb-{number}', 'wb') as file: file.write(b'x' * 50_000_000)
print('survived')
""",
        limit_s=20,
        needs=("disk",),
        seen=_DISK,
        then=(Cell(name="away", language="bash", code="rm -f bomb*", seen=Seen()),),
    ),
    Cell(
        name="a file without a name",
        code="""
import os
kept = []
for number in range(60):
    file = open('bomb', 'wb'); os.unlink('bomb'); kept.append(file)
    file.write(b'x' * 50_000_000)
print('survived')
""",
        limit_s=20,
        needs=("disk",),
        seen=_DISK,
        restart=True,
    ),
    Cell(
        name="a full /tmp and a full home",
        language="bash",
        code="""
for f in "$TMPDIR" "$HOME"; do for i in $(seq 20); do
  head -c 99M /dev/zero > "$f/bomb-$i" || break 1
done; [ -e "$f/bomb-20" ] && echo survived; done
rm -f "$TMPDIR"/bomb* "$HOME"/bomb*; true
""",
        limit_s=25,
        needs=("disk",),
        seen=_DISK,
        on={"docker": Seen(text=("No space left on device",), never=("^survived",))},
        restart=True,
    ),
    Cell(
        name="10,000 empty files and a deep folder",
        slow=True,
        code="""
import os
os.mkdir('many'); os.chdir('many')
for number in range(10_000): open(str(number), 'x').close()
for _ in range(2000): os.mkdir('d'); os.chdir('d')
print('done')
""",
        limit_s=20,
        seen=Seen(status=("ok", "error", "limit")),
        then=(
            Cell(
                name="away", language="bash", code="cd /; rm -rf ~-/many", limit_s=20, seen=Seen()
            ),
        ),
    ),
    Cell(
        name="space that is promised and never written",
        code=attempts(
            fallocate="os.posix_fallocate(os.open('bomb', os.O_RDWR | os.O_CREAT), 0, 2**40)",
            quota="check(libc.syscall(179, 0x800007, b'/', 0, 0))",
        ),
        seen=REFUSED,
        then=(Cell(name="away", language="bash", code="rm -f bomb", seen=Seen()),),
    ),
)

DESCRIPTORS = (
    Cell(
        name="descriptors without end",
        code="""
import os
try:
    while True: os.dup(0)
except OSError as error:
    print(error.errno)
""",
        seen=Seen(text=("24",)),
        restart=True,
    ),
    Cell(
        name="epoll, inotify, pipes and queues that leak",
        slow=True,
        code="""
import ctypes, os, select
libc = ctypes.CDLL(None)
for make in (select.epoll, os.pipe, libc.inotify_init, lambda: libc.eventfd(0, 0),
             lambda: libc.msgget(0, 0o1600), lambda: libc.semget(0, 10, 0o1600)):
    kept = []
    try:
        for _ in range(500): kept.append(make())
    except OSError as error:
        print(error)
print('done')
""",
        seen=Seen(text=("done",)),
        on=without_walls("other processes", "queues stay in the machine after the process"),
        restart=True,
    ),
    Cell(
        name="a full queue of signals",
        slow=True,
        code="""
import ctypes, os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
libc = ctypes.CDLL(None)
for _ in range(200_000): libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), 0)
print('done')
""",
        seen=Seen(status=("ok", "died")),  # another thread of the kernel's may take them
        restart=True,
    ),
)

BOUNDS = (
    Cell(
        name="raises its bounds",
        code=attempts(
            files="import resource; resource.setrlimit(resource.RLIMIT_FSIZE, "
            "(resource.RLIM_INFINITY, resource.RLIM_INFINITY))",
            core="import resource; resource.setrlimit(resource.RLIMIT_CORE, (1, 1))",
            nice="os.nice(-10)",
            realtime="os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
            oom="os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')",
            oom_parent="os.write(os.open(f'/proc/{os.getppid()}/oom_score_adj', 1), b'-1000')",
        ),
        seen=REFUSED,
        on=without_walls("limits", "where the runtime is root, its code may raise its own bounds"),
    ),
    Cell(
        name="raises others' bounds",
        code=attempts(
            host="import resource; resource.prlimit(@process@, resource.RLIMIT_NOFILE, (9, 9))",
            priority="os.setpriority(os.PRIO_USER, 0, -5)",
        ),
        seen=REFUSED,
        on=without_walls("other processes"),
    ),
    Cell(
        name="lowers its bounds to nothing",
        slow=True,
        code="""
import resource
for name in ('NOFILE', 'NPROC', 'FSIZE', 'STACK', 'AS', 'DATA'):
    try: resource.setrlimit(getattr(resource, f'RLIMIT_{name}'), (0, 0))
    except Exception as error: pass
""",
        seen=Seen(status=("ok", "error", "died")),
        restart=True,
    ),
    Cell(
        name="lowers its parent's bounds to nothing",
        code="""
import os, resource
for name in ('NOFILE', 'NPROC', 'FSIZE', 'STACK', 'AS', 'DATA'):
    try: resource.prlimit(os.getppid(), getattr(resource, f'RLIMIT_{name}'), (0, 0))
    except Exception as error: print(error)
print('done')
""",
        seen=Seen(status=("ok", "died"), text=("done",)),
        restart=True,
    ),
    Cell(
        name="a bound on processor time of its own",
        code="import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass",
        seen=Seen(status=("died", "limit"), note=("signal (24|9)|processor",)),
        slow=True,
    ),
    Cell(
        name="control groups",
        code="""
import glob, os
print('groups')
for pattern in ('memory.limit_in_bytes', 'memory.max', 'pids.max', 'cgroup.procs',
                'cpu.cfs_quota_us', 'release_agent', 'devices.allow'):
    for place in ('/sys/fs/cgroup', '/sys/fs/cgroup/*', '/sys/fs/cgroup/*/*'):
        for path in glob.glob(f'{place}/{pattern}'):
            try: open(path, 'r+').close(); print('DONE', path)
            except OSError: pass
try: os.mkdir('/sys/fs/cgroup/canary'); print('DONE')
except OSError as error: print('refused', error)
""",
        seen=Seen(text=("groups", "refused"), never=("DONE",)),
        on=without_walls("other processes", "a runtime that is root shares its control groups"),
    ),
    Cell(
        name="a core dump",
        language="bash",
        code="ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls core* 2>/dev/null || echo none",
        seen=Seen(text=("none",)),
        on={"local": Seen()},  # root may raise the bound for itself
    ),
)

CELLS = (*MEMORY, *PROCESSES, *DISK, *DESCRIPTORS, *BOUNDS)
