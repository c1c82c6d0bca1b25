"""What follows pods, in a random run: how such objects look, and what must be true of copies: pure.

A thing is used by name, whether it is there or not, as users do. Once all has settled, each target
has what its pods use, as it is in the source, and nothing else.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from tests.faults.plan import Thing, ThingKind
from tests.faults.snapshot import ALIVE, APP, FleetSnapshot, node_of, phase, virtual_node
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.following import references
from vnode.following.references import Ref

MARK, LABEL = "example.com/thing", "example.com/label"
SELECTOR = f"{MARK}=yes"
RESOURCES = {
    ThingKind.CONFIG_MAP: kinds.CONFIG_MAPS,
    ThingKind.SECRET: kinds.SECRETS,
    ThingKind.SERVICE: kinds.SERVICES,
}


def name_of(thing: Thing) -> str:
    """Return the name of a thing's object; that of a Service may not clash with Kubernetes' own."""
    return f"to-{thing.name}" if thing.kind is ThingKind.SERVICE else thing.name


def build(thing: Thing) -> Object:
    """Return the object that a user applies for a thing."""
    labels = {MARK: "yes", LABEL: str(thing.label)}
    body: Object = {"metadata": {"name": name_of(thing), "labels": labels}}
    version = str(thing.version)
    match thing.kind:
        case ThingKind.CONFIG_MAP:
            return {**body, "data": {"version": version}}
        case ThingKind.SECRET:
            return {**body, "data": {"version": base64.b64encode(version.encode()).decode()}}
        case ThingKind.SERVICE:
            port = {"port": 1000 + thing.version, "protocol": "TCP"}
            return {**body, "spec": {"selector": {APP: thing.name}, "ports": [port]}}


def volumes(uses: Sequence[str]) -> list[Object]:
    """Return the volumes of a pod that uses these ConfigMaps and Secrets, given by their keys."""
    found: list[Object] = []
    for key in uses:
        kind, _slash, name = key.partition("/")
        field, where = ("secret", "secretName") if kind == "secret" else ("configMap", "name")
        found.append({"name": f"{kind}-{name}", field: {where: name, "optional": True}})

    return found


def followed_objects_have_users(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that what followed is used by a pod that is bound there or has a candidate there."""
    for cluster, found in snapshot.followed.items():
        candidates = {
            objects.labels(chaperon).get(keys.PARENT_UID)
            for chaperon in snapshot.chaperons.get(cluster, {}).values()
        }
        pods = [
            *_bound(snapshot, cluster),
            *(pod for pod in _alive(snapshot) if objects.uid(pod) in candidates),
        ]
        used = {ref for pod in pods for ref in references.of(pod)} | _services(snapshot, cluster)
        uids = {objects.uid(pod) for pod in pods}
        for ref, copy in found.items():
            labels = objects.labels(copy)
            mine = keys.TOKEN in labels and labels.get(keys.PARENT_UID) in uids
            if ref not in used and not mine:
                yield f"{ref} in {cluster} has no user"


def used_objects_are_as_in_the_source(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that what bound pods use is in their cluster, and says what its original says."""
    for cluster in snapshot.delegates:
        used = {ref for pod in _bound(snapshot, cluster) for ref in references.of(pod)}
        for ref in sorted(used | _services(snapshot, cluster), key=str):
            original, copy = (
                snapshot.originals.get(ref),
                snapshot.followed.get(cluster, {}).get(ref),
            )
            if original is None and copy is not None:
                yield f"{ref} in {cluster} has no original"
            elif original is not None and copy is None:
                yield f"{ref} is not in {cluster}"
            elif original is not None and copy is not None and _says(original) != _says(copy):
                yield f"{ref} in {cluster} says {_says(copy)}, not {_says(original)}"


def _says(obj: Object) -> tuple[object, object]:
    ports = [port.get("port") for port in objects.spec(obj).get("ports") or ()]
    return obj.get("data") or ports, objects.labels(obj).get(LABEL)


def _alive(snapshot: FleetSnapshot) -> list[Object]:
    return [pod for pod in snapshot.proxies.values() if phase(pod) in ALIVE]


def _bound(snapshot: FleetSnapshot, cluster: str) -> list[Object]:
    return [pod for pod in _alive(snapshot) if node_of(pod) == virtual_node(cluster)]


def _services(snapshot: FleetSnapshot, cluster: str) -> set[Ref]:
    """Return the Services that select a proxy pod, if any pod is bound to that cluster."""
    alive = _alive(snapshot) if _bound(snapshot, cluster) else []
    return {
        ref
        for ref, service in snapshot.originals.items()
        if ref.kind is kinds.SERVICES
        and any(
            (objects.spec(service).get("selector") or {}).items() <= objects.labels(pod).items()
            for pod in alive
        )
    }
