"""What one tenant has does not make an event of anybody longer: extreme, but valid objects.

Each scenario is measured with some hostile objects and with four times as many. Counted are the
lines and calls that the longest part of a step takes that is without a pause, which are as many on
any machine; C code that walks a list is not seen. When the objects have gone, all caches and
indexes are empty. A new way for one tenant to hold up others is a new scenario.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following import references, write_back_patches
from vnode.following.config_objects import ConfigObjects
from vnode.following.family import FamilyContext
from vnode.following.network_objects import NetworkObjects
from vnode.following.network_policies import NetworkPolicies
from vnode.following.reference_index import Key, ReferenceIndex
from vnode.following.references import Ref
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder
from vnode.planning.workload_counts import Workloads

pytestmark = pytest.mark.looptime

US: Final = Identity("c1", "uid-1")
SIZES: Final = (600, 2_400)
GROWTH: Final = 1.3  # of what four times as many objects may cost more
LEEWAY: Final = 400  # operations, for what begins only beyond a bound
NODE: Final = "admiralty-gpu"


@dataclass
class Scenario:
    """Hostile objects: what is measured beside them, how they go, and what is left then."""

    step: Callable[[], Coroutine[Any, Any, Any] | Any]
    remove: Callable[[], Any]
    kept: Callable[[], int]


class Operations:
    """Counts what Python does between pauses."""

    def __init__(self) -> None:
        self._now = self.longest = 0

    def pause(self) -> None:
        """Begin to count anew."""
        self.longest, self._now = max(self.longest, self._now), 0

    def _trace(self, *_event: Any) -> Any:
        self._now += 1
        return self._trace

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is done within."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)
            self.pause()


def measured(step: Callable[[], Any]) -> int:
    """Return how much the longest part of a step takes that is without a pause."""
    operations = Operations()
    with operations.counted():
        running = step()
        while hasattr(running, "send"):
            try:
                running.send(None)
            except (StopIteration, ConfigError):
                break

            operations.pause()

    return operations.longest


def pod(name: str = "web", namespace: str = "team-a", **spec: Any) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
    return {
        "metadata": {**metadata, "labels": {"app": "web"}},
        "spec": {"nodeName": NODE, **spec},
        "status": {},
    }


def referring(number: int) -> list[Object]:
    """Return containers that refer to that many ConfigMaps."""
    named = [{"configMapRef": {"name": f"c{n}", "optional": True}} for n in range(number)]
    return [{"name": "c", "image": "i", "envFrom": named}]


class Source:
    """What families are given, of a cluster without a server."""

    def __init__(self, clock: Clock, client: Client | None = None) -> None:
        self.woken: dict[Key, None] = {}
        self.context = FamilyContext(
            local=client or self,  # type: ignore[arg-type]
            links=[],  # type: ignore[arg-type]
            identity=US,
            wake=lambda key: self.woken.update({key: None}),
            wake_kind=lambda _kind: None,
            copies_of=lambda _ref: {},
            clock=clock,
            delegates=SimpleNamespace(labels=lambda *_of: US.labels),  # type: ignore[arg-type]
        )

    async def get(self, _kind: Any, name: str, namespace: str) -> Object:
        """Return any ConfigMap that is asked for."""
        metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}
        return {"metadata": metadata, "data": {}}


TRIM: Final = references.keeping(lambda each: {**each, "spec": {"nodeName": NODE}})


def sizes(*kept: Sized) -> int:
    return sum(len(each) for each in kept)


def index_size(index: ReferenceIndex) -> int:
    return sizes(
        *(index._uses, index._bound, index._awaiting, index._pending),
        *(index._namespaces, index._undecided),
    )


def many_pods_that_refer(size: int, clock: Clock) -> Scenario:
    """Reconcile the ConfigMap of a bystander."""
    index = ReferenceIndex(lambda _key: None, clock)
    pods = [TRIM(pod(f"p{n}", containers=referring(50))) for n in range(size // 10)]
    for each in pods:
        index.on_pod(None, each)

    own = TRIM(pod("web", "team-c", containers=referring(1)))
    index.on_pod(None, own)

    def reconcile() -> None:
        for name in ("c0", "gone"):
            key = Key(NODE, Ref(kinds.CONFIG_MAPS, "team-c", name))
            next(index.involved_objects(key), None)
            index.need(key, SimpleNamespace(candidate=lambda *_of: None))  # type: ignore[arg-type]

    def remove() -> None:
        for each in (*pods, own):
            index.on_pod(each, None)

    return Scenario(reconcile, remove, lambda: index_size(index))


def one_pod_with_many_references(size: int, clock: Clock) -> Scenario:
    """Look at a version of that pod."""
    index = ReferenceIndex(lambda _key: None, clock)
    given = pod(containers=referring(size))

    def change() -> None:
        index.on_pod(None, TRIM(given))

    return Scenario(change, lambda: index.on_pod(given, None), lambda: index_size(index))


def many_objects_that_were_read(size: int, clock: Clock) -> Scenario:
    """Change the pod of a bystander, which refers to nothing."""
    source = Source(clock)
    index = ReferenceIndex(lambda _key: None, clock)
    family = ConfigObjects(source.context, index)
    used = pod(containers=referring(size))
    family.on_pod(None, used)
    for number in range(size):
        reading = family._read(Ref(kinds.CONFIG_MAPS, "team-a", f"c{number}"))
        with pytest.raises(StopIteration):
            reading.send(None)

    plain = pod("web", "team-c")
    return Scenario(
        lambda: family.on_pod(plain, plain),
        lambda: family.on_pod(used, None),
        lambda: len(family._namespaces) + index_size(index),
    )


def many_pending_pods_of_one_object(size: int, clock: Clock) -> Scenario:
    """Change that object, and reconcile it in a target that has nothing to do with it."""
    links = [SimpleNamespace(node_name=NODE, candidate=lambda *_of: None)]
    context = replace(Source(clock).context, links=links)  # type: ignore[arg-type]
    index = ReferenceIndex(lambda _key: None, clock)
    family = ConfigObjects(context, index)
    pods = [TRIM(pod(f"p{n}", nodeName="", containers=referring(1))) for n in range(size)]
    for each in pods:
        family.on_pod(None, {**each, "spec": {}})

    changed = {"metadata": {"name": "c0", "namespace": "team-a"}}
    key = Key(NODE, Ref(kinds.CONFIG_MAPS, "team-a", "c0"))

    async def change() -> None:
        family._on_original(kinds.CONFIG_MAPS, changed, changed)
        await Pause()
        family.need(key, links[0])  # type: ignore[arg-type]

    def remove() -> None:
        for each in pods:
            family.on_pod(each, None)

    return Scenario(change, remove, lambda: index_size(index))


def policy(name: str, version: int, selector: Object) -> Object:
    metadata = {"name": name, "namespace": "team-a", "uid": name, "resourceVersion": f"{version}"}
    return {"metadata": metadata, "spec": {"podSelector": selector}}


def policies_of(clock: Clock, given: list[Object]) -> tuple[NetworkPolicies, Callable[[], Any]]:
    """Return a family that knows these policies, and what removes them."""
    source = Source(clock, APIServer("source", clock).client())
    family = NetworkPolicies(source.context, relabel=lambda labels, _kept: labels)
    for each in given:
        family._originals.store.put(each)
        family._on_policy(None, each)

    def remove() -> None:
        for each in given:
            family._originals.store.pop(objects.key(each))
            family._on_policy(each, None)

        family.on_pod(pod(), None)
        while family._stale.step():
            pass

    family.on_pod(None, pod())
    return family, remove


def policies_kept(family: NetworkPolicies) -> int:
    stale = family._stale
    return len(family._forms) + len(family._counts) + len(stale._stale) + len(stale._under_way)


async def placed(family: NetworkPolicies) -> None:
    """Have a candidate of a pod wait for its policies, and each be reconciled."""
    link = SimpleNamespace(node_name=NODE, target=SimpleNamespace(name="gpu"))
    selecting = await family._selecting("team-a", {"app": "web"})
    for key in await family.announce(pod(), selecting, link):  # type: ignore[arg-type]
        await family.original(key.ref, link, None)  # type: ignore[arg-type]


def one_large_policy(size: int, clock: Clock) -> Scenario:
    """Create a candidate of a pod that it may be about."""
    absent = [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(10 * size)]
    family, remove = policies_of(clock, [policy("large", 1, {"matchExpressions": absent})])
    return Scenario(lambda: placed(family), remove, lambda: policies_kept(family))


def many_policies(size: int, clock: Clock) -> Scenario:
    """Create a candidate of a pod that all of them select."""
    family, remove = policies_of(clock, [policy(f"p{n}", 1, {}) for n in range(size)])
    return Scenario(lambda: placed(family), remove, lambda: policies_kept(family))


def policies_that_select_others(size: int, clock: Clock) -> Scenario:
    """Create a candidate of a pod that is unlike what they select in the last of many labels."""
    absent = [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(99)]
    other = [*absent, {"key": "app", "operator": "NotIn", "values": ["web"]}]
    given = [policy(f"p{n}", 1, {"matchExpressions": other}) for n in range(size // 8)]
    family, remove = policies_of(clock, given)
    return Scenario(lambda: placed(family), remove, lambda: policies_kept(family))


def first_pod_with_many_policies(size: int, clock: Clock) -> Scenario:
    """Change the only pod of a namespace on a node."""
    family, remove = policies_of(clock, [policy(f"p{n}", 1, {}) for n in range(size)])

    async def change() -> None:
        family.on_pod(pod(), {**pod(), "metadata": {**pod()["metadata"], "labels": {"a": "b"}}})
        await Pause()
        family._stale.step()

    return Scenario(change, remove, lambda: policies_kept(family))


class Pause:
    """Awaited where the event loop gets its turn."""

    def __await__(self) -> Iterator[None]:
        yield


def many_services(size: int, clock: Clock) -> Scenario:
    """Change the labels of a pod that all of them select."""
    source = Source(clock, APIServer("source", clock).client())
    family = NetworkObjects(
        source.context, relabel=lambda labels, _kept: labels, target_exists=bool, active=True
    )
    store = family._originals[kinds.SERVICES].store
    spec = {"clusterIP": "None", "selector": {"app": "web"}}
    for number in range(size):
        metadata = {"name": f"s{number}", "namespace": "team-a", "uid": f"s{number}"}
        store.put({"metadata": metadata, "spec": spec})

    given, versions = pod(), count()
    family.on_pod(None, given)

    async def change() -> None:
        labels = {"app": "web", "n": f"{next(versions)}"}
        family.on_pod(given, {**given, "metadata": {**given["metadata"], "labels": labels}})
        await Pause()
        family._stale.step()

    def remove() -> None:
        family.on_pod(given, None)
        while family._stale.step():
            pass

    stale, pods = family._stale, family._pod_index._pods
    return Scenario(change, remove, lambda: sizes(stale._stale, stale._under_way, pods))


def an_ingress_of_many_names(size: int, clock: Clock) -> Scenario:
    """Take an event of it, and change a pod of its namespace."""
    source = Source(clock, APIServer("source", clock).client())
    family = NetworkObjects(
        source.context, relabel=lambda labels, _kept: labels, target_exists=bool, active=True
    )
    informer, given, versions = family._originals[kinds.INGRESSES], pod(), count()
    informer.subscribe(lambda old, new: family._on_original(kinds.INGRESSES, old, new))
    family.on_pod(None, given)
    rules = [{"host": f"h{n}"} for n in range(100 * size)]
    spec = {"tls": [{"secretName": "a"}] * (100 * size), "rules": rules}

    async def change() -> None:
        version = f"{next(versions)}"
        metadata = {"name": "i", "namespace": "team-a", "resourceVersion": version}
        informer._put({"metadata": metadata, "spec": spec})
        await Pause()
        labels = {"app": "web", "n": version}
        family.on_pod(given, {**given, "metadata": {**given["metadata"], "labels": labels}})
        await Pause()
        family._stale.step()

    def remove() -> None:
        informer._remove("team-a/i")
        family.on_pod(given, None)
        while family._stale.step():
            pass

    stale, pods = family._stale, family._pod_index._pods
    return Scenario(
        change, remove, lambda: sizes(informer.store, stale._stale, stale._under_way, pods)
    )


def many_ingresses_without_secrets(size: int, clock: Clock) -> Scenario:
    """Find whether one of them names any, as at each event of a pod."""
    source = Source(clock, APIServer("source", clock).client())
    family = NetworkObjects(
        source.context, relabel=lambda labels, _kept: labels, target_exists=bool, active=True
    )
    store = family._originals[kinds.INGRESSES].store
    for number in range(size):
        store.put({"metadata": {"name": f"i{number}", "namespace": "team-a"}, "spec": {}})

    family.on_pod(None, pod())

    def remove() -> None:
        for key in list(store):
            store.pop(key)

    return Scenario(lambda: family.has_certificates("team-a"), remove, lambda: len(store))


def addresses_that_a_user_has_noted(size: int, _clock: Clock) -> Scenario:
    """Find what to write back of a Service, as at each of its events."""
    noted = {f"n{n}": [{"ip": f"::{n:x}:{k:x}"} for k in range(16)] for n in range(size)}
    note = msgspec.json.encode(noted).decode()
    service = {"metadata": {"name": "s", "annotations": {keys.ADDRESSES: note}}, "status": {}}
    reports = {NODE: {"status": {"loadBalancer": {"ingress": [{"ip": "::1"}] * size}}}}
    return Scenario(
        lambda: write_back_patches.addresses(service, reports, bool, is_service=True),
        lambda: None,
        lambda: 0,
    )


def selectors_that_a_user_has_noted(size: int, _clock: Clock) -> Scenario:
    """Find whether Admiralty has replaced the selector of a Service."""
    note = ",".join(f"label-{n}=value-of-it" for n in range(2 * size))
    service = {"metadata": {"name": "s", "annotations": {keys.ORIGINAL_SELECTOR: note}}}
    return Scenario(lambda: write_back_patches.restoration(service), lambda: None, lambda: 0)


def ingress(name: str, backends: int) -> Object:
    """Return one that leads to so many Services, none of which there is."""
    paths = [{"backend": {"service": {"name": f"s{n}"}}} for n in range(backends)]
    metadata = {"name": name, "namespace": "team-a"}
    return {"metadata": metadata, "spec": {"rules": [{"http": {"paths": paths}}]}}


@pytest.mark.parametrize("backends", [1, 50])
async def test_a_target_that_connects_looks_at_no_backends_of_ingresses_at_once(
    backends: int, clock: Clock
) -> None:
    source = Source(clock, APIServer("source", clock).client())
    family = NetworkObjects(
        source.context, relabel=lambda labels, _kept: labels, target_exists=bool, active=True
    )
    family.on_pod(None, pod())
    for number in range(100):
        family._originals[kinds.INGRESSES].store.put(ingress(f"i{number}", backends))

    keys = family.keys_on(NODE)
    assert max(measured(lambda: next(keys)) for _ in range(100)) < 250
    assert next(keys, None) is None


async def test_a_target_that_connects_looks_at_references_of_pods_one_by_one(
    clock: Clock,
) -> None:
    index = ReferenceIndex(lambda _key: None, clock)
    for number in range(20):
        index.on_pod(None, TRIM(pod(f"p{number}", containers=referring(100 + number))))

    keys = index.keys_on(NODE)
    assert max(measured(lambda: next(keys)) for _ in range(119)) < 50
    assert next(keys, None) is None


def owned(name: str, kind: str = "ReplicaSet", **more: Any) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "r", "uid": "r", "controller": True}
    given = pod(name)
    metadata = {**given["metadata"], "ownerReferences": [owner], **more}
    return {**given, "metadata": metadata}


def counted(workloads: Workloads) -> int:
    return sizes(workloads._groups, workloads._pods, workloads._namespaces)


def ever_new_groupings(size: int, _clock: Clock) -> Scenario:
    """Change a pod whose policy has had that many values of `groupBy`."""
    workloads = Workloads(lambda _uid: ())
    given = owned("web")
    workloads.set(given)
    for number in range(size):
        label = f"example.com/k{number}"
        workloads.of(given, label)
        workloads.keep("team-a", lambda _namespace, label=label: {label})

    def remove() -> None:
        workloads.remove(objects.uid(given))
        workloads.keep("", lambda _namespace: ())

    return Scenario(lambda: workloads.set(given), remove, lambda: counted(workloads))


def replicas_that_nobody_replaces(size: int, _clock: Clock) -> Scenario:
    """Create a pod of a StatefulSet, of which others were deleted and not replaced."""
    workloads = Workloads(lambda _uid: ())
    workloads.of(owned("web", "StatefulSet"), "")
    given = [owned(f"w{n}", "StatefulSet") for n in range(size)]
    for each in given:
        workloads.set(each)
        ended = {**each["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        workloads.set({**each, "metadata": ended})
        workloads.remove(objects.uid(each))

    new = owned("new", "StatefulSet")

    def remove() -> None:
        workloads.remove(objects.uid(new))
        workloads.keep("", lambda _namespace: ())

    return Scenario(lambda: workloads.set(new), remove, lambda: counted(workloads))


class Written:
    """A cluster that takes Events; it says of which namespaces."""

    name = "source"

    def __init__(self) -> None:
        self.namespaces: list[str] = []

    async def create(self, _kind: Any, body: Object) -> None:
        """Take a new Event."""
        self.namespaces.append(objects.namespace(body))

    async def patch(self, _kind: Any, _name: str, _body: Object, namespace: str) -> None:
        """Take a count."""
        self.namespaces.append(namespace)


@dataclass(frozen=True)
class MovedClock:
    """A clock at a moment that the test chooses."""

    clock: Clock
    moment: float = 0.0

    def now(self) -> Any:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.moment


def a_flood_of_events(size: int, clock: Clock) -> Scenario:
    """Record an Event of a bystander, which is among the next two that are written."""
    cluster = Written()
    recorder = EventRecorder(cluster, "vnode", MovedClock(clock))  # type: ignore[arg-type]

    def write(times: int) -> None:
        for _ in range(times):
            found = recorder._queue.next(recorder._clock.monotonic())
            if found is None:
                return

            with pytest.raises(StopIteration):
                recorder._write(*found).send(None)

    def about(namespace: str, name: str) -> Object:
        return {"kind": "Pod", "namespace": namespace, "name": name, "uid": name}

    for moment in (0.0, 20.0, 40.0):
        recorder._clock = MovedClock(clock, moment)  # type: ignore[assignment]
        for number in range(2 * size):
            recorder.event(about("team-a", f"p{number}"), WARNING, "FailedScheduling", "no")
            if moment == 0.0:
                write(1)

    numbers = count()

    def record() -> None:
        before = len(cluster.namespaces)
        recorder.event(about("team-c", f"w{next(numbers)}"), WARNING, "FailedScheduling", "no")
        write(2)
        assert "team-c" in cluster.namespaces[before:]

    def remove() -> None:
        recorder._clock = MovedClock(clock, 5_000.0)  # type: ignore[assignment]
        write(4 * size)
        recorder._clock = MovedClock(clock, 9_000.0)  # type: ignore[assignment]
        recorder._forget_old(9_000.0)

    return Scenario(record, remove, lambda: len(recorder._series) + len(recorder._queue))


SCENARIOS: Final = (
    many_pods_that_refer,
    many_pending_pods_of_one_object,
    one_pod_with_many_references,
    many_objects_that_were_read,
    one_large_policy,
    many_policies,
    policies_that_select_others,
    first_pod_with_many_policies,
    many_services,
    an_ingress_of_many_names,
    many_ingresses_without_secrets,
    addresses_that_a_user_has_noted,
    selectors_that_a_user_has_noted,
    ever_new_groupings,
    replicas_that_nobody_replaces,
    a_flood_of_events,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
async def test_what_one_tenant_has_makes_no_step_longer_and_leaves_nothing(
    scenario: Callable[[int, Clock], Scenario], clock: Clock
) -> None:
    costs = []
    for size in SIZES:
        given = scenario(size, clock)
        costs.append(max(measured(given.step) for _ in range(2)))  # of news, and of what is known
        given.remove()
        assert given.kept() == 0

    few, many = costs
    assert 0 < many <= GROWTH * few + LEEWAY, costs
