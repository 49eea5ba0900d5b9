"""The example package installs as a person would install it, and works through its entry points."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
IDEA = (
    "<analysis>Refine: go on.</analysis><action>Use a random forest.</action>"
    "<rationale>It is robust.</rationale>"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Where the package was installed, without the network."""
    folder = tmp_path_factory.mktemp("examples")
    source = shutil.copytree(ROOT / "docs" / "examples", folder / "source")
    flags = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target"]
    pip = [sys.executable, "-m", "pip", "install", *flags, str(folder / "site"), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder / "site"


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(installed, tmp_path) -> Run:
    """`python -m …` where the examples are installed."""

    def call(*arguments: str, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300
        )

    return call


class Ollama(BaseHTTPRequestHandler):
    """Ollama's `POST /api/chat`, as its documentation shows it; busy at the first call."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append({"path": self.path, **request})
        busy = len(self.asked) == 1
        answer = {
            "model": request["model"],
            "created_at": "2026-06-01T00:00:00Z",
            "message": {"role": "assistant", "content": IDEA, "thinking": "trees, surely"},
            "done_reason": "stop",
            "done": True,
            "prompt_eval_count": 900,
            "eval_count": 40,
        }
        body = json.dumps({"error": "server busy"} if busy else answer).encode()
        self.send_response(503 if busy else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def ollama() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []
    handler = type("Handler", (Ollama,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


SCRIPT = """
- type: execute
  language: bash
  code: |
    cat > solution.py <<'END'
    open("submission.csv", "w").write(open("input/sample_submission.csv").read())
    print("Validation score: 3.5")
    END
    python solution.py
- {type: seek_help, request: {problem: It stalls., attempts: One., goal: A better score.}}
- {type: seek_help, request: {problem: Again., attempts: None yet., goal: A better score.}}
- {type: execute, language: bash, code: "true"}
- {type: seek_help, request: {problem: It stalls., attempts: Two., goal: A better score.}}
"""


def session(run: Run, folder: Path, ideator: str) -> list[dict[str, Any]]:
    """The events of a short session on a tiny table."""
    (folder / "script.yaml").write_text(SCRIPT)
    rows = (f"{i},{i * 7 % 13},{2 * i + i * 7 % 13}" for i in range(60))
    (folder / "train.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    done = run(
        *("mle_ideator", "run", "--train", "train.csv", "--target", "y", "--sandbox", "local"),
        *("--implementer", "scripted:script.yaml", "--ideator", ideator, "--out", "run"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (folder / "run" / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def steps_in(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["step"] for event in events if event["type"] == "stepped"]


@pytest.mark.slow
def test_the_ideator_works_in_a_session_by_its_short_name(run, tmp_path):
    ideas = [step["idea"] for step in steps_in(session(run, tmp_path, "playbook"))]
    assert ideas[1]["analysis"].startswith("Refine: solution #1 with ")
    plays = [idea and idea["action"].split()[0] for idea in ideas]
    assert plays[1:5] == ["Replace", None, None, "Add"]


def test_the_ideator_passes_the_conformance_suite(run):
    done = run(
        *("pytest", "-q", "-p", "no:cacheprovider", "-k", "playbook", "--no-header"),
        "tests/ideators/test_conformance.py",
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_chat_model_advises_in_a_session(run, tmp_path, ollama):
    url, asked = ollama
    events = session(run, tmp_path, f"ollama:tiny@{url}")
    step = next(step for step in steps_in(events) if step["idea"])
    assert step["idea"]["action"] == "Use a random forest."
    usage = next(e["ideator_usage"] for e in events if e.get("step", {}) == step)
    assert (usage["input_tokens"], usage["output_tokens"]) == (900, 40)
    assert asked[-1]["path"] == "/api/chat"
    assert asked[-1]["model"] == "tiny"
    assert asked[-1]["messages"][0]["role"] == "system"
    assert len(asked) >= 2, "the busy server was asked again"
