"""Where a kernel listens and with which key: the file that it is started with."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")


def write_connection_file(folder: Path, seen_as: str) -> dict[str, Any]:
    """Write the kernel's `connection.json`; returns the same connection as seen from outside."""
    ports = {f"{channel}_port": number for number, channel in enumerate(_CHANNELS, start=1)}
    common = {"transport": "ipc", "signature_scheme": "hmac-sha256", **ports}
    key = secrets.token_hex(32)
    inside = {**common, "ip": f"{seen_as}/s", "key": key}
    (folder / "connection.json").write_text(json.dumps(inside))
    return {**common, "ip": f"{folder}/s", "key": key.encode()}
