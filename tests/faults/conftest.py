"""Fleets for tests about failures: one a module, since each needs another kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.kit import Fleet

LABEL = "multicluster-scheduler=enabled"


@contextmanager
def started(folders: pytest.TempPathFactory, *words: str) -> Iterator[Fleet]:
    """`hack/fleet up`, taken down at the end."""
    there = Fleet(folders.mktemp("fleet"))
    there.run("up", *words)
    try:
        yield there
    finally:
        there.run("down")
