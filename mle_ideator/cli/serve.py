"""`mle-ideator serve`: an ideator for other machines and programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mle_ideator.errors import UsageError

if TYPE_CHECKING:
    from mle_ideator.ideators.serving.guard import Guard
    from mle_ideator.protocols import Ideator


def serve(
    ideator: Annotated[
        str, typer.Option(help="Who advises: a name, name:argument, openai:MODEL, module:Class.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8100,
    token_file: Annotated[
        Path | None, typer.Option(help="Clients must have the token in this file.")
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let in whoever reaches the port.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, help="Most requests at work.")] = 32,
    queue: Annotated[int, typer.Option(min=0, help="Most requests that wait besides.")] = 128,
    deadline: Annotated[str, typer.Option(help="Longest wait for a turn.")] = "60s",
    grace: Annotated[
        str, typer.Option(help="Longest wait for requests in flight at the end.")
    ] = "60s",
    max_request_mb: Annotated[
        float, typer.Option(min=0.001, help="Largest request, in MiB.")
    ] = 4.0,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Options of the ideator."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The address as JSON on stdout.")] = False,
) -> None:
    """Host an ideator: ideas over HTTP, and its chat model for OpenAI's clients."""
    _need_packages()
    import asyncio
    import logging
    from functools import partial

    from mle_ideator.cli.streams import stdout_kept_clean
    from mle_ideator.ideators.serving.addresses import listen, url_of
    from mle_ideator.ideators.serving.admission import Places
    from mle_ideator.ideators.serving.app import Service
    from mle_ideator.ideators.serving.guard import guard_for
    from mle_ideator.ideators.serving.server import serve as run
    from mle_ideator.limits import seconds

    logging.basicConfig(level=logging.WARNING, format="mle-ideator: %(message)s")
    guard = guard_for(host, token_file, no_token)
    with stdout_kept_clean() as out:
        service = Service(
            ideator=_ideator(ideator, overrides),
            spec=ideator,
            guard=guard,
            places=Places(concurrency, queue, seconds(deadline)),
            max_bytes=int(max_request_mb * 2**20),
        )
        with listen(host, port) as listener:
            _warn(guard, token_file, host)
            line = _announcement(ideator, url_of(listener), json)
            up = partial(print, line, file=out, flush=True)
            asyncio.run(run(service, listener, up, seconds(grace)))


def _need_packages() -> None:
    from importlib.util import find_spec

    missing = [
        name for name in ("starlette", "uvicorn", "prometheus_client") if not find_spec(name)
    ]
    if missing:
        raise UsageError(f"serve needs {', '.join(missing)}: pip install 'mle-ideator[serve]'")


def _ideator(spec: str, overrides: list[str] | None) -> Ideator:
    from mle_ideator.cli.advisor import advisor

    found = advisor(spec, overrides)
    if getattr(found, "uses_terminal", False):
        raise UsageError(f"{spec!r} reads from the terminal, so it can not be served to others.")
    return found


def _warn(guard: Guard, token_file: Path | None, host: str) -> None:
    from mle_ideator.cli.streams import say
    from mle_ideator.ideators.serving.addresses import is_loopback
    from mle_ideator.ideators.serving.guard import loose

    if warning := loose(token_file):
        say(warning)
    if guard.token is None and not is_loopback(host):
        say(f"warning: whoever reaches {host} may ask, and spend what asking costs.")


def _announcement(spec: str, url: str, as_json: bool) -> str:
    """One line for whoever waits for the server to be up."""
    import os

    import msgspec

    from mle_ideator import __version__

    if not as_json:
        return f"{spec} answers at {url}"
    told = {"url": url, "ideator": spec, "version": __version__, "pid": os.getpid()}
    return msgspec.json.encode(told).decode()
