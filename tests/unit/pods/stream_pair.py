"""A source and its target, whose agents speak on streams: real ends, and API servers in memory."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from tests import background
from tests.apiserver import links
from tests.memory_streams import MemoryStreams, StreamPeer
from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects, summary_reports
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.pods import delegate, stream_messages
from vnode.pods.reservations import Reservations
from vnode.pods.source.target_streams import TargetStreams
from vnode.pods.streams import SourceStreams
from vnode.runtime.links import Links

SECRET = "of c1"
DIGEST = stream_messages.digest(SECRET)
SOURCE, TARGET = Identity("c1", "uid-of-c1"), TargetKey(NAMESPACE, "c2")


class StreamPair:
    """A source and its target: the agents' ends of streams, and what decides with them."""

    def __init__(self, clock):
        self.clock = clock
        self.cluster = TargetCluster(clock)
        offers = summary_reports.listed({keys.AGENT_VERSION: "1", keys.STREAMS: "vnode"})
        metadata = {"name": keys.SUMMARY_NAME, "annotations": offers}
        self.cluster.server.add(kinds.CLUSTER_SUMMARIES, {"metadata": metadata})
        self.streams = SourceStreams(self.cluster.chaperons)
        agent = self.cluster.server.client("agent")
        self.reservations = Reservations(agent, self.cluster.chaperons, streams=self.streams)
        self.is_up = True
        self.wires = MemoryStreams({"c2": StreamPeer("r1", self._reached)})
        self.link = links.link_to(self.cluster.server, TARGET, SOURCE, clock)
        self.links = Links()
        self.source = TargetStreams(self.links, lambda _link: SECRET, self.wires.connect, clock)

    def _reached(self):
        return self.streams if self.is_up else None

    @asynccontextmanager
    async def running(self):
        async with (
            self.cluster.informed(),
            links.connected(self.link),
            background.running(self.source.run(), self.streams.ended.run()),
        ):
            self.links.add(self.link)
            await asyncio.sleep(SETTLED)
            yield

    def lose_streams(self):
        """Cut all streams; none can be opened any more."""
        self.is_up = False
        self.wires.cut("c2")

    def candidate(self, name="web", digest=DIGEST, **annotations):
        """Store a new chaperon of the source; return its delegate."""
        labels = {keys.PARENT_UID: f"parent-of-{name}"}
        labels |= {keys.PARENT_CLUSTER_NAME: "c1", keys.PARENT_CLUSTER_UID: SOURCE.uid}
        annotations |= {keys.SOURCE_DIGEST: digest, keys.PARENT_NAMESPACE: NAMESPACE}
        annotations |= {keys.PARENT_NAME: name, keys.TARGET: str(TARGET)}
        annotations |= {keys.PARENT_CLUSTER_UID: SOURCE.uid}
        return delegate.build(self.cluster.send(name, labels=labels, annotations=annotations))

    async def ask(self, pod):
        """Begin to hold a place."""
        task = asyncio.create_task(self.reservations.allowed(pod))
        await asyncio.sleep(SETTLED)
        return task

    def shown(self, name="web"):
        """Return what the source's store shows of a chaperon."""
        return self.link.chaperons.store.get(objects.join_key(NAMESPACE, name)) or {}

    def shows(self, annotation, name="web"):
        return objects.annotations(self.shown(name)).get(annotation)

    @property
    def patches(self):
        return self.cluster.count("patch", "podchaperons")
