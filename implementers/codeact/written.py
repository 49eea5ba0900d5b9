"""A step as the messages that it was: what the model wrote, and what it saw then.

Both functions are pure and give the same messages for a step as long as a session lasts.
"""

from __future__ import annotations

from mle_ideator.actions import as_call, as_tag
from mle_ideator.messages import Message
from mle_ideator.prompts import render
from mle_ideator.types import Malformed, SeekHelp, Step


def as_tags(step: Step) -> tuple[Message, ...]:
    """In the canonical form of tags, whatever form the model had chosen."""
    action = step.action
    seen = Message("user", _seen(step))
    if isinstance(action, Malformed):
        return _unreadable(action, seen)
    if isinstance(action, SeekHelp) and action.asked_by == "runtime":
        return (seen,)
    said = "\n\n".join(filter(None, (step.thought, as_tag(action))))
    return Message("assistant", said), seen


def as_calls(step: Step) -> tuple[Message, ...]:
    """As native tool calls. Their ids come from the step's number."""
    action = step.action
    if isinstance(action, Malformed):
        return _unreadable(action, Message("user", _seen(step)))
    if isinstance(action, SeekHelp) and action.asked_by == "runtime":
        return (Message("user", _seen(step)),)
    # Nine letters and digits: the only ids that every provider takes.
    call = as_call(action, f"step{step.number:05d}")
    said = Message("assistant", step.thought, calls=(call,))
    return said, Message("tool", _seen(step), call_id=call.id)


def _unreadable(action: Malformed, seen: Message) -> tuple[Message, ...]:
    """The model's own words, then the correction. No provider takes an empty message."""
    return (Message("assistant", action.text), seen) if action.text else (seen,)


def _seen(step: Step) -> str:
    return render("codeact/observation", step=step)
