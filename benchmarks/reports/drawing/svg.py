"""A figure as files of its own, and as a part of the page that follows its colours."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mle_ideator.benchmarks.reports.drawing.theme import FAINT, INK, LIGHT, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VARIABLES = {color: f"var(--series-{n})" for n, color in enumerate(LIGHT)} | {
    INK: "currentColor",
    FAINT: "var(--line)",
}
_COLOR = re.compile("|".join(map(re.escape, _VARIABLES)))


def write_plot(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """`stem.svg` and `stem.pdf`; what they hold depends on the data alone, not on the time."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    svg, pdf = stem.with_suffix(".svg"), stem.with_suffix(".pdf")
    svg.write_text(_svg(figure, stem.name), encoding="utf-8")
    with drawing():
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    return svg, pdf


def inline_svg(figure: Figure, key: str, alt: str) -> str:
    """As an element of an HTML page: real text, told to screen readers by `alt`.

    `key` is unique in the page. Ids that nothing refers to are gone, the others begin with it.
    """
    drawn = _svg(figure, key)
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>|<!--.*?-->", "", drawn, flags=re.S)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^\")]+)", drawn))
    drawn = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", drawn)
    drawn = re.sub(r'( id="|url\(#|href="#)', rf"\1{key}-", drawn)
    drawn = _COLOR.sub(lambda m: _VARIABLES[m[0]], drawn)
    drawn = re.sub(r">\s+<", "><", drawn)
    title = html.escape(alt)
    return re.sub(
        r"^<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>",
        rf'<svg \1 role="img" aria-label="{title}" class="plot">',
        drawn.replace("xlink:href", "href").strip(),
        count=1,
    )


def _svg(figure: Figure, salt: str) -> str:
    written = io.StringIO()
    with drawing(**{"svg.hashsalt": salt}):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return written.getvalue()
