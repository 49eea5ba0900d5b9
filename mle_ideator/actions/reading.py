"""What a reply says: one action, or why none can be read from it."""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from mle_ideator.actions.blocks import LANGUAGE, TAG_WITHIN_LINE, Block, blocks, closer_of
from mle_ideator.actions.calls import read_call
from mle_ideator.actions.code import INVISIBLE, LANGUAGES, shields, texts, tidy, unfenced
from mle_ideator.messages import Completion
from mle_ideator.types import Action, Execute, Finish, HelpRequest, Malformed, SeekHelp

MAX_TEXT = 4000
"""Characters that are kept of a reply from which no action could be read."""
_MOST_BLOCKS = 40
_PARTS = ("problem", "attempts", "goal")
_A_PART = re.compile(
    r"<[ \t]*(problem|attempts|goal)[ \t]*>(.*?)"
    r"(?:<[ \t]*/[ \t]*\1[ \t]*>|(?=<[ \t]*/?[ \t]*(?:problem|attempts|goal)[ \t]*>)|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_THOUGHT_END = re.compile(r"^[ \t]*</think(?:ing)?>[ \t]*$", re.MULTILINE)
_OTHER_CLOSER = re.compile(r"^[ ]{0,3}(</[a-z][\w-]*>)\s*\Z", re.MULTILINE | re.IGNORECASE)
_ELEMENT = re.compile(r"^[ \t]*<[ \t]*(/?[a-z][\w:|-]*+)[^<>\n]*+>", re.IGNORECASE | re.MULTILINE)
_CALL_AS_TEXT = re.compile(
    r"<\|?tool_call|<function_?calls?|<invoke|\[TOOL_CALLS\]"
    r"|\{\s*[\"'](?:name|tool|function|action|type)[\"']\s*:",
    re.IGNORECASE,
)
_PROSE = re.compile(r"[ \t]+\S")
"""How a sentence goes on that begins with a tag's name."""
_IN_TAGS = (
    "Write one action, its opening and its closing tag each at the start of a line: "
    "<execute_python>, <execute_bash>, <seek_help> or <finish>."
)
_IN_CALLS = "Call one of the tools execute_python, execute_bash, seek_help, finish."


class Reading(NamedTuple):
    """What was read from a reply."""

    action: Action
    ignored: tuple[str, ...] = ()
    """Names of the further actions; only the first one counts."""
    thought: str = ""
    """The prose before the action."""
    reasoning: str = ""
    """What a model without an API for it wrote between `<think>` tags."""


def read_action(reply: Completion, *, tools: bool = False) -> Reading:
    """The first action of a reply. `tools`: were tools offered? Tags are then read as well.

    Without tools the reply may have been ended by one of `STOPS`: the one tag that is open at its
    end is then closed. What was cut at the token limit is never run.
    """
    reasoning, text = _without_reasoning(reply.text.lstrip(INVISIBLE).replace("\r\n", "\n"))
    if reply.finish_reason == "refused":
        read = Reading(Malformed("the model refused to answer; nothing in its reply is run."))
    elif reply.calls:
        read = _from_calls(reply, text)
    else:
        read = _from_text(text, reply, tools=tools)
    action = read.action
    if isinstance(action, Malformed):
        said = "\n".join([reply.text.strip(), *(f"{c.name}({c.arguments})" for c in reply.calls)])
        advice = _IN_CALLS if tools else _IN_TAGS
        action = Malformed(f"{action.reason} {advice}", _shortened(said.strip()))
    return read._replace(action=action, reasoning=reasoning)


def _from_calls(reply: Completion, text: str) -> Reading:
    first, *rest = reply.calls
    if reply.finish_reason == "length" and not rest:
        return Reading(Malformed(_cut(f"in its call of {first.name}")))
    action, more = read_call(first)
    ignored = (*[first.name] * more, *(call.name for call in rest))
    return Reading(action, ignored, text.strip())


def _from_text(text: str, reply: Completion, *, tools: bool) -> Reading:
    found = _found(text)
    tags = [block for block in found if block.is_tag]
    cut = reply.finish_reason == "length"
    if tags:
        stopped = reply.finish_reason == "stop" and not tools and "stop" not in reply.dropped
        action = _from_tag(tags[0], cut=cut, stopped=stopped)
        thought = text[: tags[0].start].strip()
        return Reading(action, tuple(tag.name for tag in tags[1:]), thought)
    if any(not fence.closed for fence in found):
        return Reading(Malformed(_open_fence(found[-1], cut=cut)))
    runnable = [fence for fence in found if fence.name in LANGUAGES]
    if len(runnable) == 1 and (not tools or "tools" in reply.dropped):
        return Reading(_from_fence(runnable[0]), (), text[: runnable[0].start].strip())
    if cut:
        return Reading(Malformed(_cut("before an action was complete")))
    if not text.strip() and reply.text.strip():
        return Reading(Malformed("the reply ends with its reasoning, where no action counts."))
    return Reading(Malformed(_why_none(text, found, runnable)))


# ------------------------------------------------------------------------------------ blocks


def _from_tag(tag: Block, *, cut: bool, stopped: bool) -> Action:
    if not tag.closed:
        if cut:
            return Malformed(_cut(f"inside {tag.opener}"))
        if not stopped:
            return Malformed(f"{tag.opener} is not closed.")
        if wrong := _not_ended_by_a_stop(tag):
            return Malformed(wrong)
    if tag.name not in LANGUAGE and tag.holds_a_tag:
        return Malformed(f"{tag.opener} is not closed before another action begins.")
    if tag.name == "finish":
        return Finish(tag.inner.strip())
    if tag.name == "seek_help":
        return _help(tag.inner)
    code, wrong = unfenced(tag.inner, LANGUAGE[tag.name])
    if wrong:
        return Malformed(f"{tag.opener} can not be read: {wrong}.")
    return _execute(LANGUAGE[tag.name], code, tag.opener)


def _not_ended_by_a_stop(tag: Block) -> str:
    """Why a tag that is open at the end of a reply can not be taken as closed, if it can not."""
    if tag.name not in LANGUAGE:
        return _sentence(tag)
    if not tag.open_tag_alone:
        return f"{tag.opener} is not closed, and its line holds more text."
    if tidy(tag.inner).startswith(("```", "~~~")):
        return ""
    if tag.holds_a_tag:
        return f"{tag.opener} is not closed before another action begins."
    if re.search(closer_of(tag.name), tag.inner, re.IGNORECASE):
        return f"the closing tag of {tag.opener} stands in a comment or string, or within a line."
    if wrong := _OTHER_CLOSER.search(tag.inner):
        return f"{tag.opener} is closed by {wrong[1]}, which is another tag."
    language, end = LANGUAGE[tag.name], len(tag.inner.rstrip())
    over_lines = all(span.closed for span in shields(tag.inner, 0, language))
    if over_lines and all(s.closed or s.end < end for s in texts(tag.inner, 0, language)):
        return ""
    return (
        f"the reply ended inside a string or heredoc of {tag.opener}. Close it; and if a closing "
        "tag stands in it at the start of a line, write that tag in two pieces."
    )


def _sentence(tag: Block) -> str:
    """Why a tag without code reads like the beginning of a sentence, if it does."""
    if any(not block.is_thought for block in blocks(tag.inner)):
        return f"{tag.opener} is not closed before other code begins."
    if _PROSE.match(tag.inner):
        return f"{tag.opener} is not closed, and a blank after it makes it a word of a sentence."
    return ""


def _from_fence(fence: Block) -> Action:
    if fence.holds_a_tag:
        return Malformed("the action's tag stands inside a fenced block, where it does not count.")
    code, _ = unfenced(fence.inner, fence.name)
    return _execute(fence.name, code, fence.opener)


def _execute(language: str, code: str, where: str) -> Action:
    if not code.strip():
        return Malformed(f"{where} holds no code.")
    return Execute("python" if language == "python" else "bash", code)


def _help(inner: str) -> Action:
    """Text outside the parts is the problem, if that has no part of its own."""
    parts = dict.fromkeys(_PARTS, "")
    for found in _A_PART.finditer(inner):
        name = found[1].lower()
        parts[name] = parts[name] or found[2].strip()
    free = _A_PART.sub("", inner).strip()
    problem = parts["problem"] or free
    if not problem:
        return Malformed("<seek_help> says no problem: write <problem>, <attempts> and <goal>.")
    return SeekHelp(HelpRequest(problem, parts["attempts"], parts["goal"]))


# ------------------------------------------------------------------------------- corrections


def _cut(where: str) -> str:
    return (
        f"the reply was cut at the token limit {where}, so it was not run. Write less: think "
        "shorter, or write long files in several steps."
    )


def _open_fence(fence: Block, *, cut: bool) -> str:
    if cut:
        return _cut(f"inside the fenced block {fence.opener}")
    return f"the fenced block that begins with {fence.opener} is not closed."


def _why_none(text: str, found: list[Block], runnable: list[Block]) -> str:
    if not text.strip():
        return "the reply is empty."
    if len(runnable) == 1:
        return "a fenced block is not run where there are tools."
    if len(runnable) > 1:
        names = ", ".join(fence.opener for fence in runnable)
        return f"there are {len(runnable)} fenced blocks ({names}) and no tag says which to run."
    if any(fence.holds_a_tag for fence in found):
        return "the action's tag stands inside a fenced block, where it does not count."
    if _CALL_AS_TEXT.search(text):
        return "a tool call written as text or JSON is not read."
    if within := TAG_WITHIN_LINE.search(text):
        return f"{within[0]} stands within a line, or too far right: there it is mere text."
    if element := _ELEMENT.search(text):
        return f"<{element[1]}> is no action."
    if found:
        what = f"of the language {found[0].name!r}" if found[0].name else "without a language"
        return f"a fenced block {what} is not run; only python and bash are."
    return "the reply holds no action, only prose."


# -------------------------------------------------------------------------------------- text


def _without_reasoning(text: str) -> tuple[str, str]:
    """Some servers leave a model's reasoning in its reply, some even without its opening tag."""
    found = _found(text)
    begin, thoughts, parts = 0, [], []
    if end := _last_outside(_THOUGHT_END, text, found):
        begin = end.end()
        thoughts.append(text[: end.start()].strip())
    for block in found:
        if block.is_thought and block.start >= begin:
            thoughts.append(block.inner)
            parts.append(text[begin : block.start])
            begin = block.end
    return "\n\n".join(filter(None, thoughts)), "".join([*parts, text[begin:]])


def _last_outside(pattern: re.Pattern[str], text: str, found: list[Block]) -> re.Match[str] | None:
    """The last match that no block holds, as far as the text is known."""
    known = found[-1].end if len(found) == _MOST_BLOCKS else len(text)
    within, last = iter(found), None
    block = next(within, None)
    for place in pattern.finditer(text, 0, known):
        while block and block.end <= place.start():
            block = next(within, None)
        if block is None or place.start() < block.start:
            last = place
    return last


def _found(text: str) -> list[Block]:
    return list(islice(blocks(text), _MOST_BLOCKS))


def _shortened(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]}\n[… {len(text) - MAX_TEXT} characters …]\n{text[-half:]}"
