"""The docs are true to the code: their calls exist, their files are there, their keys are real."""

import re
import tomllib
from pathlib import Path

import pytest
import typer.main

from mle_ideator.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = typer.main.get_command(app).commands


def calls(text: str) -> list[tuple[str, list[str]]]:
    """Every `mle-ideator COMMAND --option …` of a page's code, with its options."""
    code = re.findall(r"```(?:bash|sh)?\n(.*?)```", text, re.DOTALL) + re.findall(
        r"`([^`\n]+)`", text
    )
    found = []
    for line in "\n".join(code).splitlines():
        line = line.split("#")[0]
        for command, rest in re.findall(r"\bmle-ideator ([a-z]+)((?: [^&|;]*)?)", line):
            found.append((command, re.findall(r"(?<=\s)--[a-z-]+", rest)))
    return found


def params(command) -> list:
    """The command's own, or those of its subcommands."""
    below = getattr(command, "commands", {}).values()
    return [param for each in (command, *below) for param in each.params]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_call_in_the_docs_exists(page):
    for command, options in calls(page.read_text()):
        assert command in COMMANDS, f"{page.name}: mle-ideator {command}"
        known = {name for param in params(COMMANDS[command]) for name in param.opts}
        unknown = set(options) - known - {"--help"}
        assert not unknown, f"{page.name}: mle-ideator {command} {unknown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_in_the_docs_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_architecture_names_every_room():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.name for path in (ROOT / "mle_ideator").iterdir() if path.suffix == ".py"}
    rooms |= {f"{path.name}/" for path in (ROOT / "mle_ideator").iterdir() if path.is_dir()}
    missing = {room for room in rooms - {"__init__.py", "__main__.py"} if room not in text}
    assert missing - {"__pycache__/"} == set()


def test_every_bundled_ideator_is_documented():
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    text = (ROOT / "docs" / "ideators.md").read_text()
    assert all(f"`{name}" in text for name in points["mle_ideator.ideators"])


def test_the_readme_calls_the_tests_as_ci_does():
    call = re.search(r"```bash\n(.*make check.*)\n```", (ROOT / "README.md").read_text())
    assert call is not None
    assert call.group(1) in (ROOT / ".ci" / "run").read_text()
