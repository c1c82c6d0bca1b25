"""Has API servers and agents go wrong for a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.apiserver.server import APIServer
from tests.memory_streams import MemoryStreams
from tests.simulation.agents import SimulatedAgent
from tests.simulation.clusters import SimulatedCluster
from tests.simulation.schedule import SPAN, ClusterFault, ClusterTrouble
from vnode.api import errors, kinds
from vnode.api.errors import Unreachable, VnodeError

_SLOWER: Final = 20.0
_WRITES: Final = ("create", "patch", "update", "delete")
_REASONS: Final = {
    500: "InternalError",
    409: "Conflict",
    429: "TooManyRequests",
    403: "Forbidden",
}


@dataclass(frozen=True, slots=True)
class FaultInjector:
    """Causes faults, and ends them by the end of the schedule."""

    clusters: Mapping[str, SimulatedCluster]
    agents: Mapping[str, SimulatedAgent]
    dice: random.Random
    streams: MemoryStreams

    async def cause(self, fault: ClusterFault) -> None:
        """Inject a fault, and return when it is over."""
        await asyncio.sleep(fault.at)
        cluster = self.clusters[fault.cluster]
        seconds = min(fault.seconds, SPAN - fault.at)
        match fault.trouble:
            case ClusterTrouble.ERRORS | ClusterTrouble.LOST_ANSWERS:
                await self._fail(cluster, fault, seconds)
            case ClusterTrouble.LATE_WRITES:
                await self._hold_up(cluster, fault, seconds)
            case ClusterTrouble.FREEZE | ClusterTrouble.STOP:
                self.streams.cut(cluster.name)
                await _take_down(cluster, fault.trouble, seconds)
            case ClusterTrouble.RESTART:
                await self.agents[fault.cluster].kill()
                await asyncio.sleep(seconds)
                self.agents[fault.cluster].start()
            case ClusterTrouble.NEW_TERM:
                self.agents[fault.cluster].new_term()
            case ClusterTrouble.CUT_STREAMS:
                self.streams.cut(cluster.name)
            case ClusterTrouble.SLOW:
                cluster.slow *= _SLOWER
                await asyncio.sleep(seconds)
                cluster.slow /= _SLOWER
            case _:
                _end_watches(cluster.server, fault.trouble)

    async def _fail(self, cluster: SimulatedCluster, fault: ClusterFault, seconds: float) -> None:
        error: VnodeError = Unreachable("the answer was lost")
        if fault.status:
            error = errors.from_status(fault.status, _REASONS[fault.status], "injected")

        reads = ("get", "list", "watch")
        injected = cluster.server.fail(
            error,
            when=lambda request: (
                self.dice.random() < fault.share
                and not (fault.status in (403, 409) and request.verb in reads)
            ),
            times=None,
            after=not fault.status,
        )
        await asyncio.sleep(seconds)
        injected.clear()

    async def _hold_up(
        self, cluster: SimulatedCluster, fault: ClusterFault, seconds: float
    ) -> None:
        """Have writes arrive late, by the end of the fault at the latest."""
        now = asyncio.get_running_loop().time
        end = now() + seconds
        injected = cluster.server.fail(
            Unreachable("no answer in time"),
            when=lambda request: request.verb in _WRITES and self.dice.random() < fault.share,
            times=None,
            late=lambda: self.dice.random() * max(0.0, end - now()),
        )
        await asyncio.sleep(seconds)
        injected.clear()


def _end_watches(server: APIServer, trouble: ClusterTrouble) -> None:
    """Have watches end in one of the ways in which they do, or fall silent."""
    match trouble:
        case ClusterTrouble.CUT_WATCHES:
            server.cut_watches()
        case ClusterTrouble.END_WATCHES:
            server.end_watches()
        case ClusterTrouble.COMPACT:
            server.compact()
            server.cut_watches()
        case ClusterTrouble.SILENCE_PODS:
            server.silence_watches(kinds.PODS)
        case ClusterTrouble.SILENCE_CHAPERONS:
            server.silence_watches(kinds.POD_CHAPERONS)


async def _take_down(cluster: SimulatedCluster, trouble: ClusterTrouble, seconds: float) -> None:
    """Freeze or stop an API server; of several that overlap the last one ends it."""
    cluster.down += 1
    if trouble is ClusterTrouble.STOP:
        cluster.server.stop()
    else:
        cluster.server.freeze()

    await asyncio.sleep(seconds)
    cluster.down -= 1
    if not cluster.down:
        cluster.server.start()
        cluster.server.thaw()
