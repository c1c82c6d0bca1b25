"""What all clusters show at one moment: pure. What must be true of it is in `rules`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.faults.plan import WantedWorkload, Wish
from vnode.api import keys, names, objects
from vnode.api.objects import Object
from vnode.following.references import Ref

APP = "app"  # the label that says which workload a pod is of
VERSION = "example.com/version"  # the annotation that says of which version of it
REPLACES_FAILED = "example.com/replaces-failed"  # on pods of Jobs with podReplacementPolicy Failed
SIDECAR = "mesh"  # the container that injectors of targets add
INJECTED = "injector.example.com/status"  # the annotation by which they know that they have
ALIVE = ("", "Pending", "Running", "Unknown")


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule, and what breaks it."""

    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """The objects, by key, of the namespace in which everything happens.

    `chaperons`, `delegates` and `followed` (ConfigMaps, Secrets, Services) are by cluster, without
    those of which nothing is asked just now; `originals` are what may follow, in the source;
    `excused` are the UIDs of proxies that something other than vnode has ended; `survivors` those
    that nobody had a reason to end; `drained` are the targets that the policies of workloads, by
    name, drain.
    """

    wish: Wish = field(default_factory=Wish)
    proxies: Mapping[str, Object] = field(default_factory=dict)
    jobs: Mapping[str, Object] = field(default_factory=dict)
    nodes: Mapping[str, Object] = field(default_factory=dict)
    targets: Mapping[str, Object] = field(default_factory=dict)
    chaperons: Mapping[str, Mapping[str, Object]] = field(default_factory=dict)
    delegates: Mapping[str, Mapping[str, Object]] = field(default_factory=dict)
    followed: Mapping[str, Mapping[Ref, Object]] = field(default_factory=dict)
    originals: Mapping[Ref, Object] = field(default_factory=dict)
    survivors: Mapping[str, str] = field(default_factory=dict)  # UID -> key
    excused: Mapping[str, str] = field(default_factory=dict)  # UID -> key
    drained: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def target_names(self) -> frozenset[str]:
        """The names of the Targets that there are."""
        return frozenset(map(objects.name, self.targets.values()))

    def of(self, workload: WantedWorkload) -> list[Object]:
        """Return the pods of a workload, in the order of their names."""
        found = [p for p in self.proxies.values() if objects.labels(p).get(APP) == workload.name]
        return sorted(found, key=objects.name)

    def chaperons_of(self, uid: str) -> list[tuple[str, Object]]:
        """Return (cluster, chaperon) for each chaperon of the proxy with this UID."""
        return [
            (cluster, chaperon)
            for cluster, found in self.chaperons.items()
            for chaperon in found.values()
            if objects.labels(chaperon).get(keys.PARENT_UID) == uid
        ]


def phase(pod: Object) -> str:
    """Return `status.phase` of a pod, or the empty string."""
    return str(objects.status(pod).get("phase") or "")


def node_of(pod: Object) -> str:
    """Return `spec.nodeName` of a pod, or the empty string."""
    return str(objects.spec(pod).get("nodeName") or "")


def virtual_node(target: str) -> str:
    """Return the node that stands for a target of namespace default."""
    return names.virtual_node("default", target)
