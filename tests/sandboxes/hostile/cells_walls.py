"""Cells that try to get out: files, processes, the network, the machine's kernel, the time."""

from __future__ import annotations

from tests.sandboxes.hostile.table import (
    REFUSED,
    Cell,
    Seen,
    attempts,
    without_walls,
)

_FILES = without_walls("files")
_OTHERS = without_walls("other processes")

FILES = (
    Cell(
        name="writes the interpreter, its libraries, the system",
        code=attempts(
            exe="os.close(os.open('/proc/self/exe', os.O_WRONLY))",
            program="os.close(os.open(sys.executable, os.O_WRONLY))",
            beside="open(os.path.join(sys.prefix, 'lib', 'canary'), 'x').close()",
            library="os.close(os.open(os.__file__, os.O_WRONLY))",
            packages="import numpy; p = os.path.dirname(os.path.dirname(numpy.__file__)); "
            "open(p + '/canary.pth', 'x').close()",
            numpy="import numpy; os.close(os.open(numpy.__file__, os.O_WRONLY | os.O_APPEND))",
            rename="import numpy; d = os.path.dirname(numpy.__file__); os.rename(d, d + '2')",
            chmod="os.chmod(sys.executable, 0o777)",
            preload="open('/etc/ld.so.preload', 'x').close()",
            passwd="os.close(os.open('/etc/passwd', os.O_WRONLY | os.O_APPEND))",
            bin="open('/usr/bin/canary', 'x').close()",
            root="open('/canary', 'x').close()",
        ),
        seen=REFUSED,
        on=_FILES,
    ),
    Cell(
        name="programs with rights of their own",
        language="bash",
        code="""
for p in "su -c id" "sudo -n id" "pkexec id" "newgrp"; do
  command -v ${p%% *} > /dev/null && echo id | timeout 2 $p 2>&1 | head -2
done
grep -E 'CapEff|NoNewPrivs' /proc/self/status; id -u
""",
        seen=Seen(text=(r"NoNewPrivs:\t1", r"CapEff:\t0000000000000000"), never=("uid=0",)),
        on={"local": Seen(text=(r"NoNewPrivs:\t1",))},
    ),
    Cell(
        name="makes devices and programs with rights",
        code=attempts(
            block="import stat; os.mknod('disk', 0o660 | stat.S_IFBLK, os.makedev(254, 0))",
            character="import stat; os.mknod('memory', 0o660 | stat.S_IFCHR, os.makedev(1, 1))",
            owner="open('mine', 'w').close(); os.chown('mine', 0, 0); "
            "assert os.stat('mine').st_uid != os.getuid(), 'already its own'",
            capability="open('mine', 'w').close(); os.setxattr('mine', 'security.capability', "
            "bytes.fromhex('0100000200200000000000000000000000000000'))",
            disk="os.close(os.open('/dev/vda', os.O_RDONLY))",
            memory="os.close(os.open('/dev/mem', os.O_RDONLY))",
            log="os.close(os.open('/dev/kmsg', os.O_RDONLY))",
        ),
        seen=REFUSED,
        on=_FILES,
    ),
    Cell(
        name="links out of the workspace",
        language="bash",
        code="""
ln -sfn / out; ln -sfn @secret_file@ answers.csv; ln -sfn /etc/shadow solution.py
cat answers.csv out/@secret_home@ out/proc/1/root/@secret_file@ ../../../..@secret_file@ 2>/dev/null
cat solution.py 2>/dev/null; rm -f out answers.csv solution.py; echo done
""",
        seen=Seen(text=("done",), never=("root:",)),
        on={"local": Seen(text=("done",), secrets=True)},
    ),
    Cell(
        name="hard links to the inputs",
        code="""
import os
try:
    os.link('input/train.csv', 'mine.csv')
    os.chmod('mine.csv', 0o600)
    open('mine.csv', 'a').write('changed')
    print('written')
except OSError as error:
    print('refused', error)
finally:
    if os.path.exists('mine.csv'): os.unlink('mine.csv')
""",
        seen=Seen(text=("refused",)),
        on={"local": Seen(text=("written",), note=("inputs are read-only: put back",))},
        then=(
            Cell(
                name="the inputs are as given",
                code="open('input/train.csv').read()",
                seen=Seen(text=(r"'id,x,target\\n1,0.5,1\\n2,0.25,0\\n'",)),
            ),
        ),
    ),
    Cell(
        name="mounts over the inputs, unmounts, bind mounts",
        code=attempts(
            tmpfs="check(libc.mount(b'none', b'input', b'tmpfs', 0, None))",
            bind="check(libc.mount(b'/', b'input', None, 4096, None))",
            writable="check(libc.mount(None, b'input', None, 4096 | 32, None))",
            root="check(libc.mount(None, b'/', None, 4096 | 32, None))",
            unmount="check(libc.umount2(b'input', 2))",
            proc="check(libc.mount(b'proc', b'/proc', b'proc', 0, None))",
            open_tree="call(428, -100, b'/', 1)",
            fsopen="call(430, b'tmpfs', 0)",
        ),
        seen=REFUSED,
        on=without_walls("files"),
    ),
    Cell(
        name="deletes the workspace",
        code="""
import os, shutil
here = os.getcwd()
assert here.endswith('workspace')
shutil.rmtree(here, ignore_errors=True)
try: os.rmdir(here)
except OSError: pass
print('deleted')
""",
        seen=Seen(status=("ok", "error"), text=("deleted",)),
        restart=True,  # this one's working directory is no more
    ),
    Cell(
        name="replaces the workspace by a link to the host",
        code="""
import os
here = os.getcwd()
try:
    os.rename(here, here + '-moved'); os.symlink('@secret_file@'.rpartition('/')[0], here)
    print('replaced')
except OSError as error: print('refused', error)
""",
        seen=Seen(status=("ok", "error"), text=("refused",)),
        on={"local": Seen(status=("ok", "error"), text=("replaced",))},
        restart=True,
    ),
    Cell(
        name="closes the workspace, the home, /tmp",
        slow=True,
        code="""
import os, tempfile
for folder in (os.getcwd(), os.path.expanduser('~'), tempfile.gettempdir()):
    try: os.chmod(folder, 0)
    except OSError as error: print(error)
""",
        seen=Seen(status=("ok", "error")),
        restart=True,
    ),
    Cell(
        name="makes the workspace unchangeable",
        language="bash",
        code="touch fixed; chattr +i fixed . 2>&1; rm -f fixed && echo gone",
        seen=Seen(text=("gone",)),
        on=without_walls("files", "root could make files that only root can delete"),
    ),
)

PROCESSES = (
    Cell(
        name="kills everything that it can reach",
        language="bash",
        code="kill -9 -1",
        limit_s=5,
        seen=Seen(status=("died", "error")),
        on=_OTHERS,
        restart=True,
    ),
    Cell(
        name="stops everything that it can reach",
        slow=True,
        language="bash",
        code="kill -STOP -1",
        limit_s=1,
        seen=Seen(status=("timeout", "died")),
        on=_OTHERS,
        restart=True,
    ),
    Cell(
        name="terminates everything that it can reach",
        slow=True,
        language="bash",
        code="kill -TERM -1; sleep 0.2; kill -INT -1; kill -HUP -1; kill -QUIT -1; sleep 60",
        limit_s=2,
        seen=Seen(status=("died", "error", "timeout")),
        on=_OTHERS,
        restart=True,
    ),
    Cell(
        name="kills its parent",
        code="import os, time; os.kill(os.getppid(), 9); time.sleep(1); print('on')",
        seen=Seen(status=("ok", "died", "error")),
        restart=True,
    ),
    Cell(
        name="stops its parent",
        slow=True,
        code="import os, time; os.kill(os.getppid(), 19); time.sleep(0.5); print('on')",
        limit_s=3,
        seen=Seen(status=("ok", "died", "error", "timeout")),
        restart=True,
    ),
    Cell(
        name="kills its group and its session",
        slow=True,
        language="bash",
        code="kill -9 -- -$PPID $PPID 0; sleep 60",
        limit_s=3,
        seen=Seen(status=("died", "error")),
        restart=True,
    ),
    Cell(
        name="the host's processes",
        code=attempts(
            kill="os.kill(@process@, 9)",
            runtime="os.kill(@runtime_pid@, 0)",
            descriptor="os.pidfd_open(@process@)",
            environment="assert b'SECRET' in open('/proc/@process@/environ', 'rb').read()",
            trace="check(libc.ptrace(0x4206, @process@, 0, 0))",
        ),
        seen=REFUSED,
        on=_OTHERS,
    ),
    Cell(
        name="/proc of all others",
        code="""
import glob, os, re
own = {os.getpid()}
print('looked')
for path in sorted(glob.glob('/proc/[0-9]*')):
    if int(path[6:]) in own: continue
    for name in ('environ', 'cmdline', 'maps', 'cwd/answers.csv', 'root/@secret_file@',
                 'root/etc/shadow', 'stack', 'auxv'):
        try: data = open(f'{path}/{name}', 'rb').read(200_000)
        except OSError: continue
        for found in re.findall(rb'canary-[a-z]+-[0-9a-f]{16}|root:[^:]*:[^\\n]*', data):
            print(path, name, found)
    try: names = os.listdir(f'{path}/fd')
    except OSError: continue
    for name in names:
        try: print(path, name, os.readlink(f'{path}/fd/{name}'))
        except OSError: pass
""",
        seen=Seen(text=("looked",), never=("root:[^x*!]",)),
        on=_OTHERS,
    ),
    Cell(
        name="looks into its ancestors",
        code="""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(64)
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
def attempt(name, result): print(name, 'DONE' if result >= 0 and pid > 1 else 'refused')
# bubblewrap's first process holds nothing and can not be traced out of its walls
for pid in sorted({os.getppid(), 1}):
    attempt('seize', libc.ptrace(0x4206, pid, 0, 0))
    here, there = Vector(ctypes.addressof(buffer), 64), Vector(id(os), 64)
    attempt('read', libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
    for file in ('mem', 'environ', 'maps', 'fd/0', 'fd/1', 'root/etc/passwd', 'cwd/input'):
        try: attempt(file, os.open(f'/proc/{pid}/{file}', os.O_RDONLY | os.O_NONBLOCK))
        except OSError as error: attempt(file, -1)
    try: attempt('stolen', libc.syscall(438, os.pidfd_open(pid), 0, 0))
    except OSError: attempt('stolen', -1)
""",
        seen=REFUSED,
        on=without_walls("other processes"),
    ),
    Cell(
        name="its own memory holds nothing of the runtime",
        slow=True,
        code="""
import re
pattern = re.compile(b'canary' + rb'-[a-z]+-[0-9a-f]{16}')
memory, found = open('/proc/self/mem', 'rb', 0), set()
for line in open('/proc/self/maps'):
    span, rights, *_ = line.split()
    start, end = (int(x, 16) for x in span.split('-'))
    if 'r' not in rights or end - start > 2**28 or '[v' in line: continue
    try:
        memory.seek(start); found |= set(pattern.findall(memory.read(end - start)))
    except (OSError, ValueError, OverflowError): continue
print('looked', found)
""",
        limit_s=20,
        seen=Seen(text=("looked",)),
    ),
)

NETWORK = (
    Cell(
        name="the network by every route",
        code=attempts(
            tcp="socket.create_connection(('127.0.0.1', @tcp@), 1)",
            any="socket.create_connection(('0.0.0.0', @any@), 1)",
            tcp6="socket.create_connection(('::1', @tcp6@), 1)",
            outside="socket.create_connection(('192.0.2.1', 80), 0.5)",
            name="socket.getaddrinfo('example.org', 80)",
            unix="s = socket.socket(socket.AF_UNIX); s.connect('\\0@abstract@')",
            agent="s = socket.socket(socket.AF_UNIX); s.connect('@agent_socket@')",
            udp="s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('127.0.0.1', @udp@)); "
            "s.send(b'x'); s.settimeout(0.3); s.recv(1)",
            raw="socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
            packet="socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)",
            interfaces="names = {n for _, n in socket.if_nameindex()} - {'lo'}; assert names",
            docker="s = socket.socket(socket.AF_UNIX); s.connect('/var/run/docker.sock')",
        ),
        limit_s=20,
        seen=REFUSED,
        on=without_walls("network", "the code could reach what this machine reaches"),
    ),
    Cell(
        name="sockets to the machine that no namespace holds",
        code=attempts(
            vsock="socket.socket(40, socket.SOCK_STREAM)",
            vsock_datagram="socket.socket(40, socket.SOCK_DGRAM)",
            bluetooth="socket.socket(31, socket.SOCK_RAW, 1)",
            crypto="socket.socket(38, socket.SOCK_SEQPACKET)",
            infiniband="socket.socket(27, socket.SOCK_RAW, 0)",
            qipcrtr="socket.socket(42, socket.SOCK_DGRAM)",
        ),
        seen=REFUSED,
        on=without_walls("network"),
    ),
    Cell(
        name="sets up a network of its own",
        code=attempts(
            up="import fcntl, struct; s = socket.socket(type=socket.SOCK_DGRAM); "
            "fcntl.ioctl(s, 0x8914, struct.pack('16sh22x', b'eth0', 1))",
            tun="import fcntl, struct; t = os.open('/dev/net/tun', os.O_RDWR); "
            "fcntl.ioctl(t, 0x400454ca, struct.pack('16sH22x', b'tun0', 1))",
            link="s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.settimeout(1); "
            "s.send(bytes.fromhex('20000000100005060000000000000000' + '0000000001' + 22 * '0')); "
            "reply = s.recv(4096); assert int.from_bytes(reply[16:20], 'little', signed=True) == 0",
            host="check(libc.setns(os.open('/proc/1/ns/net', os.O_RDONLY), 0))",
        ),
        seen=REFUSED,
        on=without_walls("network"),
    ),
)

KERNEL = (
    Cell(
        name="namespaces of its own",
        code=attempts(
            user="""
pid = os.fork()
if pid == 0: os._exit(0 if libc.unshare(0x10000000) == 0 else 1)
assert os.waitpid(pid, 0)[1] == 0, 'unshare'
""",
            clone="""
pid = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
check(pid); os.waitpid(pid, 0)
""",
            mounts="check(libc.unshare(0x20000))",
            network="check(libc.unshare(0x40000000))",
            processes="check(libc.unshare(0x20000000))",
            enter="check(libc.setns(os.open('/proc/1/ns/mnt', os.O_RDONLY), 0))",
            root="os.chroot('/')",
            pivot="call(155, b'/', b'/')",
        ),
        seen=REFUSED,
        on=without_walls("files", "a runtime that is root could leave its own namespaces"),
    ),
    Cell(
        name="the system calls that holes are in",
        code=attempts(
            bpf="call(321, 0, ctypes.create_string_buffer(bytes([1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, "
            "0, 1, 0, 0, 0]) + bytes(112), 128), 128)",
            perf="call(298, ctypes.create_string_buffer(bytes([1, 0, 0, 0, 120, 0, 0, 0]) + "
            "bytes(112), 120), 0, -1, -1, 0)",
            module="call(175, b'x', 1, b'')",
            kexec="call(246, 0, 0, 0, 0)",
            reboot="call(169, 0xfee1dead, 672274793, 0, 0)",
            swap="check(libc.swapoff(b'/nothing'))",
            ports="check(libc.iopl(3))",
            handle="call(304, -100, b'', 0)",
            log="call(103, 2, ctypes.create_string_buffer(99), 99)",
            accounting="check(libc.acct(b'/tmp/acct'))",
        ),
        seen=REFUSED,
        on=without_walls("other processes", "a runtime that is root may call them"),
    ),
    Cell(
        name="page faults handled by itself (userfaultfd)",
        code=attempts(faults="call(323, 0)"),
        seen=REFUSED,
        on={"local": Seen()},
    ),
    Cell(
        name="the terminal of the host",
        code=attempts(
            tty="os.close(os.open('/dev/tty', os.O_RDWR))",
            push="import fcntl, termios; [fcntl.ioctl(n, termios.TIOCSTI, b'x') for n in range(3)]",
            control="import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 1)",
        ),
        seen=REFUSED,
        on={"local": Seen(text=("tty: refused", "push: refused", "control: refused"))},
    ),
    Cell(
        name="sets the time",
        code=attempts(
            clock="import time; time.clock_settime(time.CLOCK_REALTIME, 86400.0)",
            day="past = (ctypes.c_long * 2)(86400, 0); "
            "check(libc.settimeofday(ctypes.byref(past), None))",
            date="import subprocess; subprocess.run(['date', '-s', '2001-01-01'], check=True)",
            adjust="import struct; check(libc.adjtimex(ctypes.create_string_buffer("
            "struct.pack('I', 0x2000) + bytes(300))))",
            zone="os.utime('/etc/localtime', (0, 0))",
        ),
        seen=REFUSED,
        on=without_walls("other processes", "a runtime that is root could set the machine's clock"),
    ),
    Cell(
        name="the machine's name and settings",
        code=attempts(
            name="socket.sethostname('canary')",
            setting="open('/proc/sys/kernel/core_pattern', 'w').write('|/bin/sh')",
            trigger="open('/proc/sysrq-trigger', 'w').close()",
            cores="os.close(os.open('/proc/kcore', os.O_RDONLY)); "
            "assert len(open('/proc/kcore', 'rb').read(64)) > 0",
            symbols="assert any(int(line[:16], 16) for line in open('/proc/kallsyms'))",
            keys="assert len(open('/proc/keys').read()) > 0",
            firmware="assert os.listdir('/sys/firmware')",
            debug="assert os.listdir('/sys/kernel/debug')",
        ),
        seen=REFUSED,
        on=_FILES,
    ),
)

CELLS = (*FILES, *PROCESSES, *NETWORK, *KERNEL)
