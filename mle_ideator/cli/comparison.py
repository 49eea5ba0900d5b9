"""A reproduction beside its record, as a small table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mle_ideator.benchmarks.reproducing import Reproduction
from mle_ideator.cli.text import duration, printable

_STYLES = {"exact": "green", "close": "green", "differs": "red", "missing": "red"}


def show_reproduction(done: Reproduction) -> None:
    console = Console(highlight=False)
    console.print(_head(done), soft_wrap=True)
    console.print(_table(done))
    if done.failure:
        console.print(Text(printable(done.failure), style="red"), soft_wrap=True)
    for remark in done.remarks:
        console.print(Text(printable(f"note: {remark}"), style="yellow"), soft_wrap=True)
    if done.folder:
        console.print(Text(printable(done.folder)), soft_wrap=True)


def _head(done: Reproduction) -> Text:
    if done.failure:
        verdict = Text("failed", style="bold red")
    elif not done.reproduced:
        verdict = Text("not reproduced", style="bold red")
    else:
        how = "every score is exactly as recorded" if done.exact else f"within {_tolerance(done)}"
        verdict = Text.assemble(("reproduced", "bold green"), f": {how}")
    return Text.assemble(f"solution #{done.solution} of {printable(done.task)}: ", verdict)


def _tolerance(done: Reproduction) -> str:
    """What still counts as the same score."""
    relative = f"{done.relative_tolerance:g} of the score"
    return (
        f"{done.min_delta:g} (the task's least gain) or {relative}" if done.min_delta else relative
    )


def _table(done: Reproduction) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("", "recorded", "now", ""):
        table.add_column(name, overflow="fold")
    for name, pair in done.scores.items():
        verdict = f"within {_tolerance(done)}" if pair.verdict == "close" else pair.verdict
        verdict = {"missing": "unscored now", "exact": "exactly the same"}.get(verdict, verdict)
        style = _STYLES.get(pair.verdict, "")
        table.add_row(name, _number(pair.recorded), _number(pair.now), Text(verdict, style))
    table.add_row("submission", "", "", _submission(done))
    was = done.recorded_duration_s
    table.add_row("time", _took(was), _took(done.duration_s), "" if was is None else "of its step")
    for change in done.changes:
        values = (Text(printable(value or "none")) for value in (change.recorded, change.now))
        table.add_row(Text(printable(change.what)), *values, Text("differs", "yellow"))
    if done.sandbox == done.recorded_sandbox:
        table.add_row("sandbox", done.recorded_sandbox, done.sandbox, "")
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.1f}s" if seconds < 60 else duration(seconds)


def _submission(done: Reproduction) -> Text:
    compared = done.submission
    if compared is None:
        why = "none was written" if done.failure else "the recorded one is missing or not valid"
        return Text(f"not compared: {why}", "yellow")
    if compared.verdict == "identical":
        return Text("identical, byte for byte", "green")
    if compared.verdict == "same predictions":
        return Text("the same predictions, written otherwise", "green")
    most = "" if compared.largest is None else f", by up to {compared.largest:.3g}"
    return Text(f"{compared.differing:,} of {compared.rows:,} rows differ{most}", "red")
