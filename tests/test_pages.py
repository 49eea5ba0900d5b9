"""What docs/models.md, docs/implementers.md, docs/ideators.md and docs/mcp.md show is so."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from mle_ideator.chat.calls import Patience
from mle_ideator.chat.clients import IDLE_S
from mle_ideator.chat.failures import BUSY
from mle_ideator.chat.prices import OVERRIDE, Price, price_of
from mle_ideator.chat.scripted import ScriptedModel
from mle_ideator.chat.specs import Address
from mle_ideator.errors import ContextOverflow
from mle_ideator.ideators.fixed import FixedIdeator
from mle_ideator.ideators.mcp_server.arguments import Arguments, Attempt
from mle_ideator.ideators.mcp_server.states import ASSUMED
from mle_ideator.ideators.mcp_server.tool import answer_schema
from mle_ideator.ideators.prompted.policy import PromptedOptions
from mle_ideator.ideators.remote import RemoteOptions
from mle_ideator.implementers.codeact.policy import CodeActOptions
from mle_ideator.messages import Message
from mle_ideator.registry import registered
from mle_ideator.types import SeekHelp

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")}


def snippets(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], re.DOTALL)


def tables(page: str, header: str) -> list[list[list[str]]]:
    """The rows of every table under a header line, each as its cells, code marks off."""
    found = PAGES[page].split(f"\n{header}\n")[1:]
    return [
        [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in rest.splitlines()[1:]]
        for rest in (rest.split("\n\n")[0] for rest in found)
    ]


# ----------------------------------------------------------------------------------- models


def test_every_chat_model_is_described():
    (specs,) = tables("models", "| spec | what it asks | key | extra |")
    assert {spec.partition(":")[0] for spec, *_ in specs} == set(registered("chat_models"))


def test_the_variable_of_a_servers_own_key_is_as_described(monkeypatch):
    monkeypatch.setenv("MLE_IDEATOR_KEY_GPU_BOX_8000", "k")
    assert "MLE_IDEATOR_KEY_GPU_BOX_8000" in PAGES["models"]
    address = Address("vllm", "m@http://gpu-box:8000/v1", "")
    assert address.key("VLLM_API_KEY", official="").value == "k"


def test_what_is_said_of_retries_is_so():
    text, patience = PAGES["models"], Patience()
    assert f"| {', '.join(map(str, sorted(BUSY)))}: busy |" in text
    assert f"up to {patience.longest_wait_s:g} s" in text
    assert f"after {patience.tries} tries" in text
    assert f"more than {patience.time_s:g} s after the first" in text
    assert f"nothing comes for {IDLE_S:g} s" in text


def test_a_list_of_prices_of_ones_own_has_the_form_shown(tmp_path, monkeypatch):
    file = tmp_path / "prices.yaml"
    file.write_text(next(s for s in snippets("models", "yaml") if "as_of" in s))
    monkeypatch.setenv(OVERRIDE, str(file))
    assert price_of("my-model") == Price(input=0.5, cached=0.05, written=0.625, output=2.0)
    assert price_of("another-2026-01-31") == price_of("another")


async def test_the_script_of_replies_can_be_played(tmp_path):
    file = tmp_path / "replies.yaml"
    file.write_text(next(s for s in snippets("models", "yaml") if "replies:" in s))
    model = ScriptedModel(str(file))
    assert "<execute_bash>" in (await model.complete([Message("user", "Go.")])).text
    assert (await model.complete([Message("user", "Left: 3 steps.")])).reasoning


async def test_ones_own_chat_model_works():
    scope: dict[str, Any] = {}
    exec(snippets("models", "python")[0], scope)
    model = scope["parrot"]("10")
    assert model.priced
    assert (await model.complete([Message("user", "hello")])).text == "hello"
    with pytest.raises(ContextOverflow, match="parrot:10"):
        await model.complete([Message("user", "good morning")])


# ----------------------------------------------------------------------------------- agents


@pytest.mark.parametrize(
    ("page", "place", "options"),
    [
        ("implementers", 0, CodeActOptions),
        ("ideators", 0, PromptedOptions),
        ("ideators", 1, RemoteOptions),
    ],
)
def test_every_option_is_described_with_its_default(page, place, options):
    rows = tables(page, "| option | default | what it does |")[place]
    described = {name: default.replace(",", "") for name, default, _ in rows}
    fields = {field.name: field.default for field in msgspec.structs.fields(options)}
    assert list(described) == list(fields)
    for name, default in fields.items():
        if default is not None:
            assert yaml.safe_load(described[name]) == default, name


async def test_ones_own_implementer_works(play, tmp_path):
    scope: dict[str, Any] = {}
    exec(snippets("implementers", "python")[0], scope)
    ideas = tmp_path / "ideas.yaml"
    ideas.write_text("[{analysis: Refine, action: Fit a line., rationale: It is one.}]")
    record = await play(scope["Beginner"](), FixedIdeator(str(ideas)))
    assert [type(step.action).__name__ for step in record.steps] == [
        "Execute",
        "SeekHelp",
        "Finish",
    ]
    assert isinstance(record.steps[1].action, SeekHelp)
    assert len(record.solutions) == 1


def test_every_implementer_is_described():
    (specs,) = tables("implementers", "| spec | what it is |")
    assert {spec.partition(":")[0] for spec, _ in specs} == set(registered("implementers"))


# -------------------------------------------------------------------------------------- MCP


def test_every_argument_of_seek_help_is_described():
    (rows,) = tables("mcp", "| argument | | |")
    described = {
        name: needed == "needed" for names, needed, _ in rows for name in re.findall(r"\w+", names)
    }
    fields = {field.name: field.required for field in msgspec.structs.fields(Arguments)}
    assert described == fields
    history = next(told for names, _, told in rows if names == "history")
    assert all(f"`{field}`" in history for field in Attempt.__struct_fields__)


def test_what_is_assumed_is_told():
    text = " ".join(PAGES["mcp"].split())
    assert (
        f"{ASSUMED.steps} steps, {ASSUMED.help_requests} ideas and {ASSUMED.minutes:g} minutes "
        f"left, {ASSUMED.cores} cores and {ASSUMED.memory_gib:g} GiB, a quarter as many test rows"
    ) in text
    assert ASSUMED.test_share == 0.25


def test_the_settings_of_other_agents_and_the_answer_have_the_form_shown():
    codex = tomllib.loads(snippets("mcp", "toml")[0])["mcp_servers"]["ideator"]
    others, answer = map(json.loads, snippets("mcp", "json"))
    assert codex["command"] == others["mcpServers"]["ideator"]["command"] == "mle-ideator"
    jsonschema.validate(answer, answer_schema())


def test_what_is_yaml_is_yaml():
    for page in ("models", "implementers", "ideators"):
        for snippet in snippets(page, "yaml"):
            assert yaml.safe_load(snippet)
