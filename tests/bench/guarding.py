"""Notices at once when a process of the fleet ends, instead of waiting for pods that never run."""

from __future__ import annotations

import asyncio
import os

from hack.fleetlib import processes
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from vnode.kube import linux_calls


async def guard(fleet: LocalFleet) -> None:
    """Run until cancelled; FleetError, with the end of its log, for the first process that ends."""
    ended: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    loop, descriptors = asyncio.get_running_loop(), []
    try:
        for cluster in fleet.state().clusters.values():
            for name, process in cluster.processes.items():
                if process.identity is not None and process.alive:
                    descriptor = linux_calls.process_descriptor(process.identity.pid)
                    descriptors.append(descriptor)
                    loop.add_reader(descriptor, ended.put_nowait, (cluster.name, name))

        where, what = await ended.get()
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    tail = processes.tail(str(fleet.log(where, what)), lines=3)
    raise FleetError(f"{what} of {where} ended during a burst; its log ends with:\n{tail}")
