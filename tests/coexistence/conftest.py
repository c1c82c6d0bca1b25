"""A busy source with workloads of its own, and targets that it is not connected to yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import c1
from tests.coexistence.own import RACK, OwnWorkloads
from tests.fleets import started
from tests.kit import Fleet

__all__ = ["c1", "fleet", "own"]

_BUSY = Path(__file__).with_name("busy.yaml")


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source with three machines, each in a zone and a rack of its own, and two targets.

    Those of c2 are in three zones; c3 has one machine, so that all of its labels are common.
    """
    with started(tmp_path_factory, "c1", "c2", "c3", "--nodes", "3", "--agents") as there:
        there.kubectl("c3", "delete", "node", "c3-node-1", "c3-node-2")
        there.kubectl("c3", "label", "node", "c3-node-0", f"{RACK}=in-c3")
        for number in range(3):
            there.kubectl("c1", "label", "node", f"c1-node-{number}", f"{RACK}=r{number}")

        yield there


@pytest.fixture(scope="session")
def own(fleet: Fleet) -> OwnWorkloads:
    """Return the workloads of the source, all of them running."""
    fleet.kubectl("c1", "apply", "--filename", str(_BUSY))
    workloads = OwnWorkloads(fleet)
    workloads.await_all()
    workloads.await_hints("hinted")
    return workloads
