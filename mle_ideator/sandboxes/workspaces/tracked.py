"""A workspace whose content can be kept and put back, each in time and space for what changed.

What is told apart by its signature (`copying.signature_of`) or by the layer that it is in is not
read again. Not covered: a machine's clock that is set back, which only root can; extended
attributes; that hard links of one file stay one file, where a workspace is an overlay.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes.trees import make_usable
from mle_ideator.sandboxes.workspaces.changes import Change
from mle_ideator.sandboxes.workspaces.content import Content, Item, layered_content, plain_content
from mle_ideator.sandboxes.workspaces.copying import Signature, shares_blocks
from mle_ideator.sandboxes.workspaces.filling import Filling, set_mode
from mle_ideator.sandboxes.workspaces.folders import Folders
from mle_ideator.sandboxes.workspaces.overlay import Overlay, remove_leftovers
from mle_ideator.sandboxes.workspaces.snapshots import (
    FILES,
    MANIFEST,
    Entry,
    LeftOut,
    Manifest,
    check_files,
    new_snapshot,
    read_manifest,
    stored_mode,
    write_manifest,
)

Strategy = Literal["plain", "reflink", "overlay", "copy"]


class TrackedWorkspace:
    """Not for two threads at once. Methods raise `SandboxError`.

    `apart` names what lies directly in the workspace and is no part of it.
    """

    def __init__(self, workspace: Path, *, apart: Collection[str] = ("input",)) -> None:
        self._workspace = workspace
        self._apart = tuple(apart)
        self._overlay: Overlay | None = None
        self._lower: dict[str, Entry] = {}
        self._base: Folders | None = None
        """The files of the snapshot that was last taken or restored; found even if it is moved."""
        self._known: dict[str, Signature] = {}
        """Files that are in it as they are here, as long as they have these signatures."""
        self.strategy: Strategy = "plain"
        """How it was opened: empty (`plain`), or how it shares the snapshot's files."""

    def open(self, snapshot: Path | None) -> None:
        """Make it what a snapshot holds; without one, just make it.

        It must be missing or empty but for what is apart.
        """
        remove_leftovers()
        with _told(f"the workspace {self._workspace} can not be opened"):
            self._workspace.mkdir(parents=True, exist_ok=True)
            make_usable(self._workspace)
            if snapshot is not None:
                manifest = read_manifest(snapshot)
                check_files(snapshot)
                try:
                    self._fill(snapshot, manifest)
                except BaseException:
                    self.close(keep=())
                    raise

    def snapshot(self, folder: Path) -> None:
        """Keep it as a new folder."""
        known: dict[str, Signature] = {}
        with _told(f"no snapshot could be made of {self._workspace}"):
            with self._content() as content, new_snapshot(folder) as part:
                with Folders(part / FILES, writing=True) as files:
                    filling = Filling(files, stored_mode)
                    for item in content.items:
                        self._keep(item, filling, content, known)
                    filling.finish()
                write_manifest(part, content.manifest(filling.done))
            self._follow(folder, known)

    def restore(self, folder: Path) -> None:
        """Put back what a snapshot holds; nobody may be at work in the workspace.

        What is as it was is not touched. What is in the way of it, or is not in it, is removed.
        """
        with _told(f"{self._workspace} could not be put back to {folder}"):
            manifest = read_manifest(folder)
            make_usable(self._workspace)
            self._change_to(folder, manifest)

    def close(self, *, keep: Collection[str] | None = None) -> None:
        """Leave plain files in the workspace, or only those with names in `keep` and what is apart.

        This costs something only where the strategy is `overlay`: what agent code wrote is moved,
        what it left as it was is copied. Named pipes, sockets and devices are not kept.
        """
        overlay = self._overlay
        try:
            if overlay is not None:
                with _told(f"the files of {self._workspace} could not be made plain ones"):
                    try:
                        self._flatten(overlay, keep)
                    finally:
                        overlay.unmount()
        finally:
            self._overlay = None
            self._forget_base()

    # ------------------------------------------------------------------------ its content

    @contextmanager
    def _content(self) -> Iterator[Content]:
        """What the workspace holds now."""
        with ExitStack() as opened:
            here = opened.enter_context(Folders(self._workspace))
            if self._overlay is None:
                yield plain_content(here, self._apart, self._known)
            else:
                upper = opened.enter_context(Folders(self._overlay.upper))
                changed = self._overlay.changed(upper)
                yield layered_content(here, upper, changed, self._lower, self._known)

    def _follow(self, folder: Path, known: dict[str, Signature]) -> None:
        """The workspace now holds what this snapshot does."""
        self._forget_base()
        self._base, self._known = Folders(folder / FILES), known

    def _forget_base(self) -> None:
        if self._base is not None:
            self._base.close()
        self._base, self._known = None, {}

    # ----------------------------------------------------------------------- its changes

    def _keep(
        self, item: Item, filling: Filling, content: Content, known: dict[str, Signature]
    ) -> None:
        """Put an item into a new snapshot; `known` gets the signature that can be relied on."""
        entry, signature = item.entry, item.signature
        if item.held and self._base and filling.put_hard_link(entry, self._base):
            if signature is not None:
                known[entry.path] = signature
            return
        try:
            copied = filling.put(entry, item.source)
        except (FileNotFoundError, NotADirectoryError):
            return  # removed in this moment
        except PermissionError:
            content.left_out.append(LeftOut(entry.path, "can not be read"))
            return
        if copied is not None:
            signature = copied.signature
        elif entry.same_as not in known:
            signature = None
        if signature is not None:
            known[entry.path] = signature

    def _fill(self, snapshot: Path, manifest: Manifest) -> None:
        others = sorted(set(os.listdir(self._workspace)) - set(self._apart))  # noqa: PTH208
        if others:
            raise SandboxError(
                f"the workspace {self._workspace} is to be made from a snapshot, so it must be "
                f"empty, but holds {others[0]!r}."
            )
        if shares_blocks(snapshot / MANIFEST, self._workspace):
            self.strategy = "reflink"
        elif manifest.as_they_were and self._lay_over(snapshot, manifest):
            self.strategy = "overlay"
            return
        else:
            self.strategy = "copy"
        self._change_to(snapshot, manifest)

    def _lay_over(self, snapshot: Path, manifest: Manifest) -> bool:
        try:
            self._overlay = Overlay(self._workspace, snapshot / FILES, self._apart)
        except OSError:
            return False
        self._lower = {entry.path: entry for entry in manifest.entries}
        with Folders(self._workspace, writing=True) as here:
            set_mode(here.root, manifest.root, manifest.root.mode | 0o700)
        self._follow(snapshot, {})
        return True

    def _change_to(self, folder: Path, manifest: Manifest) -> None:
        with Folders(folder / FILES) as kept:
            with self._content() as content:
                change = Change(content, manifest, self._base, kept)
            with Folders(self._workspace, writing=True) as here:
                change.carry_out(here)
        with Folders(self._overlay.upper if self._overlay else self._workspace) as own:
            known = change.signatures(own)
        self._follow(folder, known)

    def _flatten(self, overlay: Overlay, keep: Collection[str] | None) -> None:
        """Make it a plain folder. What is moved may be touched only when nothing is mounted."""
        with Folders(overlay.beside, writing=True) as beside:
            filling = Filling(beside, lambda entry: entry.mode)
            moving: list[Entry] = []
            with self._content() as content:
                for item in content.items:
                    entry = item.entry
                    if keep is not None and entry.path.partition("/")[0] not in keep:
                        continue
                    if item.signature is not None:  # a file in the upper layer
                        moving.append(entry)
                    else:
                        filling.put(entry, item.source)
            overlay.unmount()
            with Folders(overlay.upper) as upper:
                for entry in moving:
                    name, folder = upper.of(entry.path)
                    target_name, target = beside.of(entry.path)
                    os.rename(name, target_name, src_dir_fd=folder, dst_dir_fd=target)
            filling.finish()
        for path in overlay.beside.iterdir():
            path.rename(self._workspace / path.name)
        with Folders(self._workspace, writing=True) as here:
            set_mode(here.root, content.root, content.root.mode | 0o700)
        overlay.remove()


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SandboxError(f"{what}: {error}") from error
