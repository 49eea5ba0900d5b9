"""The Docker daemon of this machine. Nothing else imports the `docker` package.

Calls block: async code makes them in a thread. What goes wrong is told in one line.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Self

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes.owners import is_gone, this_process

_OWNER = "mle-ideator.owner"
_TIMEOUT_S = 60
_SOCKET = "/var/run/docker.sock"
_NO_GPUS = "could not select device driver"
_facts: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A folder or file of this machine, as seen in a container."""

    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class Container:
    """One container: nothing is open in it but what is said here."""

    name: str
    image: str
    command: tuple[str, ...]
    user: str
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    temporary: Mapping[str, str] = field(default_factory=dict)
    """Options of folders in memory, by path."""
    cwd: str = "/"
    memory_bytes: int
    cpus: float | None = None
    processes: int = 1024
    gpus: str = ""
    """`all`, or ids with commas between them."""


@dataclass(frozen=True)
class Image:
    """An image that this machine has."""

    id: str
    name: str


class Daemon:
    """A connection to the daemon, closed at the end of `with`. Raises `SandboxError`."""

    def __init__(self) -> None:
        try:
            import docker
        except ImportError as error:
            advice = "`pip install 'mle-ideator[docker]'`"
            raise SandboxError(f"the package docker is not installed: {advice}") from error
        self._address = os.environ.get("DOCKER_HOST") or "unix://"
        _check_socket(self._address)
        with _in_one_line():
            self._client = docker.from_env(timeout=_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def image(self, name: str) -> Image:
        """The image of that name. It is never fetched: that may take long and cost much."""
        import docker

        with _in_one_line():
            try:
                return Image(self._client.images.get(name).id, name)
            except docker.errors.ImageNotFound as error:
                raise SandboxError(
                    f"this machine has no image {name!r}: `mle-ideator image build` makes the "
                    f"usual one, `docker pull {name}` fetches one of your own"
                ) from error

    def facts(self) -> dict[str, Any]:
        """What the daemon says of itself; asked once in this process."""
        with _in_one_line():
            if self._address not in _facts:
                _facts[self._address] = self._client.info()
            return _facts[self._address]

    def create(self, container: Container) -> str:
        """Create it; returns its id."""
        with _in_one_line():
            created = self._client.api.create_container(
                container.image,
                list(container.command),
                name=container.name,
                user=container.user,
                environment=dict(container.environment),
                working_dir=container.cwd,
                entrypoint=[],
                hostname="sandbox",
                labels={_OWNER: this_process()},
                healthcheck={"test": ["NONE"]},
                # an empty network namespace; `network_mode` alone gives the same, but by a hook
                # that takes longer than all the rest of the start
                network_disabled=True,
                host_config=self._client.api.create_host_config(**_host_config(container)),
            )
            return str(created["Id"])

    def start(self, identity: str) -> int:
        """Start it; returns its first process, as this machine counts them (0: it has ended)."""
        with _in_one_line():
            self._client.api.start(identity)
            return int(self._client.api.inspect_container(identity)["State"]["Pid"])

    def output(self, container: Container, timeout_s: float = 60) -> tuple[int, str]:
        """Run it to its end; its exit code and what it wrote."""
        identity = self.create(container)
        try:
            self.start(identity)
            with _in_one_line():
                code = self._client.api.wait(identity, timeout=timeout_s)["StatusCode"]
            return code, self.logs(identity)
        finally:
            self.remove(identity)

    def logs(self, identity: str) -> str:
        """What it wrote, to where the daemon hears it."""
        with _in_one_line():
            written: bytes = self._client.api.logs(identity)
            return written.decode(errors="replace").strip()

    def ran_out_of_memory(self, identity: str) -> bool:
        """Kill it if it still runs. Did the Linux kernel kill in it for lack of memory?"""
        import docker

        with _in_one_line():
            with suppress(docker.errors.APIError):  # it has ended
                self._client.api.kill(identity)
            self._client.api.wait(identity, timeout=5)
            return bool(self._client.api.inspect_container(identity)["State"]["OOMKilled"])

    def remove(self, identity: str) -> None:
        """Kill and remove it; one that is gone is no error."""
        import docker

        with _in_one_line():
            try:
                self._client.api.remove_container(identity, force=True, v=True)
            except docker.errors.NotFound:
                pass
            except docker.errors.APIError as error:
                if "already in progress" not in str(error):
                    raise

    def remove_leftovers(self) -> None:
        """Remove containers of runtimes that were killed before they could."""
        with _in_one_line():
            found = self._client.api.containers(all=True, filters={"label": _OWNER})
        for container in found:
            if is_gone(container["Labels"][_OWNER]):
                self.remove(container["Id"])

    def build(
        self, context: BinaryIO, tag: str, arguments: Mapping[str, str], network: str | None
    ) -> Iterator[str]:
        """Build an image from a tar file with a Dockerfile; yields what the daemon says of it."""
        with _in_one_line():
            for said in self._client.api.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs=dict(arguments),
                network_mode=network,
                rm=True,
                forcerm=True,
                decode=True,
            ):
                if "error" in said:
                    raise SandboxError(f"the image could not be built: {said['error'].strip()}")
                if not said.get("progressDetail"):
                    status = f"{said['status']}\n" if said.get("status") else ""
                    yield str(said.get("stream") or status)


def _host_config(container: Container) -> dict[str, Any]:
    from docker.types import DeviceRequest, LogConfig
    from docker.types import Mount as Bind

    return {
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "log_config": LogConfig(type="json-file", config={"max-size": "1m"}),
        "ipc_mode": "private",
        "userns_mode": "host",  # else files that agent code writes belong to nobody here
        "mounts": [
            Bind(mount.target, mount.source, type="bind", read_only=not mount.writable)
            for mount in container.mounts
        ],
        "tmpfs": dict(container.temporary),
        "mem_limit": container.memory_bytes,
        "memswap_limit": container.memory_bytes,
        "shm_size": container.memory_bytes // 2,
        "nano_cpus": int(container.cpus * 1e9) if container.cpus else None,
        "pids_limit": container.processes,
        "device_requests": [DeviceRequest(**_gpus(container.gpus))] if container.gpus else None,
    }


def _gpus(wanted: str) -> dict[str, Any]:
    request: dict[str, Any] = {"driver": "nvidia", "capabilities": [["gpu"]]}
    if wanted == "all":
        return request | {"count": -1}
    return request | {"device_ids": wanted.split(",")}


def _check_socket(host: str) -> None:
    """Before the package tries: what is wrong is clear here, and no half-open socket is left."""
    if not host.startswith("unix://"):
        where = "on this machine, with a socket in its file system"
        raise SandboxError(f"the Docker daemon must run {where}, but DOCKER_HOST is {host}")
    path = host.removeprefix("unix://") or _SOCKET
    try:
        with socket.socket(socket.AF_UNIX) as trial:
            trial.settimeout(5)
            trial.connect(path)
    except PermissionError as error:
        advice = "`sudo usermod -aG docker $USER`, then log in again"
        raise SandboxError(
            f"this user may not use the Docker daemon at {path}: {advice}"
        ) from error
    except OSError as error:
        advice = "start it (`sudo systemctl start docker`), or name its socket in DOCKER_HOST"
        raise SandboxError(f"no Docker daemon answers at {path}: {advice}") from error


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Errors of the daemon, of the connection to it, and of the package, as `SandboxError`."""
    import docker
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        said = " ".join(str(getattr(error, "explanation", None) or error).split())
        if _NO_GPUS in said:
            advice = "install the NVIDIA Container Toolkit"
            raise SandboxError(f"the daemon can not give GPUs to containers: {advice}") from error
        raise SandboxError(f"the Docker daemon failed: {said}") from error
