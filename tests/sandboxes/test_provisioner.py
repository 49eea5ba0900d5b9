"""Any Jupyter tool gets a warm kernel by a kernel specification that names the provisioner."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from importlib.metadata import EntryPoint

import psutil
import pytest
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory

from mle_ideator.sandboxes.warm import close_all

NAME = "mle-ideator-warm"
TARGET = "mle_ideator.sandboxes.provisioner:WarmProvisioner"
COMMAND = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]


@pytest.fixture(autouse=True)
def no_fork_server_stays():
    yield
    close_all()


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """Of a kernel specification with this command."""
    monkeypatch.chdir(tmp_path)
    factory = KernelProvisionerFactory.instance()
    found = EntryPoint(NAME, TARGET, KernelProvisionerFactory.GROUP_NAME)
    monkeypatch.setitem(factory.provisioners, NAME, found)

    def make(command: list[str]) -> AsyncKernelManager:
        folder = tmp_path / "kernels" / "warm"
        folder.mkdir(parents=True)
        config = {"preload": ["numpy", "pandas"]}
        spec = {
            "argv": command,
            "display_name": "Warm",
            "language": "python",
            "env": {"OF_THE_KERNEL": "x"},
            "metadata": {"kernel_provisioner": {"provisioner_name": NAME, "config": config}},
        }
        (folder / "kernel.json").write_text(json.dumps(spec))
        specs = KernelSpecManager(kernel_dirs=[str(folder.parent)])
        return AsyncKernelManager(kernel_name="warm", kernel_spec_manager=specs)

    return make


async def connect(manager: AsyncKernelManager):
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)
    return client


async def run(client, code: str) -> str:
    """What a cell writes, as messages of Jupyter's protocol."""
    written: list[str] = []

    def take(message):
        content = message["content"]
        written.append(content.get("text", "") + content.get("evalue", ""))

    await asyncio.wait_for(client.execute_interactive(code, output_hook=take, timeout=60), 60)
    return "".join(written)


LOOK = """
import sys, os
how = "warm" if "pandas" in sys.modules else "cold"
print(how, os.getcwd(), os.getpid(), os.environ["OF_THE_KERNEL"], os.environ["HOME"])
"""


async def test_a_kernel_is_a_fork_and_lives_as_others_do(manager, tmp_path):
    kernel = manager(COMMAND)
    await kernel.start_kernel()
    client = await connect(kernel)
    how, folder, pid, variable, home = (await run(client, LOOK)).split()
    assert (how, folder, variable) == ("warm", str(tmp_path), "x")
    assert home == os.environ["HOME"]
    assert int(pid) == kernel.provisioner.pid
    assert await run(client, "import pandas as pd; print(pd.Series([1, 2]).sum())") == "3\n"
    assert "division by zero" in await run(client, "1 / 0")

    sleeping = asyncio.create_task(run(client, "import time; time.sleep(60)"))
    await asyncio.sleep(1)
    await kernel.interrupt_kernel()
    await asyncio.wait_for(sleeping, 20)
    assert await run(client, "print('alive')") == "alive\n"

    await kernel.restart_kernel(now=True)
    client.stop_channels()
    client = await connect(kernel)
    again = (await run(client, LOOK)).split()
    assert again[0] == "warm"
    assert again[2] != pid
    assert not psutil.pid_exists(int(pid))

    client.stop_channels()
    await kernel.shutdown_kernel()
    assert not await kernel.is_alive()
    assert not psutil.pid_exists(int(again[2]))


async def test_a_kernel_that_dies_is_noticed(manager):
    kernel = manager(COMMAND)
    await kernel.start_kernel()
    client = await connect(kernel)
    assert await kernel.is_alive()
    client.execute("import os; os._exit(1)")
    for _ in range(100):
        if not await kernel.is_alive():
            break
        await asyncio.sleep(0.1)
    assert not await kernel.is_alive()
    client.stop_channels()
    await kernel.shutdown_kernel(now=True)


async def test_other_commands_start_as_usual_and_the_log_says_so(manager, caplog):
    kernel = manager([sys.executable, "-Wignore", *COMMAND[1:]])
    await kernel.start_kernel()
    client = await connect(kernel)
    assert (await run(client, LOOK)).startswith("cold")
    assert "the kernel starts cold: only" in caplog.text
    client.stop_channels()
    await kernel.shutdown_kernel(now=True)
