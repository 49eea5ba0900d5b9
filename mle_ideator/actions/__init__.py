"""Between a model's reply and an action, both ways; pure, and total: no reply raises.

An action is written as a tag (`<execute_python>`, `<execute_bash>`, `<seek_help>`, `<finish>`), as
the only fenced block of a reply where no tools are offered, or as a native tool call. What was not
clearly meant to be run is never run: it becomes `Malformed`, with a correction precise enough to be
sent back.

- `reading` decides what a reply says,
- `blocks` finds tags, fenced blocks and what is only thought in a text,
- `calls` reads native tool calls, `lenient` the JSON in them,
- `writing` writes an action so that it reads back the same.
"""

from mle_ideator.actions.blocks import STOPS
from mle_ideator.actions.calls import PARAMETERS
from mle_ideator.actions.code import fence_around, fenced, tidy
from mle_ideator.actions.reading import Reading, read_action
from mle_ideator.actions.writing import as_call, as_tag

__all__ = [
    "PARAMETERS",
    "STOPS",
    "Reading",
    "as_call",
    "as_tag",
    "fence_around",
    "fenced",
    "read_action",
    "tidy",
]
