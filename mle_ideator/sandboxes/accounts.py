"""The few files below /etc that a sandbox needs: one user, and no name but localhost."""

from __future__ import annotations

from pathlib import Path


def write_accounts(folder: Path, *, user: int, group: int, home: str) -> dict[str, str]:
    """Make `folder` and write the files; returns their places here by their places inside."""
    folder.mkdir()
    texts = {
        "passwd": f"agent:x:{user}:{group}::{home}:/bin/bash\n",
        "group": f"agent:x:{group}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {f"/etc/{name}": str(folder / name) for name in texts}
