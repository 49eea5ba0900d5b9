"""`mle-ideator rollout`: one idea, one execution, one reward, shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mle_ideator.rl.single import Shown


def rollout(
    states: Annotated[Path, typer.Option(help="Store of help states.")],
    state: Annotated[str, typer.Option(help="Id of one, or the beginning of it.")],
    ideator: Annotated[str, typer.Option(help="Who has the idea.")] = "offline",
    seed: Annotated[int, typer.Option(help="Added to the session's.")] = 0,
    attempts: Annotated[
        int, typer.Option(min=1, help="Cells that may fail before the idea is given up.")
    ] = 1,
    sandbox: Annotated[str | None, typer.Option(help="As for `run`; else the session's.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Ask an ideator about a help state, and execute its idea once from there."""
    import msgspec

    from mle_ideator.cli.launch import run_or_interrupt
    from mle_ideator.rl.single import single_rollout

    here = {} if sandbox is None else {"sandbox": sandbox}
    work = single_rollout(states, state, ideator, seed=seed, attempts=attempts, here=here)
    shown = run_or_interrupt(work)
    if json:
        typer.echo(msgspec.json.encode(shown.result).decode())
    else:
        _show(shown)


def _show(shown: Shown) -> None:
    from rich.console import Console
    from rich.text import Text

    from mle_ideator.cli.text import printable

    console = Console(highlight=False)

    def line(name: str, text: object) -> None:
        console.print(Text.assemble((f"{name:<10}", "magenta"), printable(str(text))))

    card, result, proposal = shown.card, shown.result, shown.proposal
    line(
        "state", f"{card.id[:16]}: {card.task}, {card.kind}, {card.steps} steps, best {card.score}"
    )
    for name, text in (("problem", shown.request.problem), ("goal", shown.request.goal)):
        line(name, text)
    if proposal.idea:
        for name in ("analysis", "action", "rationale"):
            line(name, getattr(proposal.idea, name))
    else:
        line("no idea", proposal.reason or "none that can be read")
    reward = "masked" if result.reward is None else f"{result.reward:+.0f}"
    line("outcome", result.outcome.replace("_", " "))
    line("score", f"{result.before} → {result.after if result.after else 'none'}")
    if result.detail:
        line("why", result.detail)
    console.print(Text.assemble((f"{'reward':<10}", "bold magenta"), (reward, "bold")))
    if result.child:
        line("reached", f"help state {result.child[:16]}")
    line("seconds", f"{result.seconds:.1f}")
