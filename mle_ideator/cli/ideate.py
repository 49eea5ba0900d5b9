"""`mle-ideator ideate`: ask an ideator about a recorded situation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mle_ideator.journal import Started
    from mle_ideator.protocols import Ideator
    from mle_ideator.types import HelpState, Proposal


def ideate(
    run: Annotated[Path, typer.Argument(help="The run's folder, or its journal.")],
    step: Annotated[
        int | None, typer.Option(help="Ask before this step, not at the last help request.")
    ] = None,
    ideator: Annotated[
        str | None, typer.Option(help="Whom to ask, not the run's own: a name, openai:MODEL, …")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Its options: ideas=3, …")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The answer as one JSON object.")] = False,
) -> None:
    """Ask an ideator about a recorded situation; print its idea."""
    import asyncio

    import msgspec

    from mle_ideator.cli.streams import stdout_kept_clean
    from mle_ideator.journal import Started, read_journal
    from mle_ideator.replay import help_state_at

    events = read_journal(run)
    state = help_state_at(events, step)
    assert isinstance(events[0], Started)  # noqa: S101 - read_journal has made sure
    with stdout_kept_clean():
        proposal = asyncio.run(_proposal(_ideator(events[0], ideator, overrides or []), state))
    if json:
        typer.echo(msgspec.json.encode(proposal).decode())
    else:
        typer.echo(_readable(state, proposal))
    raise typer.Exit(0 if proposal.idea else 1)


def _ideator(started: Started, spec: str | None, overrides: list[str]) -> Ideator:
    """The ideator that was named, or the run's own with the options that it had."""
    from mle_ideator.cli.advisor import advisor

    if spec is not None:
        return advisor(spec, overrides)
    config = started.config
    return advisor(str(config["ideator"]), overrides, config.get("ideator_options", {}))


async def _proposal(ideator: Ideator, state: HelpState) -> Proposal:
    from mle_ideator.errors import AgentError, MleIdeatorError
    from mle_ideator.ideators.answering import proposal_of
    from mle_ideator.waiting import release

    try:
        return await proposal_of(ideator, state)
    except MleIdeatorError:
        raise
    except Exception as error:
        raise AgentError(f"the ideator broke: {type(error).__name__}: {error}") from error
    finally:
        await release(ideator)


def _readable(state: HelpState, proposal: Proposal) -> str:
    from mle_ideator.cli.text import one_line, printable

    situation, idea = state.situation, proposal.idea
    lines = [
        f"{situation.task.id}, after {len(situation.trajectory)} steps: "
        f"{one_line(state.request.problem, 160)}"
    ]
    if idea is None:
        lines.append(f"no idea came: {proposal.reason}")
    else:
        lines += [f"{name}: {getattr(idea, name)}" for name in ("analysis", "action", "rationale")]
    return "\n\n".join(printable(line) for line in lines)
