"""How plots look: colours that stay apart for colour-blind readers and in print, and their sizes.

Each contender also has a line style and a marker of its own, so that nothing hangs on colour alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from mle_ideator.errors import UsageError

MISSING = (
    "plots need matplotlib, which is not installed; "
    "install it with: pip install 'mle-ideator[report]'"
)

# After Okabe and Ito; orange, sky blue and yellow darkened until lines show on white.
LIGHT = ("#0072b2", "#d55e00", "#00855f", "#b4508c", "#a36d00", "#3d8fc4", "#6b6b6b", "#7a4fbf")
DARK = ("#56b4e9", "#ff9350", "#2fc79b", "#e79ac6", "#e6ae3c", "#9ad4f7", "#b9b9b9", "#b69cf0")
INK, FAINT, PAPER = "#1b1f24", "#d9dde2", "#ffffff"
Line = Literal["-", "--", "-.", ":"]
_LINES: tuple[Line, ...] = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

# Text stays text, and no name is read as a formula.
_SETTINGS = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
}


class Look(msgspec.Struct, frozen=True):
    """How one contender is drawn."""

    color: str
    line: Line
    marker: str


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """A look for each name, by its position; after eight, colours return with another line."""
    return {name: _look(position) for position, name in enumerate(names)}


def _look(position: int) -> Look:
    turn, color = divmod(position, len(LIGHT))
    line = _LINES[(color + turn) % len(_LINES)]
    return Look(LIGHT[color], line, _MARKERS[(color + turn) % len(_MARKERS)])


def check_matplotlib() -> None:
    """Raises `UsageError` with the way to install it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(MISSING) from error


@contextmanager
def drawing(**more: Any) -> Iterator[None]:
    """matplotlib's settings for all plots, while they are made and written.

    A character that the font lacks is drawn with the reader's own fonts: no reason to warn.
    """
    import matplotlib as mpl

    settings: Any = {**_SETTINGS, **more}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
