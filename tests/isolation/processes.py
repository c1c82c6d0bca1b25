"""What the processes of a fleet take while attacks run: memory of agents, and shares of a core.

The machine has two cores for three clusters and the attacker, so that a bystander may wait for the
processor where no queue is to blame; the shares tell which.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.fleetlib.fleet import LocalFleet
from tests.bench import accounts
from tests.bench.figures import ProcessUsage
from tests.isolation.scene import SOURCE

AGENT: Final = f"{SOURCE} agent"
ADMISSION: Final = f"{SOURCE} admission"
ATTACKER: Final = "attacker"
_EVERY: Final = 0.25  # seconds between two looks


@dataclass(slots=True)
class MemoryUse:
    """MiB that a process had resident."""

    before: float
    peak: float
    after: float = 0


@dataclass(slots=True)
class Processes:
    """What processes took during one attack, by their names."""

    memory: dict[str, MemoryUse]
    cores: dict[str, float]
    """Of those that ran at the end, on average; those that took next to nothing are left out."""


class ProcessWatch:
    """Watches the processes of a fleet."""

    def __init__(self, folder: Path) -> None:
        self._fleet = LocalFleet(folder)

    @asynccontextmanager
    async def watched(self, attacker: int) -> AsyncIterator[Processes]:
        """Watch while the block runs; what is yielded is complete at its end."""
        begun, before = time.monotonic(), self._usage(attacker)
        memory = {
            name: MemoryUse(before[name].rss, before[name].rss) for name in (AGENT, ADMISSION)
        }
        found = Processes(memory, {})
        looking = asyncio.create_task(self._look(found))
        try:
            yield found
        finally:
            looking.cancel()
            await asyncio.wait({looking})
            seconds = time.monotonic() - begun
            for name, usage in self._usage(attacker).items():
                share = (usage.cpu - before[name].cpu) / seconds if name in before else 0.0
                if share >= 0.01:
                    found.cores[name] = round(share, 2)

    def note_after(self, found: Processes) -> None:
        """Note what the memory is once an attack is over and cleared away."""
        for name, use in found.memory.items():
            use.after = accounts.usage(self._pids()[name]).rss

    async def _look(self, found: Processes) -> None:
        pids = self._pids()
        while True:
            for name, use in found.memory.items():
                use.peak = max(use.peak, accounts.usage(pids[name]).rss)

            await asyncio.sleep(_EVERY)

    def _usage(self, attacker: int) -> Mapping[str, ProcessUsage]:
        return {
            name: accounts.usage(pid)
            for name, pid in (self._pids() | {ATTACKER: attacker}).items()
            if Path(f"/proc/{pid}").exists()
        }

    def _pids(self) -> dict[str, int]:
        found = {}
        for cluster in self._fleet.state().clusters.values():
            for name, process in cluster.processes.items():
                if process.identity is not None and process.alive:
                    pid = process.identity.pid
                    found[f"{cluster.name} {name}"] = pid
                    found |= {f"{cluster.name} admission": child for child in _admission(pid)}

        return found


def _admission(agent: int) -> Iterator[int]:
    """Yield the child of an agent that answers reviews, if it is one."""
    tasks = Path(f"/proc/{agent}/task").glob("*/children")
    for child in itertools.chain.from_iterable(each.read_text().split() for each in tasks):
        if b"\0admission\0" in Path(f"/proc/{child}/cmdline").read_bytes():
            yield int(child)
