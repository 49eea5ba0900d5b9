"""From a config to everything that a session needs."""

from __future__ import annotations

from pathlib import Path

from mle_ideator.benchmarks.sources import export_predictions_of, load_task
from mle_ideator.benchmarks.sources import whole_inputs_of as whole_inputs_of_task
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.help_policy import help_policy
from mle_ideator.protocols import ChatModel, Grader, Ideator, Implementer, SandboxFactory
from mle_ideator.registry import find
from mle_ideator.results import Record
from mle_ideator.sandboxes import STRONGEST_FIRST, choose_sandbox
from mle_ideator.setups import Setup, ideator_of, implementer_of, threads_of
from mle_ideator.solutions import SUBMISSION
from mle_ideator.types import Task

DATA = "data"
"""Where in a run's folder a person's own data are split."""


def setup_of(config: RunConfig, folder: Path) -> Setup:
    """The task, the agents and the sandbox that a config names. Raises `UsageError`.

    `folder` is the run's own: a person's data are split into its `data/`.
    """
    help_policy(config.help_policy)  # refused here, before anything is made
    name, sandbox = usable_sandbox(config)  # first: what it imports takes longest
    implementer, ideator = agents_of(config)
    task, grader, remarks = _task(config, folder / DATA)
    if config.sandbox == "auto":
        remarks += _weaker(name)
    return Setup(
        task=task,
        grader=grader,
        implementer=implementer,
        ideator=ideator,
        sandbox=sandbox,
        folder=folder,
        config=config,
        remarks=remarks,
        whole_inputs=whole_inputs(config, folder),
    )


def agents_of(config: RunConfig) -> tuple[Implementer, Ideator]:
    """The two that a config names. Raises `UsageError`."""
    implementer = implementer_of(config.implementer, config.implementer_options)
    ideator = ideator_of(config.ideator, config.ideator_options)
    if config.limits.cost_usd is not None:
        _check_prices(config, implementer, ideator)
    return implementer, ideator


def usable_sandbox(config: RunConfig) -> tuple[str, SandboxFactory]:
    """The sandbox that a config names, with its name. Raises `UsageError` if it can not be used."""
    name, sandbox = choose_sandbox(config.sandbox, config.sandbox_options)
    if reason := sandbox.unavailable():
        raise UsageError(f"the {name} sandbox can not be used here: {reason}")
    if anticipate := getattr(sandbox, "anticipate", None):
        anticipate(threads_of(config), config.gpus, config.preload)
    return name, sandbox


def _check_prices(config: RunConfig, *agents: object) -> None:
    """A cap on cost can be kept only where prices are known."""
    for agent in agents:
        model = getattr(agent, "model", None)
        if isinstance(model, ChatModel) and not model.priced:
            raise UsageError(
                f"the price of {model.name} is not known, so a cap of ${config.limits.cost_usd:g} "
                "can not be kept; put its price into a file and name that in MLE_IDEATOR_PRICES."
            )


def _weaker(name: str) -> tuple[str, ...]:
    """What to know when `auto` did not take its first choice."""
    strongest = STRONGEST_FIRST[0]
    if name == strongest:
        return ()
    reason = find("sandboxes", strongest)[0].unavailable()
    kind = f"weaker {name}" if name == STRONGEST_FIRST[-1] else name
    return (f"agent code runs in the {kind} sandbox, as {strongest} does not work: {reason}",)


def _task(config: RunConfig, folder: Path) -> tuple[Task, Grader, tuple[str, ...]]:
    if config.data is None:
        return *load_task(config.task or ""), ()
    from mle_ideator.benchmarks.own_data import load_own_data, remarks_of

    task, grader = load_own_data(config.data, folder, config.seed)
    return task, grader, tuple(remarks_of(folder))


def whole_inputs(config: RunConfig, folder: Path) -> str | None:
    """Of a run's folder: the inputs with every labelled row, if there are rows to predict."""
    if config.data is None:
        whole = whole_inputs_of_task(config.task or "")
    else:
        from mle_ideator.benchmarks.own_data import whole_inputs_of

        whole = whole_inputs_of(folder / DATA)
    return str(whole) if whole else None


def export_own_predictions(run: Path, record: Record) -> None:
    """Write `predictions.csv`: the person's own test rows, if the run has any.

    They come from the fit to all labelled rows, or, if that failed, from the graded one.
    """
    if record.final is None:
        return
    fitted = record.refitted
    worked = fitted is not None and not fitted.detail
    kept = run / "refit" / f"{record.final.number:03d}" if worked else run
    submission, home = kept / SUBMISSION, run / "predictions.csv"
    task = record.started.config.get("task")
    if task:
        export_predictions_of(task, submission, home)
    elif (run / DATA).is_dir():
        from mle_ideator.benchmarks.own_data import export_predictions

        export_predictions(run / DATA, submission, home)
