"""Balances the connections of a cluster's agents, like a Service: one address for the ready ones.

`python -m hack.fleetlib.balancer ADDRESS AGENT...` listens on the ports of webhook and extender,
and passes each connection on, byte for byte, to an agent whose `/readyz` said yes a moment ago. As
a Service does: connections that are open stay where they are, and nobody is tried twice. On the
port for its status it answers HTTP, so that whoever starts it can wait for it.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from contextlib import suppress

from hack.fleetlib import addresses

PORTS = (addresses.AGENT_WEBHOOK, addresses.AGENT_EXTENDER)
_LOOK = 0.5  # seconds between questions, and until an answer counts as none
_PIECE = 1 << 16


class Balancer:
    """Chooses among the ready agents, round robin."""

    def __init__(self, agents: list[str]) -> None:
        self._agents = agents
        self._ready: set[str] = set()
        self._turns = itertools.count()

    def next(self) -> str | None:
        """Return the next ready agent; None if there is none."""
        ready = [agent for agent in self._agents if agent in self._ready]
        return ready[next(self._turns) % len(ready)] if ready else None

    async def probe_all(self) -> None:
        """Probe the agents in turn, until cancelled."""
        while True:
            for agent in self._agents:
                if await is_ready(agent):
                    self._ready.add(agent)
                else:
                    self._ready.discard(agent)

            await asyncio.sleep(_LOOK)

    async def serve(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass one connection on."""
        agent = self.next()
        with suppress(OSError):
            if agent is not None:
                there = await asyncio.open_connection(agent, port)
                await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))

        writer.close()


async def is_ready(agent: str) -> bool:
    """Ask the agent whether it is ready."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_LOOK):
            reader, writer = await asyncio.open_connection(agent, addresses.AGENT_HEALTH)
            try:
                writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
                return b" 200 " in await reader.readline()
            finally:
                writer.close()

    return False


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError):
        writer.close()


async def _status(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
    writer.close()


async def run(address: str, agents: list[str]) -> None:
    """Serve until cancelled."""
    balancer = Balancer(agents)
    for port in PORTS:

        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = port
        ) -> None:
            await balancer.serve(port, reader, writer)

        await asyncio.start_server(serve, address, port)

    await asyncio.start_server(_status, address, addresses.SERVICE_STATUS)
    await balancer.probe_all()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2:]))
