"""The index of a store: what is known of each help state, in SQLite.

Any number of processes may read and add at once. A state is in it wholly or not at all.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.rl.values import Kind, StateCard
from mle_ideator.types import Score

VERSION = 1
_APPLICATION = 0x4D4C4953  # "MLIS": the file is an index of help states
_PATIENCE_S = 60.0
_TABLES = """
CREATE TABLE states (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task TEXT NOT NULL,
    kind TEXT NOT NULL,
    depth INTEGER NOT NULL,
    parent TEXT,
    steps INTEGER NOT NULL,
    score REAL,
    higher_is_better INTEGER,
    collected_at TEXT NOT NULL
);
CREATE TABLE parts (number INTEGER PRIMARY KEY, journal BLOB NOT NULL, workspace BLOB);
CREATE INDEX states_of_a_task ON states (task);
CREATE INDEX states_of_a_kind ON states (task, kind);
"""
# `parts` is apart from `states` so that cards are listed without reading it.
_INSERT = """
INSERT INTO states VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
"""


class Index:
    """Not to be carried into another process: open it there. Threads may share it.

    Methods raise `RuntimeFailure` where SQLite fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        try:
            self._database = sqlite3.connect(
                path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise UsageError(f"{path} can not be opened: {error}.") from error
        try:
            self._begin()
        except RuntimeFailure as error:
            self.close()
            raise UsageError(str(error)) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._database.close()

    # ----------------------------------------------------------------------------- reading

    def card(self, identity: str) -> StateCard | None:
        rows = self._rows("SELECT * FROM states WHERE id = ?", identity)
        return _card(rows[0]) if rows else None

    def cards(
        self, task: str | None, kind: Kind | None, limit: int | None, after: int
    ) -> list[StateCard]:
        """In the order of adding, from those with a higher number than `after`."""
        query = ["SELECT * FROM states WHERE number > ?"]
        values: list[int | str] = [after]
        for condition, value in (("AND task = ?", task), ("AND kind = ?", kind)):
            if value is not None:
                query.append(condition)
                values.append(value)
        query.append("ORDER BY number LIMIT ?")
        values.append(-1 if limit is None else limit)
        return [_card(row) for row in self._rows(" ".join(query), *values)]

    def number(self, identity: str) -> int | None:
        rows = self._rows("SELECT number FROM states WHERE id = ?", identity)
        return rows[0][0] if rows else None

    def count(self) -> int:
        count: int = self._rows("SELECT COUNT(*) FROM states")[0][0]
        return count

    def tasks(self) -> dict[str, int]:
        return dict(self._rows("SELECT task, COUNT(*) FROM states GROUP BY task ORDER BY task"))

    def starting_with(self, prefix: str, most: int) -> list[str]:
        """Ids, in their order."""
        query = "SELECT id FROM states WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        return [row[0] for row in self._rows(query, prefix, prefix + "g", most)]

    def parts(self, identity: str) -> tuple[list[str], bytes | None] | None:
        """The hashes of its journal's parts, and the listing of its workspace."""
        query = "SELECT journal, workspace FROM states JOIN parts USING (number) WHERE id = ?"
        rows = self._rows(query, identity)
        return (_digests(rows[0][0]), rows[0][1]) if rows else None

    def damages(self) -> list[str]:
        """What SQLite finds wrong with the file."""
        return [row[0] for row in self._rows("PRAGMA quick_check") if row[0] != "ok"]

    # ----------------------------------------------------------------------------- writing

    def add(self, card: StateCard, journal: Sequence[str], workspace: bytes | None) -> bool:
        """False if it is there already, and then nothing is changed."""
        score = card.score
        values = (
            *(card.id, card.task, card.kind, card.depth, card.parent, card.steps),
            *((score.value, score.higher_is_better) if score else (None, None)),
            card.collected_at,
        )
        with self._writing():
            added = self._database.execute(_INSERT, values)
            if added.rowcount == 0:
                return False
            parts = (added.lastrowid, bytes.fromhex("".join(journal)), workspace)
            self._database.execute("INSERT INTO parts VALUES (?, ?, ?)", parts)
        return True

    def _begin(self) -> None:
        """Make the tables, or make sure that they are there."""
        with self._told():
            self._write_ahead()
        self._rows("PRAGMA synchronous = NORMAL")
        if self._pragma("application_id") != _APPLICATION:
            self._create()
        if (version := self._pragma("user_version")) != VERSION:
            raise UsageError(
                f"{self.path} is a store of version {version}, which is not known here (this is "
                f"{VERSION}): use the release of mle-ideator that made it."
            )

    def _create(self) -> None:
        with self._writing():
            if self._pragma("application_id") == _APPLICATION:
                return  # another process was first
            if self._rows("SELECT 1 FROM sqlite_master LIMIT 1"):
                raise UsageError(f"{self.path} is a database of something else; name another file.")
            for statement in _TABLES.split(";"):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._database.execute(f"PRAGMA user_version = {VERSION}")

    def _write_ahead(self) -> None:
        """SQLite does not wait for others when it changes to a write-ahead log."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._told():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._lock, self._told():
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise RuntimeFailure(f"{self.path} fails as a store: {error}.") from error

    def _pragma(self, name: str) -> int:
        value: int = self._rows(f"PRAGMA {name}")[0][0]
        return value


def _digests(packed: bytes) -> list[str]:
    return [packed[start : start + 32].hex() for start in range(0, len(packed), 32)]


def _card(row: tuple[Any, ...]) -> StateCard:
    _, identity, task, kind, depth, parent, steps, score, higher_is_better, collected_at = row
    return StateCard(
        id=identity,
        task=task,
        kind=kind,
        depth=depth,
        parent=parent,
        steps=steps,
        score=None if score is None else Score(score, bool(higher_is_better)),
        collected_at=collected_at,
    )
