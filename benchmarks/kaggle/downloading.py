"""Downloading a competition's files with the person's own credentials (extra `kaggle`)."""

from __future__ import annotations

import contextlib
import io
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from mle_ideator.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


def download(competition: str, folder: Path) -> Path:
    """All files of `competition`, as one zip archive in `folder`, which is made; its path.

    Credentials are those of Kaggle's own client (`kaggle auth login`, KAGGLE_API_TOKEN or
    ~/.kaggle/kaggle.json); its rules must have been accepted in a browser. Raises `UsageError`.
    """
    if not _NAME.fullmatch(competition):
        raise UsageError(
            f"{competition!r} is no competition; write its name as in kaggle.com/competitions/NAME"
        )
    client = _client()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(io.StringIO()):
            client.competition_download_files(competition, path=str(folder), quiet=True)
    except OSError as error:  # requests' errors are OSErrors too
        raise UsageError(_reason(competition, folder, error)) from error
    archive = folder / f"{competition}.zip"
    if not archive.is_file():
        raise UsageError(
            f"Kaggle has sent no {archive.name}; look whether the competition still gives its data"
        )
    return archive


def _client() -> Any:
    """Kaggle's own client, with the person's credentials."""
    said = io.StringIO()
    try:
        # It prints how to log in, and ends the process, where there are no credentials.
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            client = import_module("kaggle.api.kaggle_api_extended").KaggleApi()
            client.authenticate()
    except ImportError as error:
        raise UsageError(
            "downloading needs the package kaggle; get it with `pip install 'mle-ideator[kaggle]'`"
        ) from error
    except (SystemExit, OSError, ValueError) as error:
        raise UsageError(
            "there are no credentials of Kaggle; log in with `kaggle auth login`, or put an API "
            "token into ~/.kaggle/kaggle.json (kaggle.com, Settings, API)"
        ) from error
    return client


def _reason(competition: str, folder: Path, error: OSError) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    page = f"https://www.kaggle.com/competitions/{competition}"
    reasons = {
        401: "Kaggle does not accept the credentials; make new ones (kaggle.com, Settings, API)",
        403: f"the rules of {competition} are not accepted; accept them at {page}/rules, "
        "and verify your account if Kaggle asks for it",
        404: f"Kaggle has no competition {competition!r}; look for its name in the address of "
        "its page",
        429: "Kaggle gets too many requests from this account; try again later",
    }
    if status in reasons:
        return reasons[status]
    if status is not None:
        return f"Kaggle answered {status} to the request for {competition}; try again later"
    if error.strerror:
        return f"{competition} can not be written to {folder}: {error.strerror}"
    return f"Kaggle can not be reached ({type(error).__name__}); try again later"
