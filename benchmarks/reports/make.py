"""`make_report`: from results folders to all that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mle_ideator.benchmarks.reports.drawing.theme import check_matplotlib
from mle_ideator.benchmarks.reports.gathering import gather
from mle_ideator.benchmarks.reports.values import Report


def make_report(
    roots: Sequence[Path],
    *,
    html: Path | None = None,
    plots: Path | None = None,
    files: Path | None = None,
    trajectories: bool = True,
    command: str = "",
) -> Report:
    """Report on the runs of one results folder, or of several side by side.

    `html` is the page's file; with `trajectories` each run gets a page of its own beside it.
    `plots` is a folder for SVG and PDF, `files` one for `report.json`, `runs.csv`, `figures.csv`.
    `command` is the call that asked for it, as the page tells. Raises `UsageError`: no runs, a
    journal that can not be read, or no matplotlib where something is to be drawn.
    """
    if html or plots:
        check_matplotlib()
    report = gather(roots, command)
    if files:
        from mle_ideator.benchmarks.reports.files import write_files

        write_files(report, files)
    if html:
        _write_html(report, html, trajectories=trajectories)
    if plots:
        from mle_ideator.benchmarks.reports.plots import write_plots

        write_plots(report, plots)
    return report


def _write_html(report: Report, html: Path, *, trajectories: bool) -> None:
    from mle_ideator.benchmarks.reports.page import write_page
    from mle_ideator.benchmarks.reports.run_pages import write_run_pages

    write_page(report, html, links=trajectories)
    if trajectories:
        write_run_pages(report, html)
