"""`mle-ideator serve` as it is called: what it refuses to start, and how it says so."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from mle_ideator.cli import main
from tests.ideators.serving.conftest import HERE, MAIN, TOKEN


@pytest.fixture
def refused(monkeypatch, capsys):
    """The one line that a call is refused with."""
    monkeypatch.chdir(HERE)

    def refused(*options: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(("serve", *options))
        told = capsys.readouterr()
        assert (ended.value.code, told.out) == (2, "")
        assert told.err.count("\n") == 1
        return told.err

    return refused


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--ideator", "vague", "--host", "0.0.0.0"), "--token-file"),
        (("--ideator", "vague", "--host", "::"), "--token-file"),
        (("--ideator", "served:Terminal"), "terminal"),
        (("--ideator", "vaque"), "did you mean 'vague'?"),
        (("--ideator", "vague", "--set", "x=1"), "takes no options"),
        (("--ideator", "served:Echo", "--set", "secnds=1"), "did you mean 'seconds'?"),
        (("--ideator", "served:Echo", "--set", "seconds"), "key=value"),
        (("--ideator", "served:Echo", "--set", "seconds={"), "not YAML"),
        (("--ideator", "vague", "--token-file", "/no/such/file"), "No such file"),
        (("--ideator", "vague", "--token-file", "/dev/null"), "one token"),
        (("--ideator", "vague", "--token-file", __file__), "token"),
        (("--ideator", "vague", "--token-file", "x", "--no-token"), "exclude each other"),
        (("--ideator", "vague", "--host", "no.such.host.invalid", "--no-token"), "can not listen"),
        (("--ideator", "vague", "--deadline", "soon"), "duration"),
        (("--ideator", "vague", "--concurrency", "0"), "concurrency"),
        (("--ideator", "vague", "--port", "70000"), "port"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(refused, options, says):
    assert says in refused(*options)


def test_a_taken_port_is_told_in_one_line(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refused("--ideator", "vague", "--port", str(port))
    assert f"can not listen on 127.0.0.1 port {port}" in told


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "prometheus_client"])
def test_a_missing_package_is_named_with_the_command_that_brings_it(refused, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    told = refused("--ideator", "vague")
    assert "pip install 'mle-ideator[serve]'" in told
    assert package in told


async def test_an_open_port_is_served_with_a_token_or_when_told_to(start, token_file, tmp_path):
    loose = tmp_path / "loose"
    loose.write_text(TOKEN)
    loose.chmod(0o644)
    for options, warning in (
        (("--token-file", str(token_file)), ""),
        (("--token-file", str(loose)), "others can read"),
        (("--no-token",), "whoever reaches 0.0.0.0"),
    ):
        server = start("--ideator", "vague", "--host", "0.0.0.0", *options)
        log = server.log.read_text()
        assert warning in log if warning else log == ""
        assert TOKEN not in log
        server.close()


def test_it_says_where_it_is_when_it_is_up():
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", "--ideator", "vague", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        line = process.stdout.readline()
        port = int(line.strip().rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port)).close()
        process.terminate()
        assert process.wait(10) == 0
    assert line.startswith("vague answers at http://127.0.0.1:")
