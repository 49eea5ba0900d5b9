"""One function for each kind of flag: what a script says it imports, opens, calls and runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from mle_ideator.benchmarks.fair_play.lists import (
    FETCHERS,
    HUBS,
    MODEL_MODULES,
    MODEL_WORDS,
    NETWORK_COMMANDS,
    NETWORK_MODULES,
    RUNTIME_MODULES,
    RUNTIME_WORDS,
    SHELL,
)
from mle_ideator.benchmarks.fair_play.reading import Script, Text, arguments, folded, within
from mle_ideator.benchmarks.grading.wording import quoted
from mle_ideator.benchmarks.measures.values import Flag
from mle_ideator.types import Task

PACKAGES = frozenset({"site-packages", "dist-packages"})
LIBRARIES = frozenset(
    {
        *("ISLP", "aeon", "lifelines", "lifetimes", "mlxtend", "pycox", "river", "seaborn"),
        *("sklearn", "sktime", "statsmodels", "sksurv", "surprise", "torchvision"),
    }
)
"""Packages that are worth an import for other things than their data."""

_ADDRESS = re.compile(r"\b(?:https?|ftps?|sftp|s3|gs|hf|wss?)://", re.IGNORECASE)
_HOST = re.compile(r"(?:https?://)?((?:[\w-]+\.)+(?:com|org|net|edu|gov|io|ai|uk|de|fr))\b[\w./-]*")
_TOLD = frozenset({"print", "warnings.warn", "logging.info", "logging.warning"})
_COMMANDS = re.compile(rf"(?<![\w./-])(?:{'|'.join(NETWORK_COMMANDS)})(?![\w./-])")


def source_package(script: Script, task: Task) -> Iterator[Flag]:
    """The package, or the address, that the task's data came from."""
    holders = _holders(task.masked)
    for line, name in script.used:
        top, _, rest = name.partition(".")
        for package, holder in holders:
            if top == package and (top not in LIBRARIES or holder in rest.split(".")):
                yield Flag(
                    code="source_package",
                    line=line,
                    message=f"{name}: the task's data came from the package {package}",
                )
    hosts = {found[1].lower() for found in _HOST.finditer(task.source)}
    for line, text in script.texts:
        for host in sorted(hosts):
            if host in text.lower():
                message = f"names {host}, where the task's data came from"
                yield Flag(code="source_package", line=line, message=message)


def _holders(masked: tuple[str, ...]) -> set[tuple[str, str]]:
    """Package, and the name in it below which its data lie."""
    found = set()
    for path in map(Path, masked):
        at = [i for i, part in enumerate(path.parts) if part in PACKAGES]
        inside = path.parts[at[-1] + 1 :] if at else ()
        if inside and inside[0] not in RUNTIME_MODULES:
            found.add((inside[0], inside[1].partition(".")[0] if len(inside) > 1 else ""))
    return found


def data_hub(script: Script, task: Task) -> Iterator[Flag]:
    """Data, or trained models, that are not the task's."""
    for line, name in script.used:
        fetched = name if name.startswith("sklearn.datasets.fetch_") else within(name, FETCHERS)
        if found := within(name, HUBS) or fetched:
            message = f"{found}: data or models that are not the task's"
            yield Flag(code="data_hub", line=line, message=message)
    for _, call in script.calls:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        which = folded(call.args[0]) if call.args else None
        if method == "from_pretrained" and which and not which.startswith(("./", "input/", "\0")):
            message = f"from_pretrained({quoted(which)}): a trained model"
            yield Flag(code="data_hub", line=call.lineno, message=message)
        if any(_asks_for_weights(word) for word in call.keywords):
            yield Flag(code="data_hub", line=call.lineno, message="a trained model")


def _asks_for_weights(word: ast.keyword) -> bool:
    """`pretrained=True`, `weights="imagenet"`, `weights=ResNet18_Weights.DEFAULT`."""
    if word.arg == "pretrained":
        return isinstance(word.value, ast.Constant) and word.value.value is True
    if word.arg != "weights":
        return False
    if isinstance(word.value, ast.Attribute):
        return "_Weights" in ast.unparse(word.value)
    return bool(re.match("imagenet|default$", folded(word.value) or "", re.IGNORECASE))


def network(script: Script, task: Task) -> Iterator[Flag]:
    """Other machines."""
    for line, name in script.modules:
        if module := within(name, NETWORK_MODULES):
            yield Flag(code="network", line=line, message=f"imports {module}")
    told = _told(script)
    for line, text in script.texts:
        if (found := _ADDRESS.search(text)) and (line, text) not in told:
            message = f"names an address: {quoted(text[found.start() :])}"
            yield Flag(code="network", line=line, message=message)
    for line, command in _commands(script):
        if found := _COMMANDS.search(command):
            yield Flag(code="network", line=line, message=f"runs {found[0]}")


def _told(script: Script) -> set[Text]:
    """Texts that are only printed."""
    calls = [call for name, call in script.calls if name in _TOLD]
    return {
        (argument.lineno, text)
        for call in calls
        for argument in arguments(call)
        if (text := folded(argument)) is not None
    }


def _commands(script: Script) -> Iterator[Text]:
    """Commands for a shell, as far as they are written out."""
    for name, call in script.calls:
        if SHELL.match(name):
            words = [
                part.value
                for argument in call.args
                for part in ast.walk(argument)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            yield call.lineno, " ".join(words)


def outside_model(script: Script, task: Task) -> Iterator[Flag]:
    """A language model that runs elsewhere."""
    for line, name in script.modules:
        if module := within(name, MODEL_MODULES):
            yield Flag(code="outside_model", line=line, message=f"imports {module}")
    for line, text in script.texts:
        for word in MODEL_WORDS:
            if word in text:
                yield Flag(code="outside_model", line=line, message=f"names {word}")


def runtime_files(script: Script, task: Task) -> Iterator[Flag]:
    """The runtime's own files, and those that hold answers."""
    for line, name in script.modules:
        if module := within(name, RUNTIME_MODULES):
            yield Flag(code="runtime_files", line=line, message=f"imports {module}")
    for line, text in script.texts:
        found = next((word for word in RUNTIME_WORDS if word in text), None)
        if found or (_ANSWERS.search(text) and " " not in text):
            message = f"names a file of the runtime or of answers: {quoted(text)}"
            yield Flag(code="runtime_files", line=line, message=message)


_ANSWERS = re.compile(
    r"(?:test|hidden|private|true|holdout)[_-]?(?:y|labels?|answers?|targets?|truth|solutions?)"
    r"\.(?:csv|tsv|parquet|pkl|pickle|npy|npz|json|txt|feather)|(?:^|/)private/",
    re.IGNORECASE,
)


def obfuscation(script: Script, task: Task) -> Iterator[Flag]:
    """Code that is made where it runs, and names that are not written out."""
    constants = _constants(script)
    for name, call in script.calls:
        if why := _hides(name, call, script, constants):
            yield Flag(code="obfuscation", line=call.lineno, message=why)
    for node in script.nodes:
        if isinstance(node, ast.Attribute) and node.attr in _INNARDS:
            yield Flag(code="obfuscation", line=node.lineno, message=f"takes {node.attr}")
        if isinstance(node, ast.Name) and node.id == "__builtins__":
            yield Flag(code="obfuscation", line=node.lineno, message="takes __builtins__")
        if isinstance(node, ast.Subscript) and _reversed(node):
            yield Flag(code="obfuscation", line=node.lineno, message="a text written backwards")


_MAKERS = frozenset({"exec", "eval", "compile", "__import__", "marshal.loads", "marshal.load"})
_IMPORTERS = frozenset({"importlib.import_module", "importlib.__import__"})
_INNARDS = frozenset({"__subclasses__", "__globals__", "__builtins__", "__code__"})
_POWERFUL = frozenset(
    {"builtins", "os", "sys", "subprocess", "importlib", "io", "shutil", "socket"}
)
_WORDS = frozenset({"exec", "eval", "system", "popen", "urlopen", "__import__", *_INNARDS})
_UNPACKERS = frozenset(
    {
        *("base64.b64decode", "base64.b85decode", "base64.a85decode", "base64.b32decode"),
        *("base64.b16decode", "base64.decodebytes", "base64.urlsafe_b64decode"),
        *("base64.standard_b64decode", "binascii.unhexlify", "binascii.a2b_hex"),
        *("binascii.a2b_base64", "zlib.decompress", "bz2.decompress", "lzma.decompress"),
        *("gzip.decompress", "bytes.fromhex", "bytearray.fromhex", "codecs.decode"),
        *("pickle.loads", "cloudpickle.loads", "dill.loads"),
    }
)


def _hides(name: str, call: ast.Call, script: Script, constants: set[str]) -> str | None:
    first = call.args[0] if call.args else None
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "fromhex":
        name = "bytes.fromhex"
    if name in _MAKERS:
        return f"{name}: code that is made where it runs"
    if name in _IMPORTERS and (first is None or folded(first) in (None, "\0")):
        return "imports a module whose name is made where it runs"
    if name == "getattr" and len(call.args) > 1:
        attribute = folded(call.args[1])
        owner = script.dotted(call.args[0]).partition(".")[0]
        if attribute in _WORDS or (owner in _POWERFUL and attribute is None):
            return f"getattr: {attribute or f'something of {owner}'}, not written out"
    if name in _UNPACKERS and first is not None and _is_constant(first, constants):
        return f"{name} of what is written in the code"
    return None


def _constants(script: Script) -> set[str]:
    """Names that are given a text or bytes."""
    return {
        target.id
        for node in script.nodes
        if isinstance(node, ast.Assign) and folded(node.value) is not None
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_constant(node: ast.expr, constants: set[str]) -> bool:
    return any(
        folded(part) is not None or (isinstance(part, ast.Name) and part.id in constants)
        for part in ast.walk(node)
    )


def _reversed(node: ast.Subscript) -> bool:
    step = node.slice.step if isinstance(node.slice, ast.Slice) else None
    return isinstance(step, ast.UnaryOp) and bool(folded(node.value))
