"""Keeps the streams of sources to this replica, and what was said on them.

A reservation that a source has been told on a stream shows on the chaperon as if it had been
written (`Informer.assume`), and so does the permission that comes back. When the last stream of a
source ends, what it was told is taken back here, which has its candidates written instead. Which
chaperons a stream is about, the digest on them says (`stream_messages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from vnode.api import keys, objects
from vnode.api.clock import Clock, SystemClock
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.pods.stream_channel import Attention, Outbox
from vnode.pods.stream_messages import CandidateName, StreamEnded
from vnode.pods.taking_back import TakingBack

DIGEST_INDEX: Final = "source-digest"

_STREAMS_EACH: Final = 8  # of one source: some replicas of its agent, and old ones that end


def digest_of(chaperon: Object) -> Iterable[str]:
    """Index a chaperon by the digest of its source."""
    found = objects.annotations(chaperon).get(keys.SOURCE_DIGEST)
    return (found,) if found else ()


def name_of(chaperon: Object) -> CandidateName:
    """Return by what messages name a chaperon."""
    return CandidateName(objects.key(chaperon), objects.uid(chaperon))


@dataclass(eq=False, slots=True)
class SourceStream:
    """One stream; its source knows of those that are `acknowledged` that they have a place."""

    attention: Attention  # to all streams of the source
    outbox: Outbox = field(default_factory=Outbox)
    acknowledged: set[CandidateName] = field(default_factory=set)  # all of them are reserved


class SourceStreams:
    """Keeps open streams, and what is reserved by a stream, by digest."""

    def __init__(self, chaperons: Informer, clock: Clock | None = None) -> None:
        self.ended = TakingBack(clock or SystemClock())
        """What is to be taken back of streams that have ended: to be run."""
        self._chaperons = chaperons
        self._open: dict[str, list[SourceStream]] = {}  # oldest first; no empty lists
        self._reserved: dict[str, set[CandidateName]] = {}  # of open streams; still held

    def knows(self, digest: str) -> bool:
        """Tell whether a chaperon is here of the source that has this digest."""
        return self._chaperons.store.has(DIGEST_INDEX, digest)

    @contextmanager
    def open(self, digest: str) -> Iterator[SourceStream]:
        """Have a stream within the block, which begins with all that is reserved.

        Raises StreamEnded if the source has too many.
        """
        streams = self._open.setdefault(digest, [])
        if len(streams) >= _STREAMS_EACH:
            raise StreamEnded(f"{_STREAMS_EACH} streams of this source are open")

        stream = SourceStream(streams[0].attention if streams else Attention())
        streams.append(stream)
        for name in self._reserved.get(digest, ()):
            stream.outbox.put(name, "reserved")

        try:
            yield stream
        finally:
            streams.remove(stream)
            if not streams:
                self._end(digest)

    def _end(self, digest: str) -> None:
        del self._open[digest]
        self.ended.add(self._take_back(digest, self._reserved.pop(digest, set())))

    def _take_back(self, digest: str, names: Iterable[CandidateName]) -> Iterator[None]:
        for name in names:
            if name not in self._reserved.get(digest, ()):  # else it was reserved once more
                self._chaperons.restore(name.key, name.uid, keys.IS_RESERVED)

            yield

    def reserve(self, chaperon: Object) -> bool:
        """Tell the source that a candidate has a place; False if it has no stream for that.

        A gang is decided by what is on the chaperons of all its pods, in whichever replica.
        """
        digest = self._digest(chaperon)
        if digest not in self._open or keys.GANG_MARK in objects.annotations(chaperon):
            return False

        name = name_of(chaperon)
        self._reserved.setdefault(digest, set()).add(name)
        for stream in self._open[digest]:
            stream.outbox.put(name, "reserved")

        self._chaperons.assume(name.key, name.uid, keys.IS_RESERVED, "true")
        return True

    def acknowledge(
        self, digest: str, stream: SourceStream, names: Iterable[CandidateName]
    ) -> None:
        """Note which reservations the source knows by a stream of its own."""
        stream.acknowledged |= self._reserved.get(digest, set()).intersection(names)

    def is_acknowledged(self, chaperon: Object) -> bool:
        """Tell whether the source knows by a stream that a candidate has a place."""
        name = name_of(chaperon)
        return any(
            name in stream.acknowledged for stream in self._open.get(self._digest(chaperon), ())
        )

    def withdraw(self, chaperon: Object) -> None:
        """Tell the source that a candidate has its place no longer, if it was told that it had."""
        digest, name = self._digest(chaperon), name_of(chaperon)
        if name in self._reserved.get(digest, ()):
            for stream in self._open[digest]:
                stream.outbox.put(name, "withdrawn")

        self.settle(chaperon)
        self._chaperons.restore(name.key, name.uid, keys.IS_RESERVED)

    def confirm(self, chaperon: Object) -> None:
        """Tell the source that whoever holds the place of a candidate knows that it may run."""
        for stream in self._open.get(self._digest(chaperon), ()):
            stream.outbox.put(name_of(chaperon), "confirmed", is_urgent=False)

    def settle(self, chaperon: Object) -> None:
        """Tell streams that are opened from now on nothing of a candidate: it was decided."""
        digest, name = self._digest(chaperon), name_of(chaperon)
        for stream in self._open.get(digest, ()):
            stream.acknowledged.discard(name)

        told = self._reserved.get(digest, set())
        told.discard(name)
        if not told:
            self._reserved.pop(digest, None)

    def allow(self, digest: str, names: Iterable[CandidateName]) -> None:
        """Let candidates run, of the source that has this digest."""
        for name in names:
            chaperon = self._chaperons.store.get(name.key)
            chaperon = chaperon if chaperon and objects.uid(chaperon) == name.uid else {}
            if self._digest(chaperon) == digest:
                self._chaperons.assume(name.key, name.uid, keys.IS_ALLOWED, "true")

    @staticmethod
    def _digest(chaperon: Object) -> str:
        return str(objects.annotations(chaperon).get(keys.SOURCE_DIGEST, ""))
