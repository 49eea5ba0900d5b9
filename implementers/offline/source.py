"""Copies functions out of `snippets/` as source text, with the imports and helpers they need."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SNIPPETS = Path(__file__).parent / "snippets"
_HEADER = "mle_ideator."
_DEFINITIONS = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Piece:
    """A top-level function, class or constant of a snippet module."""

    text: str
    names: frozenset[str]
    """All names that occur in it."""
    is_function: bool
    order: int


@dataclass(frozen=True)
class Library:
    """All pieces by name, and all import statements by the name that they bind."""

    pieces: dict[str, Piece]
    imports: dict[str, str]

    def needed(self, names: Iterable[str], without: Collection[str]) -> list[str]:
        """The given pieces and those they use, in the order of the library."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found and name not in without:
                found.add(name)
                waiting += [used for used in self.pieces[name].names if used in self.pieces]
        return sorted(found, key=lambda name: self.pieces[name].order)


@cache
def library() -> Library:
    pieces: dict[str, Piece] = {}
    imports: dict[str, str] = {}
    for path in sorted(SNIPPETS.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            imports |= _imports(node)
            if isinstance(node, _DEFINITIONS | ast.Assign):
                source = ast.get_source_segment(text, node) or ""
                is_function = isinstance(node, _DEFINITIONS)
                piece = Piece(source, _names(node), is_function, len(pieces))
                pieces[_name(node)] = piece
    return Library(pieces, imports)


def _name(node: ast.FunctionDef | ast.ClassDef | ast.Assign) -> str:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    return node.name


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(found.id for found in ast.walk(node) if isinstance(found, ast.Name))


def _imports(node: ast.stmt) -> dict[str, str]:
    """Statement by bound name; imports of the package itself are left out."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return {}
    found = {}
    for alias in node.names:
        bound = alias.asname or alias.name.partition(".")[0]
        rename = f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.Import):
            found[bound] = f"import {alias.name}{rename}"
        elif node.module and not node.module.startswith(_HEADER):
            found[bound] = f"from {node.module} import {alias.name}{rename}"
    return found


def assemble(body: str, constants: Mapping[str, str], more_imports: Iterable[str]) -> str:
    """A whole script: imports, constants, the library's pieces that are used, body.

    Of `constants` (source by name) and `more_imports` (statements like `from a import b`) only
    those are kept that something uses.
    """
    known, used = library(), _names(ast.parse(body))
    own = constants.keys() | {_name(n) for n in ast.parse(body).body if isinstance(n, _DEFINITIONS)}
    pieces = known.needed([name for name in used if name in known.pieces], without=own)
    names = used.union(*(known.pieces[name].names for name in pieces))
    values = "\n".join(text for name, text in constants.items() if name in names)
    names |= _names(ast.parse(values))
    imports = dict(known.imports)
    for statement in more_imports:
        imports |= _imports(ast.parse(statement).body[0])
    statements = {imports[name] for name in names if name in imports}
    others = [known.pieces[name].text for name in pieces if not known.pieces[name].is_function]
    functions = [known.pieces[name].text for name in pieces if known.pieces[name].is_function]
    head = "\n\n".join([sorted_imports(statements), "\n".join([values, *others]).strip()]).strip()
    return "\n\n\n".join([head, *functions, body])


def sorted_imports(statements: Iterable[str]) -> str:
    """As isort writes them: `import a` before `from a import b`, standard library first."""
    plain = sorted({s for s in statements if s.startswith("import ")}, key=str.lower)
    by_module: dict[str, set[str]] = {}
    for statement in statements:
        if statement.startswith("from "):
            module, _, name = statement.removeprefix("from ").partition(" import ")
            by_module.setdefault(module, set()).add(name)
    lines = [*plain, *(_from(module, names) for module, names in sorted(by_module.items()))]
    standard = [line for line in lines if _is_standard(line)]
    others = [line for line in lines if line not in standard]
    return "\n\n".join("\n".join(block) for block in (standard, others) if block)


def _from(module: str, names: set[str]) -> str:
    ordered = sorted(names, key=_isort_key)
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= 100:
        return line
    inner = "".join(f"    {name},\n" for name in ordered)
    return f"from {module} import (\n{inner})"


def _isort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _is_standard(line: str) -> bool:
    return line.split()[1].partition(".")[0] in sys.stdlib_module_names
