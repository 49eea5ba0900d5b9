"""How long a report on many runs takes, and how large it is.

    python tests/performance/bench_report.py [RUNS]

One session of the offline pair is run for real; its journal is then copied into RUNS folders
(1,000), under several contenders, tasks and seeds. The measures are taken first and not counted:
`bench_measures.py` does that. Target: a page of a few MB that opens at once.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench_measures import copies, session

from mle_ideator.benchmarks.measures.one_run import measure_all
from mle_ideator.benchmarks.reports.files import write_files
from mle_ideator.benchmarks.reports.gathering import gather
from mle_ideator.benchmarks.reports.page import pages_folder, write_page
from mle_ideator.benchmarks.reports.plots import write_plots
from mle_ideator.benchmarks.reports.run_pages import write_run_pages

T = TypeVar("T")


def timed(what: str, call: Callable[[], T]) -> T:
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{what:14} {wall:8.2f} s, {processor:8.2f} s of processor time", flush=True)
    return result


def size(*files: Path) -> str:
    return f"{sum(file.stat().st_size for file in files) / 1e6:.2f} MB"


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        journal = session(home / "session")
        os.environ["MLE_IDEATOR_CACHE"] = str(home / "cache")
        copies(journal, home / "R", runs)
        measure_all(home / "R")
        print(f"{runs} runs, journals of {len(journal) / 1000:.0f} kB, {os.cpu_count()} cores")
        report = timed("figures", lambda: gather([home / "R"]))
        page = home / "report.html"
        timed("page", lambda: write_page(report, page, links=True))
        timed("pages of runs", lambda: write_run_pages(report, page))
        files = timed("files", lambda: write_files(report, home / "files"))
        timed("plots", lambda: write_plots(report, home / "plots"))
        print(f"page {size(page)}, pages of runs {size(*pages_folder(page).iterdir())}")
        print(", ".join(f"{file.name} {size(file)}" for file in files))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
