"""`task check`: is a task folder what it says, and does it keep its answers to itself?

`check_task` yields findings as it goes, so that a person sees the first while models still run.
What a check can not do because an earlier one failed is left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mle_ideator.benchmarks.building import PUBLIC, SAMPLE, TEST, TRAIN, digest
from mle_ideator.benchmarks.declared.assembling import Built, build, grader_of, read_built
from mle_ideator.benchmarks.declared.findings import Finding, found
from mle_ideator.benchmarks.declared.spec import Spec, read_spec
from mle_ideator.benchmarks.grading import metric_named
from mle_ideator.errors import GradingError, MleIdeatorError

if TYPE_CHECKING:
    from mle_ideator.benchmarks.declared.leaks import Files
    from mle_ideator.types import Grade

_AGAIN = (
    "import sys; from pathlib import Path; "
    "from mle_ideator.benchmarks.declared.assembling import build; "
    "from mle_ideator.benchmarks.declared.spec import read_spec; "
    "folder = Path(sys.argv[1]); build(read_spec(folder), folder, Path(sys.argv[2]))"
)


def check_task(folder: Path, whole: bool = False) -> Iterator[Finding]:
    """Check a task folder; with `whole`, run all of its reference solutions.

    Nothing of what the folder holds makes it raise: faults are findings.
    """
    folder = folder.resolve()
    try:
        spec = read_spec(folder)
    except MleIdeatorError as error:
        yield Finding("declaration", "failed", str(error))
        return
    declared = list(_declaration(spec, folder))
    yield from declared
    if any(finding.verdict == "failed" for finding in declared):
        return
    with tempfile.TemporaryDirectory(prefix="task-check-") as place:
        made = Path(place) / "first"
        made.mkdir()
        try:
            build(spec, folder, made)
        except Exception as error:  # build.py is the person's own
            yield Finding("build", "failed", f"it can not be built: {_one_line(error)}")
            return
        yield from _of_built(spec, folder, made, Path(place) / "second", whole)


def _of_built(spec: Spec, folder: Path, made: Path, again: Path, whole: bool) -> Iterator[Finding]:
    from mle_ideator.benchmarks.declared import ladders, leaks

    built = read_built(made)
    files = leaks.read_files(made, spec)
    yield _rebuilt(folder, built, again)
    yield _pinned(spec, built)
    yield _rows(spec, built)
    yield _described(folder, files)
    yield from leaks.leaks_in(files)
    yield found("parts", leaks.both_parts_scored(files), "public and private rows are both scored")
    yield _baseline(spec, made, built)
    yield _truth(spec, made, built, files)
    yield from ladders.check_references(folder, spec, made, whole)


def _declaration(spec: Spec, folder: Path) -> Iterator[Finding]:
    yield found("declaration", _misfit(spec, folder), f"{spec.type}, scored by {spec.metric}")
    yield found("source", _lacking(spec), "the data are there")
    unsaid = [name for name in ("origin", "licence") if _is_unsaid(getattr(spec, name))]
    wrong = f"task.yaml does not say the {' and the '.join(unsaid)} of the data" if unsaid else ""
    yield found("licence", wrong, f"licence: {spec.licence}", verdict="warning")


def _misfit(spec: Spec, folder: Path) -> str:
    try:
        metric = metric_named(spec.metric)
        _ = grader_of(spec, folder).max_bytes  # made at its first use
    except GradingError:
        pass  # the answers are not there yet
    except MleIdeatorError as error:
        return str(error)
    if spec.metric != metric.name:
        return f"the metric {spec.metric!r} is called {metric.name!r} in task.yaml"
    if metric.higher_is_better != spec.higher_is_better:
        better = str(metric.higher_is_better).lower()
        return f"{spec.metric} is declared the wrong way round: higher_is_better: {better}"
    return ""


def _lacking(spec: Spec) -> str:
    if spec.source is None:
        return ""
    try:
        missing = [path for path in spec.source.paths if not Path(path).exists()]
    except MleIdeatorError as error:
        return str(error)
    return f"{missing[0]} does not exist: nothing would be hidden" if missing else ""


def _is_unsaid(text: str) -> bool:
    return not text.strip() or text.strip().lower() in {"todo", "unknown", "?", "not stated"}


def _rebuilt(folder: Path, built: Built, again: Path) -> Finding:
    """Build once more in another process, where sets and dicts of texts have another order."""
    again.mkdir()
    seed = str(int(os.environ.get("PYTHONHASHSEED", "0").replace("random", "0")) + 1)
    ran = subprocess.run(
        [sys.executable, "-c", _AGAIN, str(folder), str(again)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
        check=False,
    )
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["no reason was given"])[-1]
        return Finding("same again", "failed", f"the second build failed: {last}")
    wrong = (
        ""
        if digest(again) == built.sha256
        else ("two builds differ: take all chance from `rng`, and sort what comes from sets")
    )
    return found("same again", wrong, "two builds are equal to the byte")


def _pinned(spec: Spec, built: Built) -> Finding:
    if not spec.sha256:
        advice = f"task.yaml pins no hash of the files; add `sha256: {built.sha256}`"
        return Finding("pinned", "warning", advice)
    wrong = (
        ""
        if spec.sha256 == built.sha256
        else (f"the files are not those that were measured; theirs is `sha256: {built.sha256}`")
    )
    return found("pinned", wrong, "the files are those that were measured")


def _rows(spec: Spec, built: Built) -> Finding:
    made, wanted = (f"{rows[0]:,} / {rows[1]:,}" for rows in (built.rows, spec.rows))
    wrong = "" if made == wanted else f"there are {made} rows, but task.yaml declares {wanted}"
    return found("rows", wrong, f"{made} rows, as declared")


def _described(folder: Path, files: Files) -> Finding:
    file = folder / "description.md"
    if not file.is_file():
        return Finding("description", "failed", f"{file} does not exist: agents read it")
    text = file.read_text(encoding="utf-8")
    title = f"# {files.spec.title}"
    if text.partition("\n")[0].strip() != title:
        return Finding("description", "failed", f"description.md does not begin with {title!r}")
    names = [TRAIN, TEST, SAMPLE, *files.tables, *files.train.columns]
    names += [name for table in files.tables.values() for name in table.columns]
    unsaid = [name for name in dict.fromkeys(names) if not _is_named(name, names, text)]
    more = f" and {len(unsaid) - 1} more" if len(unsaid) > 1 else ""
    wrong = f"description.md does not name `{unsaid[0]}`{more}" if unsaid else ""
    return found("description", wrong, "description.md names every file and column")


def _is_named(name: str, names: list[str], text: str) -> bool:
    """Is it named, or within a family of which the first and the last are (`p0` … `p783`)?"""
    if f"`{name}`" in text:
        return True
    stem = re.sub(r"\d+$", "", name)
    numbers = sorted(
        int(one.removeprefix(stem)) for one in names if re.fullmatch(rf"{re.escape(stem)}\d+", one)
    )
    ends = {f"`{stem}{numbers[0]}`", f"`{stem}{numbers[-1]}`"} if len(numbers) > 2 else {"\0"}
    return stem != name and all(end in text for end in ends)


def _baseline(spec: Spec, made: Path, built: Built) -> Finding:
    grade = grader_of(spec, made).grade(made / PUBLIC / SAMPLE)
    if grade.public is None or grade.private is None:
        return Finding("baseline", "failed", f"the sample submission has no score: {_why(grade)}")
    same = (grade.public, grade.private) == (built.baseline.public, built.baseline.private)
    wrong = "" if same else "the sample submission does not score as the baseline"
    return found("baseline", wrong, f"a constant scores {grade.private} (private)")


def _truth(spec: Spec, made: Path, built: Built, files: Files) -> Finding:
    """The true answers, submitted, are best: perfect, or at least better than the baseline."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "submission.csv"
        _true_submission(spec, files).to_csv(path, index=False)
        grade = grader_of(spec, made).grade(path)
    if grade.public is None or grade.private is None:
        return Finding("truth", "failed", f"the true answers have no score: {_why(grade)}")
    for part, score in (("public", grade.public), ("private", grade.private)):
        baseline = getattr(built.baseline, part)
        if not score.better_than(baseline):
            wrong = f"the true answers score {score} ({part}), no better than a constant"
            return Finding("truth", "failed", f"{wrong} ({baseline}): metric or answers are wrong")
    best = 1.0 if spec.higher_is_better else 0.0
    perfect = abs(grade.private.value - best) < 1e-3
    return Finding(
        "truth",
        "ok" if perfect else "warning",
        f"the true answers score {grade.private}" + ("" if perfect else ", which is not perfect"),
    )


def _true_submission(spec: Spec, files: Files) -> Any:
    submission = files.answers[[spec.id_column]].copy()
    if len(spec.columns) > len(spec.targets):
        for name in spec.columns:
            submission[name] = (files.answers[spec.targets[0]] == name).astype(int)
        return submission
    low = metric_named(spec.metric).bounds
    for name in spec.targets:
        values = files.answers[name]
        if spec.prediction == "probability" and spec.classes:
            values = (values == spec.classes[-1]).astype(int)
        if low.above_low:
            values = values.astype(float).clip(lower=low.low + 1e-9)
        submission[name] = values
    return submission


def _why(grade: Grade) -> str:
    said = [*grade.problems, *grade.remarks]
    return said[0].message if said else "a part has no rows"


def _one_line(error: Exception) -> str:
    told = " ".join(str(error).split())
    return told if isinstance(error, MleIdeatorError) else f"{type(error).__name__}: {told}"
