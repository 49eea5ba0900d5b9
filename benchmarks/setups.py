"""From a config to everything that a session needs."""

from __future__ import annotations

from pathlib import Path

from mle_ideator.benchmarks.sources import load_task
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.protocols import Grader, Ideator, Implementer
from mle_ideator.registry import create
from mle_ideator.sandboxes import choose_sandbox
from mle_ideator.session import Setup
from mle_ideator.solutions import SUBMISSION
from mle_ideator.types import Task

DATA = "data"
"""Where in a run's folder a person's own data are split."""


def setup_of(config: RunConfig, folder: Path) -> Setup:
    """The task, the agents and the sandbox that a config names. Raises `UsageError`.

    `folder` is the run's own: a person's data are split into its `data/`.
    """
    implementer = create("implementers", config.implementer)
    ideator = create("ideators", config.ideator)
    if not isinstance(implementer, Implementer):
        raise UsageError(f"{config.implementer!r} is no implementer: it has no method act.")
    if not isinstance(ideator, Ideator):
        raise UsageError(f"{config.ideator!r} is no ideator: it has no method propose.")
    name, sandbox = choose_sandbox(config.sandbox)
    if reason := sandbox.unavailable():
        raise UsageError(f"the {name} sandbox can not be used here: {reason}")
    task, grader, remarks = _task(config, folder / DATA)
    return Setup(
        task=task,
        grader=grader,
        implementer=implementer,
        ideator=ideator,
        sandbox=sandbox,
        folder=folder,
        config=config,
        remarks=remarks,
    )


def _task(config: RunConfig, folder: Path) -> tuple[Task, Grader, tuple[str, ...]]:
    if config.data is None:
        return *load_task(config.task or ""), ()
    from mle_ideator.benchmarks.own_data import load_own_data, remarks_of

    task, grader = load_own_data(config.data, folder, config.seed)
    return task, grader, tuple(remarks_of(folder))


def export_own_predictions(run: Path) -> Path | None:
    """Write the predictions of the person's own test rows, if the run has any, beside the rest."""
    if not (run / DATA).is_dir() or not (run / SUBMISSION).exists():
        return None
    from mle_ideator.benchmarks.own_data import export_predictions

    predictions = run / "predictions.csv"
    return predictions if export_predictions(run / DATA, run / SUBMISSION, predictions) else None
