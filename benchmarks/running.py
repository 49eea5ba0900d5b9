"""A session from its config to its result files, in one folder; begun, or gone on with."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from mle_ideator.benchmarks.reopening import place_of
from mle_ideator.benchmarks.setups import agents_of, export_own_predictions, setup_of, whole_inputs
from mle_ideator.config import RunConfig, dump_config
from mle_ideator.errors import UsageError
from mle_ideator.files import replace_file
from mle_ideator.journal import FILE, Journal, Listener, read_journal
from mle_ideator.results import Record, record_of, write_results
from mle_ideator.session import run_session
from mle_ideator.setups import Setup

CONFIG = "config.yaml"
OF_THE_END = ("rerun", "refit")
"""Folders of the clean re-run, which begins again if it was broken off."""


def set_up(config: RunConfig, folder: Path) -> Setup:
    """Everything for a new session in an empty folder. Raises `UsageError`."""
    setup = setup_of(config, folder)
    replace_file(folder / CONFIG, dump_config(config).encode())
    return setup


def set_up_again(folder: Path) -> tuple[Setup, Record]:
    """Everything to go on with a session that was broken off. Raises `UsageError`.

    An interrupted or failed session was broken off, too; one that came to its end was not.
    """
    record = record_of(read_journal(folder))
    if record.ended and record.ended.outcome not in ("interrupted", "failed"):
        raise UsageError(f"the session in {folder} has come to its end: there is nothing to do.")
    place, remarks = place_of(record.started, folder)
    implementer, ideator = agents_of(place.config)
    setup = Setup(
        task=place.task,
        grader=place.grader,
        sandbox=place.sandbox,
        config=place.config,
        implementer=implementer,
        ideator=ideator,
        folder=folder,
        remarks=tuple(remarks),
        whole_inputs=whole_inputs(place.config, folder),
    )
    return setup, record


async def run_to_end(
    setup: Setup, past: Record | None = None, listeners: Iterable[Listener] = ()
) -> None:
    """Run the session, or go on after `past`, and write the result files.

    They are written however it ends; then what broke it is raised.
    """
    folder = setup.folder
    for name in OF_THE_END if past else ():
        shutil.rmtree(folder / name, ignore_errors=True)
    try:
        with Journal(folder / FILE, listeners) as journal:
            await run_session(setup, journal, past.past if past else None)
    finally:
        await setup.aclose()
        if (folder / FILE).stat().st_size:  # else it broke before it began
            record = record_of(read_journal(folder))
            write_results(folder, record)
            export_own_predictions(folder, record)
