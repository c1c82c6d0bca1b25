"""The words of kube-scheduler that cures go by are those of the programs that a fleet runs."""

from __future__ import annotations

import asyncio

import pytest

from hack.fleetlib import fleet as fleets
from hack.fleetlib.tools import binaries
from tests.kit import Fleet
from tests.scheduler_words import NEW, WORDS


@pytest.mark.parametrize("cluster", ["c1", "c2", "c3"])
async def test_kube_scheduler_says_what_cures_go_by(fleet: Fleet, cluster: str) -> None:
    version = fleets.LocalFleet(fleet.folder).state().cluster(cluster).kubernetes
    program = binaries.locate(["kube-scheduler"], version=version)["kube-scheduler"]
    text = await asyncio.to_thread(program.read_bytes)
    unsaid = {words for words in WORDS if not any(one.encode() in text for one in words)}
    assert unsaid <= {(NEW,)}
