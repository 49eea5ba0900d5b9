"""The command line: one file a command. Modules here stay light; a command imports what it needs.

Exit codes: 0 a validated submission exists (or the command did its work), 1 none was produced
(or a run was not reproduced), 2 the call was wrong, 3 the runtime itself failed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from mle_ideator import __version__
from mle_ideator.cli.bench import bench
from mle_ideator.cli.buffer import buffer
from mle_ideator.cli.collect import collect
from mle_ideator.cli.doctor import doctor
from mle_ideator.cli.evaluate import evaluate
from mle_ideator.cli.ideate import ideate
from mle_ideator.cli.image import image
from mle_ideator.cli.mcp import mcp
from mle_ideator.cli.reproduce import reproduce
from mle_ideator.cli.resume import resume
from mle_ideator.cli.rollout import rollout
from mle_ideator.cli.run import run
from mle_ideator.cli.serve import serve
from mle_ideator.cli.sft import sft
from mle_ideator.cli.show import show
from mle_ideator.cli.states import states
from mle_ideator.cli.task import task
from mle_ideator.cli.tasks import tasks
from mle_ideator.cli.train import train
from mle_ideator.errors import MleIdeatorError, UsageError
from mle_ideator.plain_text import printable

app = typer.Typer(
    name="mle-ideator",
    help="One agent works on a machine-learning task, another has the ideas.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich doubles the time that --help takes
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(run, resume, tasks, show, reproduce, doctor, ideate, serve, mcp),
    *(collect, rollout, evaluate, sft, train),
):
    app.command()(command)
app.add_typer(bench, name="bench")
app.add_typer(task, name="task")
app.add_typer(image, name="image")
app.add_typer(states, name="states")
app.add_typer(buffer, name="buffer")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """One agent works on a machine-learning task, another has the ideas."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(_code(arguments))


def _code(arguments: Sequence[str] | None) -> int:
    try:
        return app(arguments, standalone_mode=False) or 0
    except TyperException as error:
        return _complain(error.format_message() or "no command was given; see --help.", 2)
    except UsageError as error:
        return _complain(str(error), 2)
    except MleIdeatorError as error:
        return _complain(str(error), 3)
    except (KeyboardInterrupt, Abort):
        return _complain("interrupted.", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        return _confess(error)


def _complain(message: str, code: int) -> int:
    print(f"mle-ideator: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code


def _confess(error: Exception) -> int:
    """A bug of our own: one line for the reader, everything for whoever mends it."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="mle-ideator-error-", suffix=".txt", delete=False
    ) as file:
        traceback.print_exception(error, file=file)
    what = f"{type(error).__name__}: {error}"
    return _complain(f"internal error, please report it with {file.name}: {what}", 3)
