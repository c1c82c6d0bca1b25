"""Fleets for tests about failures: one a module, since each needs another kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from tests.clients import c1, c2, c3, c4, source, target
from tests.kit import Fleet

__all__ = ["c1", "c2", "c3", "c4", "source", "started", "target"]


@contextmanager
def started(
    folders: pytest.TempPathFactory, *words: str, sources: Iterable[str] = ("c1",)
) -> Iterator[Fleet]:
    """Run a fleet; inside, the webhook looks at namespace default of each of the `sources`.

    `hack/fleet up` starts the fleet, and `hack/fleet down` ends it.
    """
    there = Fleet(folders.mktemp("fleet"))
    there.run("up", *words)
    try:
        for name in sources:
            there.opt_in(name)

        yield there
    finally:
        there.run("down")
