"""From a spec and options to a sandbox."""

from __future__ import annotations

import sys

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.sandboxes import choose_sandbox
from mle_ideator.sandboxes.containers.daemon import _gpus
from mle_ideator.sandboxes.containers.docker import DockerSandbox


def test_an_image_and_options_are_the_sandboxes():
    name, factory = choose_sandbox("docker:mine:1", {"temporary_gib": 2})
    assert name == "docker:mine:1"
    assert (factory.options.image, factory.options.temporary_gib) == ("mine:1", 2)
    assert choose_sandbox("docker")[1].options.image == "mle-ideator/sandbox"


@pytest.mark.parametrize(
    ("spec", "options", "line"),
    [
        ("docker", {"temporary_gb": 2}, "did you mean 'temporary_gib'"),
        ("docker", {"temporary_gib": 0}, "must be more than 0"),
        ("docker", {"temporary_gib": float("inf")}, "must be more than 0, and finite"),
        ("docker", {"temporary_gib": "much"}, "Expected `float`"),
        ("docker:", {}, "needs the name of an image"),
        ("local", {"temporary_gib": 2}, "takes no options"),
        ("local:x", {}, "takes no argument"),
        ("dokcer", {}, "unknown sandbox 'dokcer'; did you mean 'docker'"),
    ],
)
def test_a_wrong_choice_is_said(spec, options, line):
    with pytest.raises(UsageError, match=line):
        choose_sandbox(spec, options)


def test_a_missing_package_is_said_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    reason = choose_sandbox("docker")[1].unavailable()
    assert reason == ("the package docker is not installed: `pip install 'mle-ideator[docker]'`")


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        ("all", {"count": -1}),
        ("2", {"device_ids": ["2"]}),
        ("0,3", {"device_ids": ["0", "3"]}),
        ("GPU-1f", {"device_ids": ["GPU-1f"]}),
    ],
)
def test_gpus_are_asked_for_by_number_or_id(wanted, asked):
    assert _gpus(wanted).items() >= asked.items()


@pytest.mark.parametrize(
    ("wanted", "own", "given"),
    [
        (None, None, ""),
        (None, "0", ""),
        ("", None, ""),
        ("all", None, "all"),
        ("all", "2,3", "2,3"),
        ("2", "2,3", "2"),
        ("0,1", None, "0,1"),
    ],
)
def test_a_container_gets_the_gpus_of_the_request(make_request, monkeypatch, wanted, own, given):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if own is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", own)
    assert DockerSandbox(make_request(gpus=wanted))._gpus() == given
