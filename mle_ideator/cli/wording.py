"""Events, steps, scores and summaries in words. Nothing here can carry a terminal code."""

from __future__ import annotations

import msgspec
from rich.text import Text

from mle_ideator.cli.text import duration, one_line, printable
from mle_ideator.journal import (
    Asked,
    Decided,
    Ended,
    Event,
    Refitted,
    Rejected,
    Rerun,
    Resumed,
    Solved,
    Spent,
    Started,
    Stepped,
    Warned,
)
from mle_ideator.results import Baseline, Best, Summary
from mle_ideator.types import Action, Execute, Finish, Malformed, Scores, SeekHelp, Step, Usage


def line_of(event: Event) -> str:
    """An event in one line; empty for what needs none."""
    match event:
        case Started(task=task, sandbox=sandbox):
            direction = "higher" if task.metric.higher_is_better else "lower"
            line = (
                f"{task.id}: {task.title} ({task.metric.name}, {direction} is better), "
                f"baseline {scores_text(guiding(task.baseline))}, sandbox {sandbox.kind}"
            )
        case Resumed(sandbox=sandbox):
            line = f"goes on after a break, sandbox {sandbox.kind}"
        case Decided(step=number, decision=decision):
            thought = f" - {one_line(decision.thought, 160)}" if decision.thought else ""
            line = f"[{number}] {name_of(decision.action)}{thought}"
        case Asked(request=request):
            line = f"    asked: {one_line(request.problem, 160)}"
        case Spent(usage=usage):
            line = f"    without an answer: {usage_text(usage)}"
        case Stepped(step=step):
            line = f"[{step.number}] {outcome_of(step)}"
        case Solved(solution=solution, best=best):
            mark = ", the best so far" if best else ""
            line = f"    solution #{solution.number}: {scores_text(guiding(solution.scores))}{mark}"
        case Rejected(grade=grade):
            line = "    submission refused: " + "; ".join(p.message for p in grade.problems)
        case Warned(message=message):
            line = f"    warning: {message}"
        case Rerun(solution=number, reproduced=reproduced, scores=scores):
            verdict = scores_text(guiding(scores)) if reproduced else "failed"
            line = f"clean re-run of solution #{number}: {verdict}"
        case Refitted(solution=number, detail=detail):
            verdict = "failed" if detail else "done"
            line = f"fit of solution #{number} to all labelled rows: {verdict}"
        case Ended(outcome=outcome, detail=detail):
            line = f"ended: {outcome}{f' - {detail}' if detail else ''}"
    return printable(line)


def name_of(action: Action) -> str:
    """An action in a word or two."""
    match action:
        case Execute(language=language):
            return language
        case SeekHelp():
            return "seek help"
        case Finish():
            return "finish"
        case Malformed():
            return "unreadable"


def outcome_of(step: Step) -> str:
    """What came of a step, in one line."""
    observation = step.observation
    match step.action:
        case SeekHelp():
            return f"idea: {one_line(step.idea.action, 160)}" if step.idea else "no idea came"
        case Finish(reason=reason):
            return one_line(reason, 160) or "done"
        case Malformed(reason=reason):
            return one_line(reason, 160)
        case Execute():
            return f"{observation.status} after {observation.duration_s:.1f}s"


def scores_text(scores: Scores | Best | Baseline) -> str:
    """`validation 0.91, public 0.90`, naming only what is scored."""
    named = {
        "validation": scores.validation,
        "public": scores.public,
        "private": scores.private,
    }
    parts = [
        f"{name} {score:.6g}" if isinstance(score, float) else f"{name} {score}"
        for name, score in named.items()
        if score is not None
    ]
    return ", ".join(parts) or "unscored"


def guiding(scores: Scores) -> Scores:
    """Without the private score: it is for the final report, not for whoever watches and helps."""
    return msgspec.structs.replace(scores, private=None)


def usage_text(usage: Usage) -> str:
    """`3 model calls in 41s, 12,000 tokens in (75 % cached) and 800 out, $0.042`."""
    parts = [_counted(usage.calls, "model call")]
    if usage.waited_s:
        parts[0] += f" in {duration(usage.waited_s)}"
    if usage.input_tokens is None or usage.output_tokens is None:
        parts.append("tokens unknown")
    else:
        share = (usage.cached_tokens or 0) / max(1, usage.input_tokens)
        cached = f" ({share:.0%} cached)" if share else ""
        parts.append(f"{usage.input_tokens:,} tokens in{cached} and {usage.output_tokens:,} out")
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.3f}")
    elif usage.at_most_usd is not None:
        parts.append(f"at most ${usage.at_most_usd:.3f}")
    else:
        parts.append("cost unknown")
    return ", ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def closing(summary: Summary) -> Text:
    """What came of the session, and where it lies."""
    if summary.best.solution is None:
        head = Text("no validated submission was produced", style="bold red")
    else:
        head = Text.assemble(("best ", "bold"), scores_text(summary.best))
    head.append(f"\nbaseline {scores_text(summary.baseline)}")
    head.append(
        f"\n{_counted(summary.steps, 'step')}, {_counted(summary.help_requests, 'help request')}, "
        f"{_counted(summary.improvements, 'idea')} led to a new best; "
        f"{duration(summary.duration_s)}"
    )
    for agent, usage in summary.usage.items():
        if usage.calls:
            head.append(f"\n{agent}: {usage_text(usage)}")
    for warning in summary.warnings:
        head.append(f"\nwarning: {printable(warning)}", style="yellow")
    head.append(f"\n{printable(summary.run)}")
    return head
