"""Messages in the forms that APIs and chat templates ask for."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from mle_ideator.chat.turns import (
    arguments_of,
    arguments_text,
    joined,
    split_reasoning,
    without_system,
)
from mle_ideator.messages import Message, ToolCall

roles = st.sampled_from(["system", "user", "assistant", "tool"])
conversations = st.lists(st.builds(Message, roles, st.text(max_size=5)), max_size=12)


@given(conversations)
def test_joined_roles_take_turns_and_nothing_is_lost(messages):
    turns = joined(messages)
    pairs = itertools.pairwise(turns)
    assert all(a.role != b.role or a.role == "tool" for a, b in pairs)
    assert all(turn.role != "system" for turn in turns[1:])
    assert "".join(t.text for t in turns).replace("\n\n", "") == "".join(
        m.text for m in messages
    ).replace("\n\n", "")
    assert joined(turns) == turns


@given(conversations)
def test_without_system(messages):
    assert all(turn.role != "system" for turn in without_system(messages))


@given(st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_reasoning_is_split_off_and_the_answer_kept(thought, answer):
    thought, answer = thought.replace("<", ""), answer.replace("<", "").strip() or "x"
    text = f"<think>{thought}</think>\n\n{answer}"
    assert split_reasoning(text) == (thought.strip(), answer)
    assert split_reasoning(answer) == ("", answer)


@given(st.text())
def test_arguments_are_always_an_object(text):
    call = ToolCall("a", "run", text)
    assert isinstance(arguments_of(call), dict)
    assert json.loads(arguments_text(call)) == arguments_of(call)


def test_good_arguments_stay_as_they_were_written():
    text = '{ "code":  "1" }'
    assert arguments_text(ToolCall("a", "run", text)) == text
