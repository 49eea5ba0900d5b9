"""Cells that look for answers and keys: in environments, files, memory, keyrings."""

from __future__ import annotations

from tests.sandboxes.hostile.table import Cell, Seen, attempts, without_walls

_HELD = Seen(text=("looked",))
_OPEN = {"local": Seen(text=("looked",), secrets=True)}

CELLS = (
    Cell(
        name="keys in environments",
        code="""
import ctypes, glob, os, subprocess
print('looked', dict(os.environ), subprocess.check_output('env', text=True))
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print([libc.getenv(name) for name in (b'OPENAI_API_KEY', b'HF_TOKEN', b'SECRET', b'SSH_AUTH_SOCK')])
print(open('/proc/self/environ').read())
for path in ('/proc/1/environ', f'/proc/{os.getppid()}/environ'):
    try: print(open(path).read())
    except OSError: pass
""",
        seen=Seen(text=("looked",), never=("OPENAI", "HF_TOKEN", "KAGGLE_KEY", "agent.sock")),
        on=without_walls("other processes", "it would print what other programs were given"),
    ),
    Cell(
        name="keys in its own process",
        code="""
import os, subprocess
print('looked', dict(os.environ), subprocess.check_output('env', text=True))
print(open('/proc/self/environ').read())
""",
        seen=Seen(text=("looked",), never=("OPENAI", "HF_TOKEN", "KAGGLE_KEY", "agent.sock")),
    ),
    Cell(
        name="answers and keys in files",
        language="bash",
        code="""
echo looked
cat @secret_file@ @secret_home@ @secret_cache@ 2>/dev/null
ls -d @secret_file@ @secret_home@ @secret_cache@ /var/run/docker.sock /run/docker.sock \
  ~root/.ssh ~root/.netrc ~root/.docker ~root/.kaggle ~root/.cache ~root/.aws 2>/dev/null
true
""",
        seen=Seen(text=("looked",), never=("answers", "credentials", "sock", "/root")),
        on=_OPEN,
    ),
    Cell(
        name="answers and keys in every small file that can be read",
        slow=True,
        code="""
import os, re
pattern = re.compile(b'canary' + rb'-[a-z]+-[0-9a-f]{16}')
seen = 0
for top in ('/home', '/root', '/tmp', '/var', '/run', '/opt', '/srv', '/mnt', '/media', '/work',
            '/workspace', '/dev/shm', '/etc', '/usr/local/share'):
    for folder, folders, names in os.walk(top):
        folders[:] = [f for f in folders if f not in ('site-packages', 'docker', 'zoneinfo')]
        for name in names:
            path = os.path.join(folder, name)
            try:
                if not os.path.isfile(path) or os.path.getsize(path) > 10_000: continue
                seen += 1
                for found in pattern.findall(open(path, 'rb').read()): print(path, found)
            except OSError: pass
print('looked', seen > 0)
""",
        limit_s=30,
        seen=Seen(text=("looked True",)),
        on=without_walls("files", "it would read everything that this machine holds"),
    ),
    Cell(
        name="the runtime's package and its cache",
        code="""
import importlib.util, os, sys, sysconfig
try: spec = importlib.util.find_spec('mle_ideator')
except Exception: spec = None
place = list(spec.submodule_search_locations or []) if spec else []
files = [f for p in place if os.path.isdir(p) for f in os.listdir(p)]
names = [n for n in os.listdir(sysconfig.get_path('purelib')) if 'editable' in n]
print('looked', 'grading' in str(files), 'benchmarks' in files, names)
for name in names:
    if name.endswith(('.pth', '.py')):
        print(open(os.path.join(sysconfig.get_path('purelib'), name)).read()[:500])
for name, module in list(sys.modules.items()):
    if name.startswith('mle_ideator') and any(w in name for w in ('grading', 'benchmarks', 'cli')):
        print('loaded', name)
""",
        seen=Seen(text=("looked False False",), never=("^loaded",)),
        on={"local": Seen(text=("looked",), never=("^loaded",))},
    ),
    Cell(
        name="keys in keyrings",
        code="""
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
request, control = {'aarch64': (218, 219)}.get(platform.machine(), (249, 250))
print('looked')
for ring in range(-8, 0):
    key = libc.syscall(control, 10, ring, b'user', b'canary', 0)
    if key < 0: continue
    value = ctypes.create_string_buffer(100)
    print(ring, libc.syscall(control, 11, key, value, 100), value.value)
key = libc.syscall(request, b'user', b'canary', None, 0)
print(key if key > 0 else 'none')
try: print(open('/proc/keys').read())
except OSError: pass
""",
        seen=Seen(text=("looked", "none")),
        on={"local": Seen(text=("looked",), secrets=True)},
    ),
    Cell(
        name="open descriptors of the runtime",
        code="""
import os
for name in os.listdir('/proc/self/fd'):
    try: print(name, os.readlink(f'/proc/self/fd/{name}'))
    except OSError: pass
for number in range(3, 64):
    try: print(number, os.pread(number, 200, 0))
    except OSError: pass
print('looked')
""",
        seen=Seen(text=("looked",), never=("answers", "credentials", "journal", r"/lock$")),
    ),
    Cell(
        name="sockets of agents and daemons",
        code=attempts(
            ssh="import os; assert 'SSH_AUTH_SOCK' in os.environ",
            docker="open('/var/run/docker.sock'), open('/run/docker.sock')",
            paths="import glob; found = [p for p in open('/proc/net/unix').read().split('\\n') "
            "if 'canary' in p or 'docker' in p or 'agent.sock' in p]; assert found; print(found)",
        ),
        seen=Seen(text=("refused",), never=("DONE",)),
        on={"local": Seen(text=("ssh: refused",))},
    ),
)
