"""An API server in memory, for tests: what `vnode.kube.client.Client` needs of one, without HTTP.

A request goes from a `MemoryClient` through faults and latency to one synchronous step that reads
or writes the store; the change goes to the watches that are open. Time is the event loop's, so that
simulated time works, and nothing happens by itself: no scheduler, kubelet, controller or garbage
collector is here. So a deleted namespace stays Terminating until it is `remove`d, owner references
have no effect, and neither have propagation policies. Authorization, admission, managedFields and
the schemas of kinds are left out, but for what `admit` adds.

The tests of `contract` hold for this server and for a real kube-apiserver.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec

from tests.apiserver import copying, selection, status
from tests.apiserver.client import MemoryClient
from tests.apiserver.dispatch import Dispatcher
from tests.apiserver.faults import Faults, RequestFault
from tests.apiserver.reading import Reader
from tests.apiserver.requests import APIRequest, parse
from tests.apiserver.seats import ServerSeats
from tests.apiserver.store import Change, ResourceStore
from tests.apiserver.watches import Watch
from tests.apiserver.writing import ObjectWriter
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Unreachable, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects

TIMEOUT: Final = 30.0  # seconds after which a client gives up on a short request


class Admission(Protocol):
    """A webhook, or an admission plugin."""

    def __call__(self, request: APIRequest, obj: Object, /) -> Object:
        """Give the object as it is to be stored, or raise what the client is to see."""


class APIServer:
    """One cluster's API server; `client` gives connections to it.

    `latency` gives the seconds that each way of a request, and each batch of events, takes.
    `requests` are those that arrived, in order. A test that sets `spoil` has a hostile server: it
    sends what that makes of an answer.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        latency: Callable[[], float] = lambda: 0.0,
        seed: int = 1,
    ) -> None:
        self.name = name
        self.latency = latency
        self.requests: list[APIRequest] = []
        self.pages: dict[str, str | VnodeError] = {}  # path -> what a node says there, by proxy
        self.spoil: Callable[[APIRequest, Any], Any] = lambda _request, answer: answer
        self.store = ResourceStore()
        self.faults = Faults()
        self.seats = ServerSeats()
        self.writer = ObjectWriter(self.store, clock, random.Random(seed))
        self._reader = Reader(self.store)
        self._dispatcher = Dispatcher(self._reader, self.writer, clock)
        self._watches: list[Watch] = []
        self._thawed = asyncio.Event()  # not set: requests hang and watches are silent
        self._thawed.set()
        self._is_stopped = False
        self.store.changed.add(self._publish)
        for namespace in ("default", "kube-system", "kube-node-lease"):
            self.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})

    def client(self, user: str = "admin", *, name: str = "") -> MemoryClient:
        """Make a client that calls the cluster `name`, and that requests know as `user`."""
        return MemoryClient(self, name=name or self.name, user=user)

    def admit(self, admission: Admission) -> None:
        """Have objects that are created or updated pass through it."""
        self._dispatcher.admissions.append(admission)

    def refuse(self, verb: str, resource: str, *, refused: bool = True) -> None:
        """Have reviews of access to that resource say no; requests themselves are still allowed."""
        access = (verb, resource)
        (self._dispatcher.refused.add if refused else self._dispatcher.refused.discard)(access)

    def know(self, token: str, user: str) -> None:
        """Have reviews of that token name a user, besides tokens that were asked for."""
        self._dispatcher.users[token] = user

    def forget(self, token: str) -> None:
        """Have reviews of that token name nobody."""
        self._dispatcher.users.pop(token, None)

    # What tests do to the objects, as somebody else would, without any rule.

    def add(self, kind: Kind, obj: Object) -> Object:
        """Store an object as it is, with what metadata it lacks, in a namespace that is there."""
        metadata = {"creationTimestamp": self.writer.now(), **copying.deep(objects.metadata(obj))}
        if kind.namespaced:
            namespace = metadata.setdefault("namespace", "default")
            if self.store.get(kinds.NAMESPACES, namespace) is None:
                self.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})

        metadata.setdefault("uid", self.writer.new_uid())
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        stored = {**head, **copying.deep(obj), "metadata": metadata}
        return copying.deep(self.store.put(kind, stored))

    def find(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """Return a copy of an object, None if it is not there."""
        return copying.deep(self.store.get(kind, objects.join_key(namespace, name)))

    def all(self, kind: Kind) -> Objects:
        """Return copies of all objects of a kind, in the order of their keys."""
        return copying.deep(self.store.all(kind))

    def change(
        self, kind: Kind, name: str, namespace: str, change: Callable[[Object], None]
    ) -> Object:
        """Store what `change` makes of a copy of an object, which must be there."""
        obj = self.find(kind, name, namespace)
        assert obj is not None, f"{self.name} has no {kind.kind} {namespace}/{name}"
        change(obj)
        return copying.deep(self.store.put(kind, obj))

    def remove(self, kind: Kind, name: str, namespace: str = "") -> None:
        """Remove an object, whatever would keep it."""
        self.store.remove(kind, objects.join_key(namespace, name))

    async def until(self, condition: Callable[[], bool], seconds: float = 300) -> None:
        """Wait for changes until the condition holds; TimeoutError after that many seconds."""
        changed = asyncio.Event()
        self.store.changed.add(lambda _kind, _change: changed.set())
        async with asyncio.timeout(seconds):
            while not condition():
                changed.clear()
                await changed.wait()

    # What tests count, and what they let go wrong.

    def received(
        self, verb: str | None = None, kind: Kind | None = None, subresource: str | None = None
    ) -> list[APIRequest]:
        """List the requests of that verb, kind and subresource ("" for none) that arrived."""
        return [
            each
            for each in self.requests
            if verb in (None, each.verb)
            and kind in (None, each.kind)
            and subresource in (None, each.subresource)
        ]

    def count(
        self, verb: str | None = None, kind: Kind | None = None, subresource: str | None = None
    ) -> int:
        """Count the same requests."""
        return len(self.received(verb, kind, subresource))

    def fail(
        self,
        error: VnodeError | None,
        *,
        verb: str | None = None,
        kind: Kind | None = None,
        subresource: str | None = None,
        when: Callable[[APIRequest], bool] = lambda _request: True,
        times: int | None = 1,
        after: bool = False,
        delay: float = 0.0,
        late: Callable[[], float] | None = None,
    ) -> RequestFault:
        """Have requests fail, or only be late, as `RequestFault` describes."""
        fault = RequestFault(error, verb, kind, subresource, when, times, after, delay, late)
        return self.faults.add(fault)

    def freeze(self) -> None:
        """Let requests hang and watches be silent, as behind a network that drops everything."""
        self._thawed.clear()
        for watch in self._watches:
            watch.is_silent = True

    def thaw(self) -> None:
        """End a freeze: requests that still wait are carried out."""
        self._thawed.set()
        for watch in self._watches:
            watch.is_silent = False
            watch.wake()

    def stop(self) -> None:
        """Refuse connections, and break those that are open: answers under way are lost."""
        self._is_stopped = True
        self.cut_watches()

    def start(self) -> None:
        """Accept connections again."""
        self._is_stopped = False

    def watches(self, kind: Kind | None = None) -> list[Watch]:
        """List the watches that are open."""
        return [watch for watch in self._watches if kind in (None, watch.kind)]

    def cut_watches(self, kind: Kind | None = None) -> None:
        """Break the connections of watches; what they did not send yet is lost."""
        for watch in self.watches(kind):
            watch.cut(ConnectionResetError("Connection lost"))

    def end_watches(self, kind: Kind | None = None) -> None:
        """End watches cleanly, as a busy API server does."""
        for watch in self.watches(kind):
            watch.end()

    def silence_watches(self, kind: Kind | None = None) -> None:
        """Let watches send nothing more, as behind a load balancer that has lost the server."""
        for watch in self.watches(kind):
            watch.is_silent = True

    def compact(self) -> None:
        """Forget the past: older versions and continue tokens are expired."""
        self.store.compact()
        self._reader.forget()

    # What clients call.

    async def exchange(
        self,
        user: str,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        headers: Mapping[str, str],
    ) -> bytes:
        """Carry out a short request; the answer as JSON."""
        try:
            async with asyncio.timeout(TIMEOUT):
                if page := self.pages.get(path):
                    return _answered(page)

                request = parse(user, method, path, query, body, headers)
                fault = await self._arrive(request)
                async with self.seats.take(request):
                    if self._dispatcher.begin(request):  # who is killed here leaves it so
                        await asyncio.sleep(self.latency())

                    answer = self.spoil(request, self._dispatcher.answer(request))

                await self._leave(fault)
                return msgspec.json.encode(answer)
        except TimeoutError:
            raise Unreachable(f"{self.name}: timed out") from None
        except status.StatusError as error:
            raise error.error() from error

    async def open_watch(
        self,
        user: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        patience: float | None,
    ) -> Watch:
        """Open a watch; whoever asks must `close_watch` it."""
        try:
            async with asyncio.timeout(patience):
                request = parse(user, "GET", path, query, None, headers)
                await self._leave(await self._arrive(request))
                return self._watch(request)
        except TimeoutError:
            raise Unreachable(f"{self.name}: timed out") from None
        except status.StatusError as error:
            raise error.error() from error

    def close_watch(self, watch: Watch) -> None:
        """Forget a watch that nobody reads any more."""
        if watch in self._watches:
            self._watches.remove(watch)

    async def _arrive(self, request: APIRequest) -> RequestFault | None:
        """Bring a request to the server; return the fault that is yet to happen to its answer."""
        await asyncio.sleep(self.latency())
        self.requests.append(request)
        self._check_connection()
        await self._thawed.wait()
        fault = self.faults.meet(request)
        if fault is not None and not fault.after:
            if fault.late is not None:
                loop = asyncio.get_running_loop()
                loop.call_later(fault.late(), self._carry_out_late, request)

            await fault.happen()
            return None

        return fault

    def _carry_out_late(self, request: APIRequest) -> None:
        """Carry out a request of which nobody awaits the answer, unless it cannot arrive."""
        if self._is_stopped or not self._thawed.is_set():
            return

        with suppress(status.StatusError):
            self._dispatcher.begin(request)
            self._dispatcher.answer(request)

    async def _leave(self, fault: RequestFault | None) -> None:
        """Bring the answer back."""
        if fault is not None:
            await fault.happen()

        await asyncio.sleep(self.latency())
        await self._thawed.wait()
        self._check_connection()

    def _check_connection(self) -> None:
        if self._is_stopped:
            raise Unreachable(f"{self.name}: Cannot connect to host")

    def _watch(self, request: APIRequest) -> Watch:
        kind, version = request.kind, request.query.get("resourceVersion", "")
        if kind is None:
            raise status.unknown_path()

        if version and not version.isdecimal():
            raise status.bad_request(f'Invalid value: "{version}": invalid resource version')

        watch = Watch(request, kind, selection.of(request, kind), lambda: self.store.version)
        try:
            if version in ("", "0"):
                for obj in self.store.all(kind):
                    watch.start(obj)
            else:
                for change in self.store.since(kind, int(version)):
                    watch.push(change)
        except status.StatusError as error:
            watch.expire(error)

        self._watches.append(watch)
        return watch

    def _publish(self, kind: Kind, change: Change) -> None:
        for watch in self._watches:
            if watch.kind is kind:
                watch.push(change)


def _answered(page: str | VnodeError) -> bytes:
    if isinstance(page, VnodeError):
        raise page

    return page.encode()
