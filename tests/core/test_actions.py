"""What models write: what is run of it, what is refused, and in which words."""

import json
import re
import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mle_ideator.actions import PARAMETERS, as_call, as_tag, fenced, read_action, tidy
from mle_ideator.messages import Completion, ToolCall
from mle_ideator.types import Execute, Finish, HelpRequest, Malformed, SeekHelp


def read(text, finish_reason="stop", dropped=(), tools=False, calls=()):
    reply = Completion(text=text, finish_reason=finish_reason, dropped=dropped, calls=calls)
    return read_action(reply, tools=tools)


def python(code):
    return Execute("python", code)


def bash(code):
    return Execute("bash", code)


GOOD = {
    "a tag": ("<execute_python>\nprint(1)\n</execute_python>", python("print(1)")),
    "bash": ("<execute_bash>\nls -l\n</execute_bash>", bash("ls -l")),
    "on one line": ("<execute_bash>ls</execute_bash>", bash("ls")),
    "code on the opener's line": (
        "<execute_python>x = 1\nprint(x)\n</execute_python>",
        python("x = 1\nprint(x)"),
    ),
    "closer at the end of the last line": (
        "<execute_python>\nprint(1)</execute_python>\n",
        python("print(1)"),
    ),
    "upper case": ("<EXECUTE_PYTHON>\n1\n</Execute_Python>", python("1")),
    "blanks": ("< execute_python >\n1\n</ execute_python >", python("1")),
    "a hyphen": ("<execute-bash>\nls\n</execute-bash>", bash("ls")),
    "attributes": ('<execute_python lang="py" id=3>\n1\n</execute_python>', python("1")),
    "windows": ("<execute_python>\r\na\r\nb\r\n</execute_python>\r\n", python("a\nb")),
    "indented as a whole": (
        "  <execute_python>\n    for i in x:\n        y\n  </execute_python>",
        python("for i in x:\n    y"),
    ),
    "ended by a stop": ("<execute_python>\nprint(1)", python("print(1)")),
    "finish ended by a stop": ("<finish>done", Finish("done")),
    "finish": ("<finish>done</finish>", Finish("done")),
    "finish, empty": ("<finish/>", Finish("")),
    "a fence": ("```python\n1\n```", python("1")),
    "a fence in py": ("```py\n1\n```\nand so on", python("1")),
    "a fence in sh": ("~~~sh\nls\n~~~", bash("ls")),
    "a fence in shell": ("```shell\nls\n```", bash("ls")),
    "a fence with more info": ('```python title="a.py"\n1\n```', python("1")),
    "a fence in braces": ("```{.python}\n1\n```", python("1")),
    "a longer fence": ("````python\ns = '''\n```\n'''\n````", python("s = '''\n```\n'''")),
    "an indented fence": ("1. so:\n\n   ```python\n   1\n   ```", python("1")),
    "tildes around backticks": ("~~~bash\necho '```'\n```\n~~~", bash("echo '```'\n```")),
    "backticks in a string": ('```python\ns = "```"\n```', python('s = "```"')),
    "a fence in a docstring": (
        '```python\ndef f():\n    """\n    ```\n    x\n    ```\n    """\n```',
        python('def f():\n    """\n    ```\n    x\n    ```\n    """'),
    ),
    "a fence in a heredoc": (
        "```bash\ncat > README.md <<'EOF'\n```\nx\n```\nEOF\nls\n```",
        bash("cat > README.md <<'EOF'\n```\nx\n```\nEOF\nls"),
    ),
    "the one fence that can be run": (
        "It said\n```\n  1 2\n```\nso\n```json\n{}\n```\nnow\n```python\n3\n```",
        python("3"),
    ),
    "a fence in a tag": ("<execute_bash>\n```bash\nls\n```\n</execute_bash>", bash("ls")),
    "a bare fence in a tag": ("<execute_python>\n~~~\n1\n~~~\n</execute_python>", python("1")),
    "a fence in a tag, stopped": ("<execute_python>\n```py\n1\n```", python("1")),
    "a closer in a string": (
        's = """\n</execute_python>\n"""'.join(["<execute_python>\n", "\n</execute_python>"]),
        python('s = """\n</execute_python>\n"""'),
    ),
    "an opener in a string": (
        '<execute_python>\ns = """\n<finish>\n"""\n</execute_python>',
        python('s = """\n<finish>\n"""'),
    ),
    "a tag in a comment": (
        "<execute_python>\n# then </execute_python>\n1\n</execute_python>",
        python("# then </execute_python>\n1"),
    ),
    "an example in a fence first": (
        "Like\n```\n<execute_bash>\nrm -r x\n</execute_bash>\n```\n"
        "<execute_bash>\nls\n</execute_bash>",
        bash("ls"),
    ),
    "a heredoc that holds tags": (
        "<execute_bash>\ncat > p.txt <<EOF\n</execute_bash>\nEOF\n</execute_bash>",
        bash("cat > p.txt <<EOF\n</execute_bash>\nEOF"),
    ),
    "closer at the end of a code line": (
        "<execute_bash>\npython solution.py</execute_bash>\n\nThat shows the score.",
        bash("python solution.py"),
    ),
    "closer within a line": ("<execute_bash>\nls</execute_bash> and so on", bash("ls")),
    "closer at the end of a line, then another action": (
        "<execute_python>\nprint(1)</execute_python>\n<execute_bash>\nls\n</execute_bash>",
        python("print(1)"),
    ),
    "closers in quotes, comments and heredocs": (
        "<execute_bash>\necho 'a\nb</execute_bash>\n' # </execute_bash>\n"
        "cat <<E\nc</execute_bash>\nE\n</execute_bash>\nSo.",
        bash("echo 'a\nb</execute_bash>\n' # </execute_bash>\ncat <<E\nc</execute_bash>\nE"),
    ),
    "a closer in a string of one line": (
        "<execute_python>print('</execute_python>')</execute_python>",
        python("print('</execute_python>')"),
    ),
    "an apostrophe alone": ("<execute_bash>echo it's</execute_bash>\nSo.", bash("echo it's")),
    "a byte order mark": ("\ufeff<execute_bash>\nls\n</execute_bash>", bash("ls")),
    "a blank without width": ("\u200b<execute_bash>\nls\n\u200b</execute_bash>", bash("ls")),
    "a plan that is not closed": ("<plan>\n<execute_bash>\nls\n</execute_bash>", bash("ls")),
    "ended by a stop, with quotes": (
        "<execute_bash>\necho \"it's\" it\\'s $'it\\'s' # it's",
        bash("echo \"it's\" it\\'s $'it\\'s' # it's"),
    ),
    "finish ended by a stop, on the next line": ("<finish>\ndone", Finish("done")),
    "a shift is no heredoc": ("<execute_bash>\necho $((1 << n))", bash("echo $((1 << n))")),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_meant_to_be_run_is_run(name):
    text, action = GOOD[name]
    assert read(text).action == action
    prose = read(f"I look, then `<finish>` or <finish>.\n\n{text}")
    assert prose.action == action
    assert prose.thought.startswith("I look, then")


BAD = {
    "nothing": ("", "is empty"),
    "blanks": (" \n\t", "is empty"),
    "prose": ("I think we should scale x first.", "only prose"),
    "an unterminated fence": ("```python\nprint(1)", "```python is not closed"),
    "a fence closed by fewer": ("````python\n1\n```", "is not closed"),
    "a fence closed by others": ("~~~python\n1\n```", "~~~python is not closed"),
    "two fences": ("```python\n1\n```\n```bash\nls\n```", "2 fenced blocks (```python, ```bash)"),
    "a fence without a language": ("```\nls\n```", "without a language"),
    "a fence of another language": ("```sql\nselect 1\n```", "'sql' is not run"),
    "an empty fence": ("```python\n\n```", "holds no code"),
    "empty code": ("<execute_python>\n\n</execute_python>", "<execute_python> holds no code"),
    "empty code in a fence": ("<execute_bash>\n```\n```\n</execute_bash>", "holds no code"),
    "two fences in a tag": (
        "<execute_python>\n```\n1\n```\nand\n```\n2\n```\n</execute_python>",
        "more text inside the tag",
    ),
    "an open fence in a tag": ("<execute_python>\n```py\n1\n</execute_python>", "is not closed"),
    "another language in the tag": (
        "<execute_bash>\n```python\nimport os\n```\n</execute_bash>",
        "the tag says bash, the fence inside it says python",
    ),
    "a tag in a fence": ("```\n<finish>done</finish>\n```", "inside a fenced block"),
    "a tag in a python fence": (
        "```python\n<execute_python>\n1\n</execute_python>\n```",
        "inside a fenced block",
    ),
    "a tag within a line": ("Now <execute_bash>ls</execute_bash>", "stands within a line"),
    "a tag in backticks": ("`<finish>`", "stands within a line"),
    "python as a tag": ("<python>\nprint(1)\n</python>", "<python> is no action"),
    "an older dialect": ("<execute_ipython>\n1\n</execute_ipython>", "<execute_ipython> is no"),
    "no opener": ("print(1)\n</execute_python>", "</execute_python> is no action"),
    "a call as text": (
        '<tool_call>\n{"name": "execute_python", "arguments": {"code": "1"}}\n</tool_call>',
        "tool call written as text",
    ),
    "a call as JSON": ('{"action": "execute_bash", "code": "ls"}', "tool call written as text"),
    "prose in an open tag": (
        "<execute_bash> is what I would use to look around.",
        "its line holds more text",
    ),
    "two open tags": (
        "<execute_python>\nprint(1)\n<execute_bash>\nls",
        "not closed before another action",
    ),
    "another closer": ("<execute_bash>\nls\n</bash>\n", "closed by </bash>"),
    "another dialect": ("<function=execute_bash>\nls\n</function>", "<function> is no action"),
    "stopped in a string": ('<execute_python>\ns = """', "ended inside a string"),
    "stopped in a heredoc": ("<execute_bash>\ncat > x <<'EOF'\nline", "string or heredoc"),
    "help without words": ("<seek_help>\n<goal>better</goal>\n</seek_help>", "no problem"),
    "a stop within a quote": ('<execute_bash>\nrm -f a\necho "', "ended inside a string"),
    "a closer in a comment only": (
        "<execute_python>\n1 # </execute_python>\nand then",
        "stands in a comment or string, or within a line",
    ),
    "finish in a sentence": ("<finish> is not appropriate yet.", "a word of a sentence"),
    "help in a sentence": ("<seek_help> would be early. I look:", "a word of a sentence"),
    "finish before another action": (
        "<finish> is not appropriate yet; I go on:\n\n<execute_bash>\nls\n</execute_bash>",
        "<finish> is not closed before other code begins",
    ),
    "finish before another finish": (
        "<finish> is early.\n<execute_bash>\nls\n</execute_bash>\n<finish>done</finish>",
        "<finish> is not closed before another action begins",
    ),
    "finish before a fence": ("<finish>\nor not\n```bash\nls\n```", "other code"),
    "help before another action": ("<seek_help>or\n<execute_bash>\nls", "before other code"),
    "only thoughts": ("<think>first I\n<finish>", "ends with its reasoning"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_unclear_is_refused_with_a_precise_correction(name):
    text, reason = BAD[name]
    action = read(text).action
    assert isinstance(action, Malformed)
    assert reason in action.reason
    assert action.reason.endswith("<seek_help> or <finish>.")
    assert action.text == text.strip()
    assert "Call one of the tools" in read(text, tools=True).action.reason


def test_a_reply_that_no_stop_ended_must_close_its_tag():
    text = "<execute_python>\nprint(1)"
    for wrong in (read(text, dropped=("stop",)), read(text, tools=True), read(text, "tool_calls")):
        assert wrong.action.reason.startswith("<execute_python> is not closed.")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Let me think about",
        "<think>so",
        "<execute_python>\nimport os\nos.rem",
        "<execute_bash>\nrm -rf build",
        "<execute_pyth",
        "```python\nx = 1",
        "~~~\nx",
        "<seek_help><problem>no gain",
        "<finish>the bes",
    ],
)
def test_a_cut_reply_is_never_run_half(text):
    action = read(text, "length").action
    assert isinstance(action, Malformed)
    assert "cut at the token limit" in action.reason


def test_an_action_that_was_complete_before_the_cut_counts():
    done = "<execute_python>\n1\n</execute_python>\n"
    assert read(done + "<execute_bash>\nls", "length").action == python("1")
    assert read("```python\n1\n```\nThen I wi", "length").action == python("1")
    assert isinstance(read("```python\n1\n```\n```ba", "length").action, Malformed)


def test_a_refusal_runs_nothing():
    read_ = read("<execute_python>\n1\n</execute_python>", "refused")
    assert "refused" in read_.action.reason


def test_the_first_action_counts_and_the_rest_is_named():
    text = (
        "Look.\n<execute_bash>\nls\n</execute_bash>\nThen\n<execute_python>\n1\n</execute_python>\n"
        "```python\n2\n```\n<finish>done</finish>"
    )
    reading = read(text)
    assert reading.action == bash("ls")
    assert reading.ignored == ("execute_python", "finish")
    assert reading.thought == "Look."


def test_reasoning_in_the_text_is_told_apart_and_never_run():
    draft = "<execute_bash>\nrm x\n</execute_bash>\n"
    real = "So.\n<execute_python>\n1\n</execute_python>"
    for text in (f"<think>{draft}</think>\n{real}", f"{draft}</think>\n{real}"):
        reading = read(text)
        assert reading.action == python("1")
        assert reading.thought == "So."
        assert "rm x" in reading.reasoning


@pytest.mark.parametrize(
    "thought",
    [
        "<think>a</think>\n<think>b\nDRAFT</think>\n",
        "<think>a</think><think>b\nDRAFT</think>",
        "<think>a <think>b</think> c\nDRAFT\n</think>\n",
        "So.\n<think>\nDRAFT</think>\nSo.\n<Thinking>\nDRAFT</Thinking>\n",
        "<reflection>\nDRAFT</reflection>\n",
        "<plan>\nDRAFT</plan>\n<analysis>\nDRAFT</analysis>\n",
        "<!-- or\nDRAFT-->\n",
        "DRAFT</think>\nor\nDRAFT</think>\n",
    ],
)
def test_an_action_in_a_thought_does_not_count(thought):
    draft = "<execute_bash>\nrm x\n</execute_bash>\n"
    thought = thought.replace("DRAFT", draft)
    reading = read(thought + "<execute_python>\n1\n</execute_python>")
    assert (reading.action, reading.ignored) == (python("1"), ())
    assert "rm x" in reading.reasoning
    assert "rm x" not in reading.thought
    for rest in ("", "<think>and\n" + draft):
        assert isinstance(read(thought + rest).action, Malformed)


def test_a_lone_fence_is_not_run_where_tools_are_offered():
    fence = "```python\n1\n```"
    wrong = read(fence, tools=True).action
    assert "a fenced block is not run where there are tools. Call one of" in wrong.reason
    assert read(fence, tools=True, dropped=("tools",)).action == python("1")


@pytest.mark.parametrize(
    ("inner", "request_"),
    [
        ("<problem>p</problem>\n<attempts>a</attempts>\n<goal>g</goal>", ("p", "a", "g")),
        ("<goal>g</goal><problem>p\nq</problem>", ("p\nq", "", "g")),
        ("<Problem>p</PROBLEM>", ("p", "", "")),
        ("<problem>p<attempts>a<goal>g", ("p", "a", "g")),
        ("nothing helps any more", ("nothing helps any more", "", "")),
        ("stuck\n<goal>g</goal>", ("stuck", "", "g")),
    ],
)
@pytest.mark.parametrize("end", ["\n</seek_help>", "</seek_help>", ""])
def test_a_help_request_needs_a_problem_only(inner, request_, end):
    assert read(f"<seek_help>\n{inner}{end}").action == SeekHelp(HelpRequest(*request_))


# --------------------------------------------------------------------------------- tool calls


def call(name, arguments, **more):
    calls = (ToolCall("a", name, arguments), *more.pop("further", ()))
    return read("Look.", more.pop("finish_reason", "tool_calls"), tools=True, calls=calls)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"code": "a\\nb"}',
        '{"code": "a\nb"}',
        '{"code": "a\\nb",}',
        "{'code': 'a\\nb', 'quiet': True}",
        '{"code": """a\nb""", "n": None}',
        '{code: "a\\nb"}',
        '"{\\"code\\": \\"a\\\\nb\\"}"',
        '{"code": ["a", "b"]}',
        '{"code": "```python\\na\\nb\\n```"}',
        '```json\n{"code": "a\\nb"}\n```',
        '{"code": "a\\nb", "timeout": 60}',
        '{"code": "a\\nb"}}',
        "{'code': '''a\nb''', quiet: true, 'n': [1.5, None,],}",
        "{'code': '\\x61\\nb'}",
        '\ufeff{"code": "a\\nb"}',
    ],
)
def test_arguments_are_read_as_models_write_them(arguments):
    assert call("execute_python", arguments).action == python("a\nb")


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("execute_python", "", "needs `code`"),
        ("execute_python", "{}", "needs `code`"),
        ("execute_python", '{"code": " "}', "needs `code`"),
        ("execute_bash", '{"command": "ls"}', "needs `code`, it got command"),
        ("execute_bash", '{"code": {"a": 1}}', "as a text, not as dict"),
        ("execute_bash", "ls -l", "no JSON object"),
        ("execute_bash", "[1]", "no JSON object"),
        ("execute_python", '{"code": "print(1', "no JSON object"),
        ("execute_python", '{"code": "```bash\\nls\\n```"}', "says bash"),
        ("seek_help", '{"goal": "better"}', "needs `problem`"),
        ("python", '{"code": "1"}', "unknown tool 'python'"),
        ("execute_python", '{"code": "rm x\\nif a: d = {}', "no JSON object"),
        ("execute_python", '{"code": "a = 1\\nd = {"b": 1}', "no JSON object"),
        ("execute_python", '{"code": "print("a")"}', "no JSON object"),
        ("execute_python", '{"code": "d["a"], b"}', "no JSON object"),
        ("execute_python", '{"code": "print(", "a", ")"}', "no JSON object"),
        ("execute_python", "{'code': 'a # it's\\nb'}", "no JSON object"),
        ("execute_python", '{"code": `print("a")`}', "no JSON object"),
        ("execute_python", '{"code": "a"} and then', "no JSON object"),
        ("execute_python", '{"code": "a", "code": "b"}', "no JSON object"),
        ("execute_python", '{"code": 0x' + "f" * 6000 + "}", "no JSON object"),
        ("execute_python", "{0x" + "f" * 6000 + ": 1}", "no JSON object"),
        ("execute_python", "{" * 100_000 + "}", "no JSON object"),
        ("execute_python", "[" * 100_000, "no JSON object"),
    ],
)
def test_arguments_that_do_not_fit_are_named(name, arguments, reason):
    began = time.monotonic()
    action = call(name, arguments).action
    assert isinstance(action, Malformed)
    assert reason in action.reason
    assert len(action.text) < 5000
    assert time.monotonic() - began < 2


def test_calls_in_general():
    assert call("finish", "").action == Finish("")
    assert call("finish", '{"reason": 3}').action == Finish("3")
    asked = call("seek_help", '{"problem": "p", "attempts": ["a", "b"]}')
    assert asked.action == SeekHelp(HelpRequest("p", "a\nb", ""))
    assert asked.thought == "Look."
    twice = call("execute_bash", '{"code": "ls"}\n{"code": "rm x"},{}')
    assert (twice.action, twice.ignored) == (bash("ls"), ("execute_bash",) * 2)
    assert call("finish", '{"reason": ' + "1" * 6000 + "}").action == Finish("1" * 6000)
    further = (ToolCall("b", "finish", "{}"), ToolCall("c", "nonsense", "{}"))
    first = call("execute_bash", '{"code": "ls"}', further=further)
    assert (first.action, first.ignored) == (bash("ls"), ("finish", "nonsense"))
    cut = call("execute_bash", '{"code": "rm -rf a"}', finish_reason="length")
    assert "cut at the token limit" in cut.action.reason
    tags = read("<execute_bash>\nls\n</execute_bash>", tools=True)
    assert tags.action == bash("ls")


# --------------------------------------------------------------------------------- properties

PIECES = st.sampled_from(
    [
        *("<execute_python>", "</execute_python>", "<execute_bash>", "</execute_bash>"),
        *("<seek_help>", "</seek_help>", "<finish>", "</finish>", "<problem>", "</goal>"),
        *("```", "````", "~~~", "```python", "~~~bash", '"""', "'''", '"', "#", "\\", "`"),
        *("<<EOF", "EOF", "<<'X'", "X", "<think>", "</think>", "<", ">", "</", "{", "}"),
        *("print(1)", "ls", "word", " ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "é", "\ud800"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=30).map("".join) | st.text()
REASONS = st.sampled_from(["stop", "length", "tool_calls", "refused"])


@given(TEXTS, REASONS, st.booleans(), st.sampled_from([(), ("stop",)]))
@settings(max_examples=300, deadline=None)
def test_no_reply_raises_and_nothing_outside_an_action_is_run(text, reason, tools, dropped):
    reading = read(text, reason, dropped, tools)
    action = reading.action
    if isinstance(action, Malformed):
        assert action.reason
        return
    assert reason != "refused"
    text = text.replace("\r\n", "\n")
    if isinstance(action, Execute):
        code = action.code.split("\n")
        assert action.code.strip()
        begins = re.search(r"<\s*execute[_-]?(python|bash)|^\s*(```|~~~)", text, re.I | re.M)
        place = text.find(code[0])
        assert begins
        assert begins.start() < text.find(code[0], begins.start())
        assert place >= 0
        assert all(line in text for line in code)


@given(st.lists(PIECES, max_size=20).map("".join))
@settings(max_examples=200, deadline=None)
def test_prose_without_an_opener_is_never_run(text):
    assume(not re.search(r"<\s*(execute|finish|seek)", text, re.I))
    assume("```" not in text and "~~~" not in text)
    assert isinstance(read(text).action, Malformed)


CODES = (TEXTS | st.lists(PIECES, min_size=1, max_size=12).map("\n".join)).map(tidy)


@given(CODES, st.sampled_from(["python", "bash"]), st.sampled_from(["", "Because.\n\n"]))
@example("s = '''\n</execute_python>\n", "python", "")
@example("```python\n<execute_bash>\n```\n", "bash", "")
@settings(max_examples=300, deadline=None)
def test_what_is_written_reads_back_the_same(code, language, thought):
    assume(code.strip() and tidy(code) == code and "\r\n" not in f"{code}\n")
    action = Execute(language, code)
    reading = read(thought + as_tag(action))
    assert reading.action == action
    assert reading.ignored == ()
    assert reading.thought == thought.strip()
    if not code.lstrip().startswith(("```", "~~~")):
        made = as_call(action, "step00001")
        assert read("", "tool_calls", tools=True, calls=(made,)).action == action


@given(st.tuples(*[st.text("abc <>&\n", max_size=20).map(str.strip)] * 3))
def test_help_and_the_end_read_back_the_same(parts):
    assume(parts[0])
    for action in (SeekHelp(HelpRequest(*parts)), Finish(parts[0])):
        assert read(as_tag(action)).action == action
        made = as_call(action, "x")
        assert list(json.loads(made.arguments)) == list(PARAMETERS[made.name])
        assert read("", "tool_calls", calls=(made,)).action == action


@given(TEXTS)
def test_a_fence_can_not_be_ended_from_inside(text):
    assume("\r" not in text)
    opener, *inside, closer = fenced(text).split("\n")
    assert "\n".join(inside) == text
    assert opener == closer
    assert not any(line.strip().startswith(closer) for line in inside)


LONG = 200_000


def long(piece, before="", after=""):
    return f"{before}{piece * (LONG // len(piece))}{after}"


IN_PYTHON, IN_BASH = "<execute_python>\n", "<execute_bash>\n"
HOSTILE = [
    *(long(piece) for piece in ("<", " ", "\n", "`", "~", "```", "{", "< ", "   \n", "\t")),
    *(long(piece) for piece in (IN_BASH, "<execute_bash>", "<execute_python ", "<finish>\n")),
    *(long(piece) for piece in ("```python\n'''\n", "```bash\ncat <<E\n", "````python\n```\n")),
    *(long(piece) for piece in ("<problem", "<think>", "<think>a</think>", "<plan>\n", "<!--\n")),
    *(long(piece) for piece in ("</think>\n", "<plan>a</plan>\n", "{ ", '{"name" ', "a <<b\n")),
    *(long(piece, "<seek_help>") for piece in ("<problem>", "<problem>a", "< ", "<goal ")),
    *(long(piece, "<") for piece in ("a", "A", " ", "a-", "/")),
    *(long(piece, "</") for piece in ("a", "-", " ")),
    *(long(piece, IN_PYTHON) for piece in ("'", '"', "\\", "</think>\n", "</a>\n", "<plan>\n")),
    *(long(piece, IN_PYTHON, "\\") for piece in ('\\"""\n', '\\"""', "'\n", '"\n')),
    *(long(piece, IN_PYTHON, "\nx\n</execute_python>") for piece in ("\n", " ", "#", "\\", "\t\n")),
    *(long(piece, IN_BASH, ")") for piece in ("<<a", "<<", "<<a ", "'", '"', "$'", "#", "a <<b\n")),
    long("a", IN_BASH + "<<", ")"),
    long("\t", IN_BASH + "<<a\n", "\nx"),
    long(" ", "</execute_python", ">"),
    long(" ", "```python\nx\n```", "x"),
    long('x = """\n</execute_python>\n"""\n', IN_PYTHON),
    long('x = """\n```\n"""\n', "```python\n"),
    long(" ", "", "<finish>"),
]
FROM_CALLS = [
    *(long(piece) for piece in ("{", "[", "(", "-", '"', "'", "\\", "{}", "{},", '{"code":', "\n")),
    *(long(piece, "```json", "x```") for piece in ("\n", " ", "```\n", "{}")),
    *(long(piece, "```json", "x") for piece in ("\n", " ", "```\n")),
    *(long(piece, "{", "}") for piece in ("/*", "#", "a,", "a:1,", '"a":1,', '"a" ', "'''", ":")),
    *(long(piece, '{"code": ', "}") for piece in ("1", "f", "\\", "'a' ", '"', "[", "[1],", "0x")),
    *(long(piece, '{"code": "', "}") for piece in ("\n", "\\", '\\"', "\\u00e9", '"""', "a")),
]


def test_hostile_replies_are_read_in_a_moment():
    took = {}
    for text in HOSTILE:
        began = time.monotonic()
        read(text)
        took[f"{text[:30]!r} … {text[-30:]!r}"] = time.monotonic() - began
    for text in FROM_CALLS:
        began = time.monotonic()
        call("execute_python", text)
        took[f"call {text[:30]!r}"] = time.monotonic() - began
    call("x" * LONG, "{}")
    slowest = max(took, key=took.get)
    assert took[slowest] < 8, slowest
    assert sum(took.values()) < 60
