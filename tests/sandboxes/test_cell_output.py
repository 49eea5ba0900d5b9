"""What comes back from a cell: all of it, in order, or head and true tail with the cut counted."""

from __future__ import annotations

import asyncio
import re

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 20_000


async def test_200_000_fast_lines_keep_the_last_one(box):
    code = "for i in range(200_000): print('line', i)\nprint('score 0.875')"
    execution = await box.python(code, timeout_s=60)
    written = sum(len(f"line {i}\n") for i in range(200_000)) + len("score 0.875\n")
    assert execution.status == "ok"
    assert execution.text.startswith("line 0\nline 1\n")
    assert execution.text.endswith("line 199999\nscore 0.875\n")
    assert f"[... {execution.dropped_chars:,} characters left out ...]" in execution.text
    kept = re.sub(r"\n\[\.\.\. .* left out \.\.\.\]\n", "", execution.text)
    assert len(kept) + execution.dropped_chars == written
    assert len(execution.text) < LIMIT + 100


async def test_a_line_of_megabytes_keeps_head_and_tail(box):
    execution = await box.python("print('first' + 'x' * 5_000_000 + 'last')")
    assert execution.text.startswith("firstxxx")
    assert execution.text.endswith("xxxlast\n")
    assert 5_000_010 - LIMIT <= execution.dropped_chars < 5_000_010


async def test_an_endless_flood_is_cut_and_ends(box):
    execution = await box.python("while True: print('flood' * 1000)", timeout_s=1)
    assert execution.status == "timeout"
    assert execution.dropped_chars > 0
    assert len(execution.text) < LIMIT + 100


async def test_flood_of_bash_keeps_the_tail(box):
    execution = await box.bash("seq 300000; echo score 0.5")
    assert execution.text.startswith("1\n2\n3\n")
    assert execution.text.endswith("300000\nscore 0.5\n")


async def test_everything_keeps_its_order(box):
    code = """
import os, subprocess, sys
print('1', end='')
os.write(1, b'2')
print('3', end='', file=sys.stderr)
subprocess.run(['printf', '4'])
os.system('printf 5')
import ctypes; libc = ctypes.CDLL(None); libc.puts(b'6'); libc.fflush(None)
print('7')
display(8)
!printf 9
'value'
"""
    execution = await box.python(code)
    assert execution.text == "123456\n7\n8\n9'value'\n"


async def test_output_just_before_death_is_there(box):
    code = "import os; print('a' * 50_000, end='', flush=True); print('last', end=''); os._exit(1)"
    execution = await box.python(code)
    assert execution.status == "died"
    assert execution.text.endswith("last")


async def test_bad_bytes_are_replaced(box):
    execution = await box.python(r"import os; os.write(1, b'a\xffb\n'); print('after')")
    assert execution.text.startswith("a\ufffdb\nafter\n")
    assert (await box.bash(r"printf 'a\377b\n'")).text == "a\ufffdb\n"


async def test_a_character_cut_between_two_writes_is_whole(box):
    code = r"""
import os, time
for part in (b'\xf0\x9f', b'\x98', b'\x80\n'):
    os.write(1, part); time.sleep(0.05)
None
"""
    assert (await box.python(code)).text == "\U0001f600\n"


@pytest.mark.parametrize("text", ["naïve ☃ 😀 日本", "\\ud800", "tab\\tend"])
async def test_unicode_prints(box, text):
    execution = await box.python(f"print('{text}')")
    assert execution.status == "ok"
    assert execution.text.strip()


async def test_odd_code_is_still_run_or_told(box):
    assert (await box.python("s = '\ud800'; print('ok')")).text == "ok\n"
    assert (await box.python("print('a\x00b')")).status in ("ok", "error")
    assert (await box.bash("echo a # \x00 b")).status in ("ok", "error")


async def test_progress_bars_show_their_last_state(box):
    code = """
import sys
for i in range(50_001):
    sys.stderr.write(f'\\r{i / 500:.0f}% done')
print()
print('next\\r\\nline')
"""
    execution = await box.python(code)
    assert execution.text == "100% done\nnext\nline\n"
    assert execution.dropped_chars == 0


async def test_colours_are_dropped(box):
    execution = await box.bash(r"printf '\033[1;31mred\033[0m \033]0;title\007plain\n'")
    assert execution.text == "red plain\n"


async def test_rich_outputs_are_text(box):
    code = """
import base64, pandas as pd
from IPython.display import HTML, Image, Markdown, clear_output, display
dot = base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhg'
                       'GAWjR9awAAAABJRU5ErkJggg==')
display(pd.DataFrame({'a': [1, 2]}))
display(Image(dot))
display(HTML('<b>bold</b> &amp; more'), Markdown('# head'))
clear_output()
pd.Series([0.5], name='s')
"""
    execution = await box.python(code)
    lines = execution.text.splitlines()
    assert lines[:3] == ["   a", "0  1", "1  2"]
    assert lines[3].startswith("[image]")
    assert lines[4:6] == ["bold  & more", "# head"]
    assert lines[6].split() == ["0", "0.5"]


async def test_tracebacks_are_plain_and_last(box):
    code = "print('before')\ndef f(x):\n    return 1 / x\nf(0)"
    execution = await box.python(code)
    assert execution.status == "error"
    assert execution.text.startswith("before\n")
    assert execution.text.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "return 1 / x" in execution.text
    assert "\x1b" not in execution.text


async def test_long_tracebacks_are_cut(box):
    deep = await box.python(
        "def f(n): return f(n + 1) if n % 2 else g(n)\ng = lambda n: f(n + 1)\nf(0)"
    )
    assert deep.status == "error"
    assert "RecursionError" in deep.text[-200:]
    assert len(deep.text) < 10_000
    wide = await box.python("raise ValueError('x' * 1_000_000 + 'the end')")
    assert wide.text.rstrip().endswith("the end")
    assert "characters left out" in wide.text
    assert len(wide.text) < 10_000


async def test_syntax_errors_point_at_the_line(box):
    execution = await box.python("x = 1\nif x\n    pass")
    assert execution.status == "error"
    assert "if x" in execution.text
    assert "SyntaxError" in execution.text


@pytest.mark.parametrize("code", ["input('name? ')", "import getpass; getpass.getpass()"])
async def test_input_is_explained(box, code):
    execution = await box.python(code)
    assert execution.status == "error"
    assert "Nobody can answer" in execution.text
    assert "kernel_process" not in execution.text


async def test_stdin_is_empty_everywhere(box):
    execution = await box.bash("read -r x; echo read $?; cat; python -c 'input()'; echo done")
    assert execution.text.startswith("read 1\n")
    assert "EOFError" in execution.text
    assert execution.text.endswith("done\n")
    assert (await box.python("import sys; sys.stdin.read()")).text == "''\n"


async def test_prompts_and_pagers_are_off(box):
    execution = await box.bash("echo $GIT_TERMINAL_PROMPT $PAGER $PIP_NO_INPUT $MPLBACKEND")
    assert execution.text == "0 cat 1 Agg\n"


async def test_show_does_not_wait(box):
    code = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show(); plt.savefig('a.png')"
    execution = await box.python(
        f"try:\n    {code}\nexcept ModuleNotFoundError:\n    print('no matplotlib')"
    )
    assert execution.status == "ok"


async def test_code_of_any_length(box):
    literal = "ab" * 70_000
    assert (await box.python(f"x = '{literal}'; print(len(x))")).text == "140000\n"
    assert (await box.bash(f"x='{literal}'; echo ${{#x}}")).text == "140000\n"
    script = await box.bash(f"cat > big.txt <<'END'\n{literal}\nEND\nwc -c < big.txt")
    assert script.text.strip() == "140001"


@pytest.mark.parametrize(
    ("code", "text", "note"),
    [
        ("echo out; echo err >&2; exit 3", "out\nerr\n", "exit code 3"),
        ("false", "", "exit code 1"),
        ("no_such_program", "command not found", "exit code 127"),
        ("kill -9 $$", "", "signal 9"),
        ("if then", "syntax error", "exit code 2"),
        ("set -euo pipefail; echo a; false | cat; echo b", "a\n", "exit code 1"),
    ],
)
async def test_bash_failures_are_errors_with_the_code(box, code, text, note):
    execution = await box.bash(code)
    assert execution.status == "error"
    assert text in execution.text
    assert note in execution.note


async def test_bash_starts_in_the_workspace_each_time(box):
    await box.bash("cd /; export LEFT=1")
    await box.python("import os; os.chdir('/')")
    execution = await box.bash("ls input/train.csv; echo [$LEFT]")
    assert execution.text == "input/train.csv\n[]\n"
    await box.bash("echo written > from_bash.txt")
    assert (box.workspace / "from_bash.txt").read_text() == "written\n"


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.close(1); os.close(2)",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import os; n = os.open(os.devnull, os.O_WRONLY); os.dup2(n, 1); os.dup2(n, 2)",
        "import os; os.set_blocking(1, False); print('x' * 1_000_000)",
    ],
    ids=["close-fd", "close-stream", "redirect", "non-blocking"],
)
async def test_closed_or_changed_streams_come_back(box, code):
    assert (await box.python(code, timeout_s=10)).status == "ok"
    assert (await box.python("print('back')")).text == "back\n"
    assert (await box.bash("echo back; echo too >&2")).text == "back\ntoo\n"


async def test_background_output_is_given_with_the_next_cell(box):
    code = """
import threading, time
def work():
    time.sleep(0.3); print('from a thread')
threading.Thread(target=work).start()
print('cell')
"""
    assert (await box.python(code)).text == "cell\n"
    await asyncio.sleep(0.6)
    execution = await box.python("print('own')")
    assert execution.text == (
        "[written in the background since the last cell]\nfrom a thread\n[this cell]\nown\n"
    )
    assert (await box.python("print('own')")).text == "own\n"


async def test_a_background_flood_neither_blocks_nor_fills_memory(box):
    execution = await box.bash("yes flood & echo $! > yes.pid; echo started")
    assert execution.status == "ok"
    await asyncio.sleep(0.5)
    execution = await box.python("print('own')")
    assert execution.status == "ok"
    assert execution.dropped_chars > 0
    assert len(execution.text) < 1.3 * LIMIT
    await box.bash("kill $(cat yes.pid)")
    await box.python("")


async def test_the_namespace_is_the_users(box):
    execution = await box.python("print(sorted(n for n in globals() if not n.startswith('_')))")
    for name in ("run_bash", "folder", "Streams", "SandboxKernel", "Path", "os_module"):
        assert f"'{name}'" not in execution.text
    (box.workspace / "solution_x.py").write_text("value = 3\n")
    assert (await box.python("import solution_x; solution_x.value")).text == "3\n"
