"""All checks of one script."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable

from mle_ideator.benchmarks.fair_play import checks
from mle_ideator.benchmarks.fair_play.literals import literal_tables
from mle_ideator.benchmarks.fair_play.outside import outside_path
from mle_ideator.benchmarks.fair_play.reading import Script
from mle_ideator.benchmarks.measures.values import Flag
from mle_ideator.types import Task

CHECKS: tuple[Callable[[Script, Task], Iterable[Flag]], ...] = (
    checks.source_package,
    checks.data_hub,
    outside_path,
    checks.network,
    checks.outside_model,
    checks.runtime_files,
    literal_tables,
    checks.obfuscation,
)

_LONGEST = 1_000_000
"""Characters. Nobody writes so much; to parse it could take gigabytes."""


def flags_of(code: str, task: Task) -> tuple[Flag, ...]:
    """What in a `solution.py` may not be fair play, by line; the code is read, never executed.

    Only the script itself is read, not what it imports from the workspace. The same thing is
    flagged once, where it comes first.
    """
    if len(code) > _LONGEST:
        message = f"a script of {len(code):,} characters, which is not read any further"
        return (Flag(code="literal_table", line=0, message=message),)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the script's own odd escapes
            script = Script(ast.parse(code))
        found = [flag for check in CHECKS for flag in check(script, task)]
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 0
        return (Flag(code="unparsable", line=line, message="this is no Python that can be read"),)
    except (RecursionError, MemoryError):
        return (Flag(code="unparsable", line=0, message="nested too deeply to be read"),)
    first: dict[tuple[str, str], Flag] = {}
    for flag in sorted(found, key=lambda flag: (flag.line, flag.code)):
        first.setdefault((flag.code, flag.message), flag)
    return tuple(first.values())
