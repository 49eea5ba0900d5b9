"""`mle-ideator image build`: the image that the docker sandbox runs agent code in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

image = typer.Typer(no_args_is_help=True, help="The image of the docker sandbox.")


@image.callback()
def _only_subcommands() -> None:
    """The image of the docker sandbox."""


@image.command()
def build(
    tag: Annotated[
        str | None, typer.Option(help="Its name; the usual one is what `--sandbox docker` takes.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="Image to start from; without it, one of this Python."),
    ] = None,
    requirements: Annotated[
        Path | None,
        typer.Option(help="requirements.txt; without it, the libraries here at their versions."),
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="Docker network to build in, for instance host.")
    ] = None,
) -> None:
    """Build the image that the docker sandbox runs agent code in."""
    from mle_ideator.errors import UsageError
    from mle_ideator.sandboxes.containers import recipe
    from mle_ideator.sandboxes.containers.docker import DEFAULT_IMAGE, DockerOptions, DockerSandbox

    try:
        wanted = requirements.read_text() if requirements else recipe.requirements()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--requirements {requirements} can not be read: {error}.") from error
    name = tag or DEFAULT_IMAGE
    for said in recipe.build_image(name, base or recipe.base_image(), wanted, network):
        typer.echo(said, err=True, nl=False)
    if reason := DockerSandbox.configured(name, DockerOptions()).unavailable():
        raise UsageError(f"the image was built, but {reason}.")
    spec = "docker" if name == DEFAULT_IMAGE else f"docker:{name}"
    typer.echo(f"built {name}; `mle-ideator run --sandbox {spec}` uses it")
