"""A script as a tree, and what its names stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

Text = tuple[int, str]
"""A line, and a text that stands there."""


@dataclass
class Script:
    """One parsed script. Nothing of it is ever executed."""

    tree: ast.Module
    _names: dict[str, str] = field(default_factory=dict)
    """What names stand for, in full, by the imports and by plain assignments of imported things."""

    def __post_init__(self) -> None:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self._names[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in self.nodes:
            if isinstance(node, ast.Assign) and (name := self.dotted(node.value)):
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id not in self._names:
                        self._names[target.id] = name

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def dotted(self, node: ast.AST) -> str:
        """The full name of what an expression takes from a module, `""` where it does not."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        if isinstance(node, ast.Call) and self.called(node) in _IMPORTERS and node.args:
            return folded(node.args[0]) or ""
        return ""

    def called(self, call: ast.Call) -> str:
        """What is called: its full name, or that of a builtin."""
        function = call.func
        if isinstance(function, ast.Name) and function.id not in self._names:
            return function.id
        return self.dotted(function).removeprefix("builtins.")

    @cached_property
    def calls(self) -> list[tuple[str, ast.Call]]:
        return [(self.called(n), n) for n in self.nodes if isinstance(n, ast.Call)]

    @cached_property
    def modules(self) -> list[Text]:
        """All that is imported, by statement or by call."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node.lineno, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
            elif isinstance(node, ast.Call) and (name := self.dotted(node)):
                found.append((node.lineno, name))
        return found

    @cached_property
    def used(self) -> list[Text]:
        """Full names of all attributes that are taken from modules, and of what is imported."""
        taken = [
            (node.lineno, name)
            for node in self.nodes
            if isinstance(node, ast.Attribute) and (name := self.dotted(node))
        ]
        return self.modules + taken

    @cached_property
    def texts(self) -> list[Text]:
        """All texts in the code, those put together from constants as a whole; no docstrings."""
        idle = {id(n.value) for n in self.nodes if isinstance(n, ast.Expr)}
        found, parts = [], set()
        for node in self.nodes:  # outer before inner
            if id(node) in idle or id(node) in parts or not isinstance(node, ast.expr):
                continue
            if (text := folded(node)) is not None:
                parts |= {id(inner) for inner in ast.walk(node)}
                found.append((node.lineno, text))
        return found


_IMPORTERS = frozenset({"__import__", "importlib.import_module", "importlib.__import__"})


def folded(node: ast.AST) -> str | None:
    """A text that is written in one piece or in several; `None` if it is none.

    What is not constant in it becomes NUL, which stands in no path and no name.
    """
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bytes):
            return node.value.decode("latin-1")
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(folded(part) or "\0" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        return _joined(node.left, "/" if isinstance(node.op, ast.Div) else "", node.right)
    return _folded_call(node) if isinstance(node, ast.Call) else None


def _joined(left: ast.AST, between: str, right: ast.AST) -> str | None:
    one, other = folded(left), folded(right)
    if one is None and other is None:
        return None
    return (one if one is not None else "\0") + between + (other if other is not None else "\0")


def _folded_call(call: ast.Call) -> str | None:
    """`Path("a", "b")`, `os.path.join("a", "b")`, and `"".join(["a", "b"])`."""
    function, items = call.func, call.args
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in {"Path", "PurePath", "PosixPath"}:
        between = "/"
    elif name == "join" and isinstance(function, ast.Attribute):
        glue = folded(function.value)
        between = "/" if glue is None else glue
        if glue is not None and len(items) == 1 and isinstance(items[0], (ast.List, ast.Tuple)):
            items = items[0].elts
    else:
        return None
    parts = [folded(item) for item in items]
    if all(part is None for part in parts):
        return None
    return between.join("\0" if part is None else part for part in parts)


def arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (word.value for word in call.keywords)


def within(name: str, modules: frozenset[str]) -> str | None:
    """Which of these modules it is, or is in."""
    parts = name.split(".")
    names = (".".join(parts[:size]) for size in range(1, len(parts) + 1))
    return next((module for module in names if module in modules), None)
