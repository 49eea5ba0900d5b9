"""What an ideator answers, made sure of before it leaves this process."""

from __future__ import annotations

import msgspec

from mle_ideator.errors import AgentError
from mle_ideator.journal import writable
from mle_ideator.protocols import Ideator
from mle_ideator.types import HelpState, Proposal


async def proposal_of(ideator: Ideator, state: HelpState) -> Proposal:
    """A whole proposal that can be written as JSON, whoever wrote the ideator.

    Raises `AgentError` if the answer is none, and what the ideator raises.
    """
    answer: object = await ideator.propose(state)
    if not isinstance(answer, Proposal):
        raise AgentError(f"the ideator answered with {type(answer).__name__}, not with a Proposal.")
    try:
        return writable(answer)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise AgentError(f"the ideator answered with no right Proposal: {error}.") from error
