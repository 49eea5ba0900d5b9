"""`mle-ideator show`: what happened in a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from mle_ideator.results import Record
    from mle_ideator.types import Step


def show(
    run: Annotated[Path, typer.Argument(help="The run's folder, or its journal.")],
    step: Annotated[int | None, typer.Option(help="Only this step, whole.")] = None,
    full: Annotated[bool, typer.Option("--full", help="All code and output, uncut.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The record as one JSON object.")] = False,
) -> None:
    """Show what happened in a run: steps, ideas, scores."""
    import msgspec

    from mle_ideator.journal import read_journal
    from mle_ideator.results import record_of

    record = record_of(read_journal(run))
    if json:
        typer.echo(msgspec.json.encode(record).decode())
        return
    from rich.console import Console

    console = Console(highlight=False)
    for taken in _wanted(record, step):
        _print_step(console, record, taken, whole=full or step is not None)
    if step is None:
        _print_end(console, run, record)


def _wanted(record: Record, number: int | None) -> list[Step]:
    from mle_ideator.errors import UsageError

    steps = [step for step in record.steps if number in (None, step.number)]
    if number is not None and not steps:
        raise UsageError(f"the run has no step {number}; it has {len(record.steps)}.")
    return steps


def _print_step(console: Console, record: Record, step: Step, *, whole: bool) -> None:
    from rich.panel import Panel
    from rich.syntax import Syntax
    from rich.text import Text

    from mle_ideator.cli.text import printable
    from mle_ideator.cli.wording import name_of, outcome_of, scores_text
    from mle_ideator.types import Execute, SeekHelp

    solution = next((s for s in record.solutions if s.number == step.solution), None)
    head = Text.assemble((f"step {step.number} ", "bold"), name_of(step.action), " — ")
    head.append(printable(outcome_of(step)), style="dim")
    if solution:
        mark = ", the best so far" if solution.number in record.bests else ""
        head.append(
            f" — solution #{solution.number}: {scores_text(solution.scores)}{mark}", "green"
        )
    console.print(head)
    if step.thought:
        console.print(Text(printable(step.thought), style="italic"))
    match step.action:
        case Execute(language=language, code=code):
            console.print(Syntax(_cut(code, whole), language, background_color="default"))
            console.print(Panel(Text(_cut(step.observation.text, whole))))
        case SeekHelp(request=request):
            for name, text in (
                ("problem", request.problem),
                ("attempts", request.attempts),
                ("goal", request.goal),
            ):
                console.print(Text.assemble((f"{name}: ", "magenta"), printable(text)))
            console.print(Panel(Text(printable(step.observation.text)), border_style="magenta"))
        case _:
            console.print(Text(printable(step.observation.text)))


def _cut(text: str, whole: bool, most: int = 12) -> str:
    from mle_ideator.cli.text import printable

    lines = printable(text).rstrip().splitlines()
    if whole or len(lines) <= 2 * most:
        return "\n".join(lines)
    left_out = f"… {len(lines) - 2 * most} lines, see --full …"
    return "\n".join([*lines[:most], left_out, *lines[-most:]])


def _print_end(console: Console, run: Path, record: Record) -> None:
    from rich.table import Table
    from rich.text import Text

    from mle_ideator.cli.text import one_line, printable
    from mle_ideator.cli.wording import closing
    from mle_ideator.results import summarise
    from mle_ideator.rl.reward import idea_rewards

    given = idea_rewards(record.steps, record.solutions, record.started.task.min_delta)
    if given:
        table = Table(title="one-step reward of each idea", title_justify="left", box=None)
        for name in ("step", "reward", "outcome", "idea"):
            table.add_column(name)
        for reward in given:
            idea = printable(one_line(reward.idea.action, 100)) if reward.idea else "none came"
            value = "masked" if reward.reward is None else f"{reward.reward:+.0f}"
            table.add_row(str(reward.step), value, reward.outcome, Text(idea))
        console.print(table)
    folder = run if run.is_dir() else run.parent
    console.print(closing(summarise(folder.resolve(), record)))
