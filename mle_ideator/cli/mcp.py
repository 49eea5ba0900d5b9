"""`mle-ideator mcp`: an ideator as a tool of other agents."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mle_ideator.errors import UsageError


class Transport(StrEnum):
    """What carries the calls."""

    STDIO = "stdio"
    HTTP = "http"


def mcp(
    ideator: Annotated[
        str, typer.Option(help="Who advises: a name, name:argument, openai:MODEL, module:Class.")
    ],
    transport: Annotated[
        Transport, typer.Option(help="stdio for an agent that starts it, http for others.")
    ] = Transport.STDIO,
    host: Annotated[str, typer.Option(help="Address to listen on, with http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8101,
    token_file: Annotated[
        Path | None, typer.Option(help="Agents must have the token in this file, with http.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Options of the ideator."),
    ] = None,
) -> None:
    """Offer an ideator to other agents, as the tool seek_help of the Model Context Protocol."""
    _need_package()
    import logging

    logging.basicConfig(level=logging.WARNING, format="mle-ideator: %(message)s")
    logging.getLogger("mle_ideator").setLevel(logging.INFO)
    # Its warnings repeat what strangers send.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    if transport is Transport.STDIO:
        _over_stdio(ideator, overrides)
    else:
        _over_http(ideator, overrides, host, port, token_file)


def _over_stdio(spec: str, overrides: list[str] | None) -> None:
    import asyncio

    from mle_ideator.cli.advisor import advisor
    from mle_ideator.cli.streams import stdout_kept_clean
    from mle_ideator.ideators.mcp_server.over_stdio import serve
    from mle_ideator.ideators.mcp_server.tool import SeekHelpTool

    with stdout_kept_clean():
        ideator = advisor(spec, overrides)
    if getattr(ideator, "uses_terminal", False):
        raise UsageError(
            f"{spec!r} reads the terminal, which over stdio carries the protocol; use "
            "--transport http in a terminal of your own."
        )
    asyncio.run(serve(SeekHelpTool(ideator)))


def _over_http(
    spec: str, overrides: list[str] | None, host: str, port: int, token_file: Path | None
) -> None:
    import asyncio

    from mle_ideator.cli.advisor import advisor
    from mle_ideator.cli.streams import say
    from mle_ideator.ideators.mcp_server.over_http import PATH, serve
    from mle_ideator.ideators.mcp_server.tool import SeekHelpTool
    from mle_ideator.ideators.serving.addresses import listen, url_of
    from mle_ideator.ideators.serving.guard import guard_for, loose

    guard = guard_for(host, token_file, no_token=False)
    if warning := loose(token_file):
        say(warning)
    tool = SeekHelpTool(advisor(spec, overrides))
    with listen(host, port) as listener:
        url = url_of(listener) + PATH
        asyncio.run(serve(tool, guard, listener, lambda: say(f"{spec} answers at {url}")))


def _need_package() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise UsageError("mcp needs the package of that name: pip install 'mle-ideator[mcp]'")
