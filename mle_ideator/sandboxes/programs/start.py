"""Starts the program of this folder that the first argument names."""

import os
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NoReturn

PACKAGE = "_mle_ideator"


def load_package() -> None:
    """This folder as a package, under a name that no library and no agent's file has."""
    folder = Path(__file__).resolve().parent
    spec = spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is no package")
    sys.modules[PACKAGE] = package = module_from_spec(spec)
    spec.loader.exec_module(package)


def run() -> int:
    load_package()
    task = import_module(f"{PACKAGE}.{sys.argv[1]}").main
    result = task(sys.argv[2:])
    while callable(result):
        result = result()
    return int(result or 0)


def end(code: int) -> NoReturn:
    """At once: taking apart what was imported takes longer than most of what ran."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    try:
        end(run())
    except Exception:
        traceback.print_exc()
        end(1)
