"""From a config to a finished result folder, with the console beside it."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import signal
import sys
from collections.abc import Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from typer.exceptions import Abort

from mle_ideator.benchmarks.running import (
    lacks_results,
    run_to_end,
    set_up,
    set_up_again,
    write_all_results,
)
from mle_ideator.cli.console import SessionConsole, console_for
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.journal import read_journal
from mle_ideator.results import Record, Summary, record_of, summarise
from mle_ideator.setups import Setup

T = TypeVar("T")


def launch(config: RunConfig, out: Path | None, *, as_json: bool) -> int:
    """Run a session in a new result folder; the exit code.

    However the session ends, what was solved is written before anything is raised.
    """
    config = _with_whole_paths(config)
    folder = _new_folder(config, out)
    try:
        setup = set_up(config, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # a call that was wrong leaves nothing
        raise
    return _to_end(setup, again=False, as_json=as_json)


def relaunch(folder: Path, *, as_json: bool) -> int:
    """Go on with the session in a result folder; the exit code."""
    if lacks_results(folder):
        summary = write_all_results(folder)
        with console_for(sys.stderr if as_json else sys.stdout, lines=True) as console:
            return _reported(console, summary, as_json=as_json)
    return _to_end(set_up_again(folder), again=True, as_json=as_json)


def _to_end(setup: Setup, *, again: bool, as_json: bool) -> int:
    stream = sys.stderr if as_json else sys.stdout
    in_terminal = any(
        getattr(agent, "uses_terminal", False) for agent in (setup.implementer, setup.ideator)
    )
    with console_for(stream, lines=in_terminal) as console:
        for event in read_journal(setup.folder) if again else ():
            console(event)
        failure = _run(run_to_end(setup, [console], again=again))
    summary = summarise(setup.folder, _record(setup.folder, failure))
    code = _reported(console, summary, as_json=as_json)
    if failure:
        raise failure
    return code


def _reported(console: SessionConsole, summary: Summary, *, as_json: bool) -> int:
    console.finish(summary)
    if as_json:
        print(msgspec.json.encode(summary).decode())
    return 0 if summary.best.solution else 1


def _record(folder: Path, failure: Exception | None) -> Record:
    """What happened; the failure itself, if the session failed before it began."""
    try:
        return record_of(read_journal(folder))
    except UsageError:
        if failure:
            raise failure from None
        raise


def _run(session: Coroutine[Any, Any, None]) -> Exception | None:
    """Run to the end; a broken runtime and an interruption both leave what was solved."""
    try:
        asyncio.run(interruptible(session))
    except asyncio.CancelledError:
        return None
    except Exception as error:
        return error
    return None


def run_or_interrupt(work: Coroutine[Any, Any, T]) -> T:
    """Its result. Raises `Abort` if it was ended by a signal."""
    try:
        return asyncio.run(interruptible(work))
    except asyncio.CancelledError:
        raise Abort from None


async def interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Ctrl-C, SIGTERM and SIGHUP end what runs in order: sandboxes closed, results written.

    What the caller ignores (`nohup`, a background job of a script) stays ignored.
    """
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, task.cancel)
    return await task


def _with_whole_paths(config: RunConfig) -> RunConfig:
    """So that the config in the result folder repeats the run from anywhere."""
    if config.data is None:
        return config
    train, test = (
        path and str(Path(path).resolve()) for path in (config.data.train, config.data.test)
    )
    data = msgspec.structs.replace(config.data, train=train, test=test)
    return msgspec.structs.replace(config, data=data)


def _new_folder(config: RunConfig, out: Path | None) -> Path:
    if out is not None:
        return folder_at(out)
    what = config.task or Path(config.data.train if config.data else "run").stem
    name = re.sub(r"[^\w-]+", "-", what).strip("-")[:60] or "run"
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    for attempt in range(1, 1000):
        folder = Path("runs") / f"{name}-{stamp}{f'-{attempt}' if attempt > 1 else ''}"
        if not folder.exists():
            with contextlib.suppress(FileExistsError):
                folder.mkdir(parents=True)
                return folder.resolve()
    raise UsageError(f"no new folder could be made under {Path('runs').resolve()}; use --out.")


def folder_at(out: Path) -> Path:
    """What `--out` names, made if need be. Raises `UsageError` if anything is in it."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out} exists and is not empty; name a new folder.")
    return _made(out)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder} can not be made: {error.strerror}.") from error
    return folder.resolve()
