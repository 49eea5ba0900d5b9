"""Draw a recorded run as the picture in the README: `python docs/draw_session.py RUN FILE.svg`."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from mle_ideator.cli.live import LiveConsole
from mle_ideator.journal import read_journal
from mle_ideator.results import record_of, summarise


def main() -> None:
    run, picture = Path(sys.argv[1]), sys.argv[2]
    events = read_journal(run)
    console = Console(record=True, width=150, file=io.StringIO(), force_terminal=True)
    view = LiveConsole(console)
    for event in events:
        view(event)
    view.finish(summarise(Path("runs") / run.name, record_of(events)))
    title = f"mle-ideator run --task {record_of(events).started.task.id}"
    # Without rich's web fonts: a picture should fetch nothing.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title=title), flags=re.DOTALL)
    Path(picture).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
