"""The tool itself: one call in, one idea out, whatever carried the call."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import nullcontext, suppress
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from mle_ideator import __version__
from mle_ideator.errors import AgentError, UsageError, unknown
from mle_ideator.ideators.answering import proposal_of
from mle_ideator.ideators.mcp_server.arguments import read_arguments, schema
from mle_ideator.ideators.mcp_server.states import help_state
from mle_ideator.journal import writable
from mle_ideator.plain_text import printable
from mle_ideator.prompts import render
from mle_ideator.protocols import Ideator
from mle_ideator.types import HelpState, Idea, Proposal
from mle_ideator.waiting import release

log = logging.getLogger("mle_ideator.mcp")

NAME = "seek_help"
CLOSE_S = 5.0
"""Longest time that an ideator may take to close."""


class SeekHelpTool:
    """The tool `seek_help` of one ideator, and the MCP server that offers it."""

    def __init__(self, ideator: Ideator) -> None:
        self.ideator = ideator
        self._turn = asyncio.Lock() if getattr(ideator, "uses_terminal", False) else nullcontext()
        """A terminal takes one question at a time."""
        self.server: Server[Any] = Server(
            "mle-ideator",
            version=__version__,
            title="MLE-Ideator",
            instructions=render("mcp/instructions"),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def answer(self, arguments: dict[str, Any]) -> CallToolResult:
        """One call, answered: wrong arguments and an ideator that breaks are tool errors."""
        start = time.monotonic()
        try:
            state = writable(help_state(read_arguments(arguments)))
        except UsageError as error:
            return _refusal(str(error))
        try:
            async with self._turn:
                proposal = await proposal_of(self.ideator, state)
        except AgentError as error:
            return _refusal(f"the ideator failed, go on by yourself: {error}")
        except Exception as error:
            # Its words may hold keys and paths, which are no foreign agent's business.
            log.exception("the ideator broke")
            return _refusal(f"the ideator broke ({type(error).__name__}), go on by yourself.")
        came = "an idea" if proposal.idea else f"no idea ({printable(proposal.reason)})"
        log.info("%s after %.1f s", came, time.monotonic() - start)
        return _told(proposal, state)

    async def aclose(self) -> None:
        """Close what the ideator holds; one that does not get done is left alone."""
        with suppress(TimeoutError):
            await asyncio.wait_for(release(self.ideator), CLOSE_S)

    async def _list(
        self, context: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_description()])

    async def _call(
        self, context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        if params.name != NAME:
            return _refusal(unknown("tool", params.name, [NAME]))
        return await self.answer(params.arguments or {})


def _description() -> Tool:
    return Tool(
        name=NAME,
        title="Seek help",
        description=render("mcp/tool"),
        input_schema=schema(),
        output_schema=answer_schema(),
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True),
    )


def answer_schema() -> dict[str, Any]:
    """The JSON schema of an answer's structured content."""
    text = {"type": "string"}
    idea = {
        "type": "object",
        "properties": dict.fromkeys(Idea.__struct_fields__, text),
        "required": list(Idea.__struct_fields__),
    }
    parts = {
        "idea": _or_null(idea, "The idea, or null if none came."),
        "reverts_to": _or_null(
            {"type": "integer"}, "Entry of the history to go back to before acting, or null."
        ),
        "reason": {"description": "Why no idea came; empty if one did.", **text},
    }
    return {"type": "object", "properties": parts, "required": list(parts)}


def _or_null(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "anyOf": [schema, {"type": "null"}]}


def _told(proposal: Proposal, state: HelpState) -> CallToolResult:
    idea = proposal.idea
    back_to = idea.reverts_to if idea else None
    text = render("mcp/answer", idea=idea, reason=proposal.reason, attempt=_what(state, back_to))
    parts = idea and {name: getattr(idea, name) for name in idea.__struct_fields__}
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content={"idea": parts, "reverts_to": back_to, "reason": proposal.reason},
    )


def _what(state: HelpState, number: int | None) -> str:
    """What the agent said of the attempt to go back to; empty if it did not tell of such a one."""
    steps = state.situation.trajectory
    return next((s.thought for s in steps if number is not None and s.solution == number), "")


def _refusal(message: str) -> CallToolResult:
    line = printable(" ".join(message.split()))
    log.warning("refused: %s", line)
    return CallToolResult(content=[TextContent(type="text", text=line)], is_error=True)
