"""A session from its config to its result files, in one folder; begun, or gone on with."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator.benchmarks.reopening import place_of
from mle_ideator.benchmarks.setups import agents_of, export_own_predictions, setup_of, whole_inputs
from mle_ideator.config import RunConfig, dump_config
from mle_ideator.errors import UsageError
from mle_ideator.files import replace_file
from mle_ideator.journal import FILE, Journal, Listener, read_journal
from mle_ideator.results import SUMMARY, Record, Summary, record_of, summarise, write_results
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


def set_up_again(folder: Path, here: Mapping[str, Any] | None = None) -> Setup:
    """Everything to go on with a session that was broken off. Raises `UsageError`.

    An interrupted or failed session was broken off, too; one that came to its end was not. `here`
    holds what of its config is to be otherwise on this machine: `threads`, `gpus`.
    """
    started = _broken_off(folder).started
    started = msgspec.structs.replace(started, config=started.config | dict(here or {}))
    place, remarks = place_of(started, folder)
    implementer, ideator = agents_of(place.config)
    return Setup(
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


def _broken_off(folder: Path) -> Record:
    record = record_of(read_journal(folder))
    if has_ended(record):
        raise UsageError(f"the session in {folder} has come to its end: there is nothing to do.")
    return record


def has_ended(record: Record) -> bool:
    """Did the session come to its end, rather than being broken off?"""
    return bool(record.ended and record.ended.outcome not in ("interrupted", "failed"))


async def run_to_end(
    setup: Setup, listeners: Iterable[Listener] = (), *, again: bool = False
) -> None:
    """Run the session, or go on with it, and write the result files.

    They are written however it ends; then what broke it is raised. Raises `StillWritten`, and
    touches nothing, while another process runs it.
    """
    folder = setup.folder
    try:
        with Journal(folder / FILE, listeners) as journal:
            try:
                # read when nobody else can write
                past = _broken_off(folder).past if again else None
                for name in OF_THE_END if again else ():
                    shutil.rmtree(folder / name, ignore_errors=True)
                await run_session(setup, journal, past)
            finally:
                if (folder / FILE).stat().st_size:  # else it broke before it began
                    write_all_results(folder)
    finally:
        await setup.aclose()


def write_all_results(folder: Path) -> Summary:
    """What a person takes home from a session, as its journal tells it; written anew."""
    record = record_of(read_journal(folder))
    summary = write_results(folder, record)
    export_own_predictions(folder, record)
    return summary


def lacks_results(folder: Path) -> bool:
    """Was the session killed after its end, before its results were written?"""
    record = record_of(read_journal(folder))
    try:
        written = msgspec.json.decode((folder / SUMMARY).read_bytes(), type=Summary).outcome
    except (OSError, msgspec.MsgspecError):
        written = None
    return has_ended(record) and written != summarise(folder, record).outcome
