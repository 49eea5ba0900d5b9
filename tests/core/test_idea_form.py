"""Ideas read from text: what counts, what is forgiven, what is refused and why."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_ideator.idea_form import (
    MAX_PART_CHARS,
    PARTS,
    idea_schema,
    listed,
    read_idea,
    well_formed,
    wrong_revert,
)
from mle_ideator.types import Idea

IDEA = Idea("Refine: the errors are largest for dear houses.", "Train on log1p.", "It is skewed.")
TAGS = (
    f"<analysis>{IDEA.analysis}</analysis>\n<action>{IDEA.action}</action>\n"
    f"<rationale>{IDEA.rationale}</rationale>"
)
JSON = json.dumps({name: getattr(IDEA, name) for name in PARTS})


def in_tags(
    analysis: str = "Refine: a.", action: str = "Do b.", rationale: str = "Since c."
) -> str:
    return (
        f"<analysis>{analysis}</analysis><action>{action}</action>"
        f"<rationale>{rationale}</rationale>"
    )


FORGIVEN = {
    "as it should be": TAGS,
    "prose around": f"Let me think about `x < 3`.\n\n{TAGS}\n\nGood luck!",
    "a fence": f"```xml\n{TAGS}\n```",
    "a fence of tildes": f"~~~\n{TAGS}\n~~~",
    "a fence that a stop sequence left open": f"```\n{TAGS.removesuffix('</rationale>')}",
    "upper case": re.sub("<[^>]*>", lambda tag: tag[0].upper(), TAGS),
    "blank space": TAGS.replace(">", " >").replace("</", "\n </ "),
    "headings between": TAGS.replace("\n", "\n\n**Next**\n\n"),
    "the last tag taken away": TAGS.removesuffix("</rationale>"),
    "the last tag torn": TAGS.removesuffix("nale>"),
    "a closing fence after the last tag taken away": f"{TAGS.removesuffix('</rationale>')}\n```",
    "a thought before": f"<think>Perhaps <analysis> first?</think>\n{TAGS}",
    "a thought whose start was in the prompt": f"Shall I write <action>?</think>{TAGS}",
    "a tag mentioned in backticks": f"I write `<analysis>` first.\n{TAGS}",
    "JSON": JSON,
    "JSON in a fence": f"```json\n{JSON}\n```",
    "JSON after prose": f"Here it is: {JSON} Good luck!",
    "JSON before prose with braces": f"{JSON} Mind {{x}} too.",
    "JSON with other spacing": json.dumps(json.loads(JSON), indent=4),
    "JSON keys in capitals": JSON.replace("analysis", "Analysis"),
    "a trailing comma": JSON.replace("}", ",}"),
    "Python": str(json.loads(JSON)),
    "keys without quotes": re.sub(r'"(\w+)":', r"\1:", JSON),
}


@pytest.mark.parametrize("case", FORGIVEN)
def test_forgiven(case):
    assert read_idea(FORGIVEN[case]) == (IDEA, "")


@pytest.mark.parametrize(
    "quoted",
    [
        "Write `<action>` first.",
        "The answer lacks `</analysis>`.",
        "Look for '<rationale>' in the texts.",
        'Use re.findall("<action>(.*?)</action>", text).',
        "Use re.search('</rationale>', text).",
        "Print `<action>x</action>`.",
        "Read a<b and c>d, <b>bold</b>, <actions> and <thought>.",
    ],
)
@pytest.mark.parametrize("part", PARTS)
def test_tags_that_are_only_mentioned_confuse_nothing(quoted, part):
    texts = {"analysis": "Refine: a.", "action": "Do b.", "rationale": "Since c."}
    texts[part] = f"{texts[part]} {quoted}"
    assert read_idea(in_tags(**texts)) == (Idea(**texts), "")


def test_tags_in_json_are_text():
    texts = {"analysis": "Refine: a.", "action": "Drop <action>.", "rationale": "Since </action>."}
    assert read_idea(json.dumps(texts)) == (Idea(**texts), "")


def test_quotes_at_the_ends_of_parts_hide_no_tag():
    text = in_tags('Refine: it says "x"', 'Use "y"', 'For "z"')
    assert read_idea(text)[0] == Idea('Refine: it says "x"', 'Use "y"', 'For "z"')
    assert read_idea(in_tags("Refine: `x`", "`y`", "Use `z`"))[0]


def test_code_in_an_action_stays_as_it_is():
    code = "Write:\n```python\nif a < b:\n    print('x')\n```"
    idea, _ = read_idea(f"```\n{in_tags(action=code)}\n```")
    assert idea
    assert idea.action == code


def test_a_number_in_json_is_read_as_text():
    assert read_idea('{"analysis": "Refine: a", "action": 3, "rationale": 0.5}')[0] == Idea(
        "Refine: a", "3", "0.5"
    )


REFUSED = {
    "nothing": ("", "it is empty"),
    "blank": (" \n\t", "it is empty"),
    "prose": ("You should tune the model.", "neither the tags"),
    "no analysis": (TAGS.replace(f"<analysis>{IDEA.analysis}</analysis>", ""), "<analysis> is m"),
    "no action": (TAGS.replace(f"<action>{IDEA.action}</action>", ""), "<action> is missing"),
    "no rationale": (TAGS.partition("<rationale>")[0], "<rationale> is missing"),
    "an open part": (TAGS.replace("</action>", ""), "</action> is missing"),
    "cut in the action": (TAGS.partition("log1p")[0], "</action> is missing"),
    "two actions": (
        TAGS.replace("<action>", "<action>a</action><action>"),
        "<action> stands there 2 times",
    ),
    "two ideas": (f"{TAGS}\n{TAGS}", "<analysis> stands there 2 times"),
    "an action after the end": (f"{TAGS}<action>b</action>", "<action> stands there 2 times"),
    "another order": (
        "<action>a</action><analysis>Refine: b</analysis><rationale>c</rationale>",
        "follow each other",
    ),
    "nested": (
        "<analysis>Refine: b<action>a</action></analysis><rationale>c</rationale>",
        "follow each other",
    ),
    "an empty action": (in_tags(action=" "), "action is empty"),
    "only dots": (in_tags(action="…"), "action is empty"),
    "an empty rationale": (in_tags(rationale=""), "rationale is empty"),
    "neither refine nor revert": (in_tags("Improve the model."), "must start with"),
    "revert to nothing": (in_tags("Revert: it was better."), "must start with"),
    "refine in the middle": (in_tags("I would refine it."), "must start with"),
    "a long part": (in_tags(action="x" * (MAX_PART_CHARS + 1)), f"at most {MAX_PART_CHARS}"),
    "a number of many digits": (in_tags(f"Revert to #{'9' * 5000}: a"), "at most"),
    "a key too few": ('{"analysis": "Refine: a", "action": "b"}', "must have the keys"),
    "a key too many": (JSON.replace("{", '{"score": 1, '), "must have the keys"),
    "keys that are one": (
        '{analysis: "Refine: a", Analysis: "b", action: "c", rationale: "d"}',
        "the keys",
    ),
    "wrapped": (f'{{"idea": {JSON}}}', "must have the keys"),
    "two objects": (f"{JSON} {JSON}", 'the key "analysis" stands there 2 times'),
    "two objects in Python": (str(json.loads(JSON)) * 2, 'the key "analysis" stands there 2'),
    "a key twice": (JSON.replace("{", '{"action": "x", '), 'the key "action" stands there 2'),
    "a list": ('{"analysis": "Refine: a", "action": ["b"], "rationale": "c"}', "action must be"),
    "true": ('{"analysis": "Refine: a", "action": "b", "rationale": True}', "rationale must be"),
    "none": ('{"analysis": null, "action": "b", "rationale": "c"}', "analysis must be one text"),
    "JSON that is cut": (JSON[:-5], "not closed"),
    "a brace": ("{", "not closed"),
    "deep rubbish": ("{" * 20_000 + "}", "much more"),
    "braces": ("{}" * 50, "JSON object"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    text, says = REFUSED[case]
    idea, wrong = read_idea(text)
    assert idea is None
    assert says in wrong


@pytest.mark.parametrize("case", REFUSED)
def test_the_reason_is_one_sentence_that_can_be_sent_back(case):
    wrong = read_idea(REFUSED[case][0])[1]
    assert "\n" not in wrong
    assert 0 < len(wrong) < 200
    assert not wrong.endswith(".")


# ------------------------------------------------------------------------------ properties

NO_TAGS = st.text(st.characters(exclude_characters="<>{}`\"'", exclude_categories=("Cs",))).map(
    str.strip
)
WORDS = NO_TAGS.filter(lambda text: re.search(r"\w", text))


@settings(deadline=None)
@given(NO_TAGS, WORDS, WORDS, st.sampled_from(["Refine: ", "Revert to #3: ", "refining "]))
def test_what_is_written_in_form_is_read_back(said, action, rationale, opening):
    idea = Idea(f"{opening}{said}".strip(), action, rationale)
    text = in_tags(idea.analysis, idea.action, idea.rationale)
    assert read_idea(text) == (idea, "")
    assert read_idea(text.removesuffix("</rationale>")) == (idea, "")
    assert read_idea(json.dumps({name: getattr(idea, name) for name in PARTS})) == (idea, "")


PIECES = st.sampled_from(
    [
        *("<analysis>", "</analysis>", "<action>", "</action>", "<rationale>", "</rationale>"),
        *(
            "Refine: x",
            "Revert to #2",
            "{",
            "}",
            '"action":',
            "`",
            "```",
            '"',
            "'",
            "\n",
            "</think>",
        ),
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join) | st.text())
def test_total_and_strict(text):
    """Any text brings a well-formed idea or one sentence."""
    idea, wrong = read_idea(text)
    assert (idea is None) == bool(wrong)
    assert "\n" not in wrong
    if idea is not None:
        assert well_formed(idea)


@pytest.mark.parametrize(
    "text",
    [
        "<analysis>" * 20_000,
        "'<action>" * 20_000,
        "`<action>" * 10_000 + "`",
        "</think>" * 20_000,
        "{" + '"' * 15_000 + "}",
        "{" + "[" * 199 + "}",
        "{" + '"/*“' * 3800 + "}",
        "{“" + "}true-" * 2600 + "}",
        "{" + "“ a: a: a: a: " * 1100 + "}",
        "\n" * 200_000 + "<rationale>",
        in_tags(rationale="\n" * 100_000 + "x"),
        in_tags(rationale="\n" * 100_000 + "x").removesuffix("</rationale>"),
        "<" + " " * 100_000 + "<analysis>",
        "```" + " " * 100_000 + "<analysis>",
        in_tags(rationale="</" * 50_000).removesuffix("</rationale>"),
    ],
)
def test_rubbish_takes_no_time(text):
    start = time.perf_counter()
    read_idea(text)
    assert time.perf_counter() - start < 2


# -------------------------------------------------------------------------- going back, schema


@pytest.mark.parametrize(
    ("analysis", "numbers", "says"),
    [
        ("Refine: a", [], ""),
        ("Revert to #2: a", [1, 2], ""),
        ("Revert to #3: a", [1, 2], "there is no solution #3; the solutions that exist are #1, #2"),
        ("Revert to #0: a", range(1, 41), "#1 to #40"),
        ("Revert to #1: a", [], "nor any other yet; start with Refine"),
    ],
)
def test_going_back_to_what_does_not_exist(analysis, numbers, says):
    wrong = wrong_revert(Idea(analysis, "b", "c"), numbers)
    assert says in wrong
    assert bool(wrong) == bool(says)


def test_listed():
    assert listed([1, 2, 5]) == "#1, #2, #5"
    assert listed(range(1, 40)) == "#1 to #39"


@pytest.mark.parametrize("numbers", [[], [1, 2]])
def test_the_schema_admits_what_is_read(numbers):
    schema = idea_schema(numbers)
    assert schema["required"] == list(PARTS)
    opening = re.compile(schema["properties"]["analysis"]["pattern"])
    assert opening.search("Refine: it overfits.")
    assert bool(opening.search("Revert to #2: it was better.")) == (2 in numbers)
    assert not opening.search("Revert to #3: it was better.")
    assert not opening.search("Improve: a")
    assert re.search(schema["properties"]["action"]["pattern"], "Use ratios.\nAnd more.")
    assert not re.search(schema["properties"]["action"]["pattern"], "")
