"""`mle-ideator image build`, from an image that this machine has and without a network."""

from __future__ import annotations

import subprocess
from importlib import metadata

import pytest

from mle_ideator.cli import main
from mle_ideator.sandboxes import choose_sandbox
from mle_ideator.sandboxes.containers import recipe
from mle_ideator.sandboxes.containers.docker import DEFAULT_IMAGE, DockerSandbox
from mle_ideator.types import Execute

REASON = DockerSandbox.unavailable()
needs_docker = pytest.mark.skipif(REASON is not None, reason=f"docker: {REASON}")
TAG = "mle-ideator-test/built"
OFFLINE = ("--network", "none", "--base", DEFAULT_IMAGE, "--tag", TAG)


def build(*options: str) -> int | str | None:
    with pytest.raises(SystemExit) as end:
        main(["image", "build", *options])
    return end.value.code


@pytest.fixture
def built(capfd, tmp_path_factory):
    small = tmp_path_factory.mktemp("image") / "requirements.txt"  # the test's base has no torch
    lines = recipe.requirements().splitlines(keepends=True)
    small.write_text("".join(line for line in lines if not line.startswith(("torch", "transf"))))
    assert build(*OFFLINE, "--requirements", str(small)) == 0
    assert f"--sandbox docker:{TAG}" in capfd.readouterr().out
    yield TAG
    subprocess.run(["docker", "rmi", TAG], capture_output=True, check=True)


@needs_docker
async def test_a_built_image_works(built, make_request):
    async with choose_sandbox(f"docker:{built}")[1](make_request()) as sandbox:
        code = "import pandas; print(pandas.__version__)"
        execution = await sandbox.execute(Execute("python", code), 60)
    assert execution.text == metadata.version("pandas") + "\n"
    assert execution.status == "ok"


@needs_docker
async def test_a_built_image_need_not_compile_anything(built, make_request):
    async with choose_sandbox(f"docker:{built}")[1](make_request()) as sandbox:
        code = """
import sys
from importlib.util import cache_from_source
from pathlib import Path
files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
files = [file for file in files if file.endswith(".py") and not file.startswith("/run/")]
print(len(files) > 300, [file for file in files if not Path(cache_from_source(file)).exists()])
"""
        execution = await sandbox.execute(Execute("python", code), 60)
    assert execution.text == "True []\n"


@needs_docker
def test_a_build_that_fails_is_said_in_one_line(tmp_path, capfd):
    file = tmp_path / "requirements.txt"
    file.write_text("no-such-package-anywhere==99\n")
    assert build(*OFFLINE, "--requirements", str(file)) == 3
    assert "the image could not be built" in capfd.readouterr().err.splitlines()[-1]


def test_a_missing_file_is_said(tmp_path, capfd):
    assert build("--requirements", str(tmp_path / "none.txt")) == 2
    assert "can not be read" in capfd.readouterr().err


def test_the_image_gets_what_is_installed_here():
    lines = recipe.requirements().splitlines()
    assert f"ipykernel=={metadata.version('ipykernel')}" in lines
    assert f"pandas=={metadata.version('pandas').partition('+')[0]}" in lines
    assert recipe.base_image().startswith("python:3.")
