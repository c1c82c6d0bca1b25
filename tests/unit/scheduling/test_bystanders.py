"""Whatever pods one tenant makes, a pod of another costs a few times what it does without them.

Each row of `TENANTS` is what somebody with `edit` in one namespace does, with objects that an API
server takes: all values used up, long keys, a rejection by each subset of targets. The bystander's
pod is scheduled, placed and removed, with the events of that. To add a row, write a function that
takes the scene. When the tenant's pods have gone, nothing of them is left.

Pods that an event wakes are tried again, which their own namespace pays for: they wait no more.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.unit.scheduling import costs
from tests.unit.scheduling.builders import pod, virtual_node
from tests.unit.scheduling.gpu_targets import make_framework
from vnode.api import objects, pod_terms
from vnode.api.objects import Object
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.selector_counts import IDLE
from vnode.scheduling.unschedulable_pods import UnschedulablePods, signature

FEW_TIMES: Final = 3
TARGETS: Final = [f"t{number}" for number in range(12)]
ZONE: Final = "kubernetes.io/hostname"
TENANT: Final = "team-a"


def key(*parts: object) -> str:
    """Return a label's key as long as a name may be."""
    return "-".join(map(str, parts)).ljust(63, "x")


def absent(number: int, count: int = 330) -> list[Object]:
    """Return expressions that hold for everybody, of as many values as a pod may have."""
    return [{"key": key(number, n), "operator": "DoesNotExist"} for n in range(count)]


def term(expressions: list[Object], **whom: Any) -> Object:
    whom = whom or {"namespaceSelector": {}}
    return {"topologyKey": ZONE, "labelSelector": {"matchExpressions": expressions}, **whom}


class Scene:
    """A scheduler with some targets, and a bystander that has pods there."""

    def __init__(self) -> None:
        self.cache, self.framework = Cache(), make_framework()
        self.waiting = UnschedulablePods(self.framework.registrations())
        self.pods: list[Object] = []  # of the tenant
        self.rejected: set[str] = set()  # of these, those that wait
        for name in TARGETS:
            self.cache.update_node(virtual_node(name, labels={ZONE: name}))

        for number in range(20):
            self.cache.set_pod(self.bystanders(number, TARGETS[number % len(TARGETS)]))

        self.place_bystander()  # what is counted once

    def bystanders(self, number: int, node: str = "") -> Object:
        labels = {"app": "web", "pod-template-hash": str(number % 5)}
        spread = {
            "topologyKey": ZONE,
            "maxSkew": 5,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        return pod(
            f"web-{number}",
            namespace="team-c",
            labels=labels,
            node=node,
            topologySpreadConstraints=[spread],
        )

    def place_bystander(self, number: int = 1000) -> None:
        """Schedule and place a pod of the bystander, and have it go again."""
        new = self.bystanders(number)
        result, node = self.framework.schedule(new, self.cache.snapshot()), TARGETS[0]
        assert node in {scored.name for scored in result.feasible}
        self.cache.assume(new, node, 0.0)
        self.tell(EventKind.POD_ADD, node, pod=new)
        self.cache.remove_pod(objects.uid(new))
        self.tell(EventKind.POD_DELETE, node, pod=new)
        self.tell(EventKind.PLAN_FREED, namespace="team-c")
        self.tell(EventKind.TARGET_SCORES, node)

    def tell(self, kind: EventKind, node: str | None = None, **rest: Any) -> None:
        for uid in self.waiting.woken_by(ClusterEvent(kind, node, **rest)):
            self.waiting.remove(uid)
            self.rejected.remove(uid)

    def make(self, uid: str, **spec: Any) -> Object:
        made = pod(uid, namespace=TENANT, **spec)
        self.pods.append(made)
        return made

    def reject(self, made: Object, **plugins: str) -> None:
        """Have a pod wait that a plugin has rejected on each of these targets."""
        rejections = {target: frozenset((plugin,)) for target, plugin in plugins.items()}
        self.waiting.add(made, signature(rejections))
        self.rejected.add(objects.uid(made))

    def end(self) -> None:
        """Delete all pods of the tenant; those of others come and go afterwards."""
        for each in self.pods:
            self.cache.remove_pod(objects.uid(each))
            if objects.uid(each) in self.rejected:
                self.waiting.remove(objects.uid(each))

        self.pods.clear()
        for _ in range(IDLE + 1):
            made = self.bystanders(2000)
            self.cache.assume(made, "t0", 0.0)
            self.cache.remove_pod(objects.uid(made))

    def size(self) -> int:
        return costs.entries(self.cache, self.waiting)


def waits_with_long_terms(scene: Scene, which: str = pod_terms.AFFINITY) -> None:
    for number in range(100):
        wanted = term([*absent(number, 325), {"key": "never", "operator": "Exists"}])
        made = scene.make(f"a{number}", affinity={which: {pod_terms.REQUIRED: [wanted]}})
        scene.reject(made, **dict.fromkeys(TARGETS, "InterPodAffinity"))


def waits_for_each_subset(scene: Scene, *plugins: str) -> None:
    """Have pods wait that say by node affinity which targets reject them by that, or otherwise."""
    subsets = itertools.product(plugins, repeat=len(TARGETS))
    for number, found in enumerate(itertools.islice(subsets, 2000)):
        scene.reject(scene.make(f"a{number}"), **dict(zip(TARGETS, found, strict=True)))


def waits_for_pods_of_thousands_of_namespaces(scene: Scene) -> None:
    for number in range(200):
        names = [f"team-{number}-{n}" for n in range(900)]
        wanted = term([{"key": "app", "operator": "Exists"}], namespaces=names)
        affinity = {pod_terms.AFFINITY: {pod_terms.REQUIRED: [wanted]}}
        made = scene.make(f"a{number}", affinity=affinity)
        scene.reject(made, **dict.fromkeys(TARGETS, "InterPodAffinity"))


def waits_with_many_constraints(scene: Scene) -> None:
    for number in range(200):
        spread = [
            {"topologyKey": ZONE, "labelSelector": {"matchExpressions": absent(n, 2)}}
            for n in range(90)
        ]
        made = scene.make(f"a{number}", topologySpreadConstraints=spread)
        scene.reject(made, **dict.fromkeys(TARGETS, "PodTopologySpread"))


def prefers(scene: Scene, expressions: Callable[[int], list[Object]], **whom: Any) -> None:
    """Have selectors of pods counted that prefer to be away from others."""
    for number in range(256):
        wish = {"weight": 1, "podAffinityTerm": term(expressions(number), **whom)}
        affinity = {pod_terms.ANTI_AFFINITY: {pod_terms.PREFERRED: [wish]}}
        made = scene.make(f"a{number}", affinity=affinity)
        assert scene.framework.schedule(made, scene.cache.snapshot()).feasible


def differs(number: int) -> list[Object]:
    values = [f"{number}-{n}".rjust(63, "x") for n in range(900)]
    return [{"key": "app", "operator": "NotIn", "values": values}]


def keeps_off(scene: Scene, **whom: Any) -> None:
    """Place pods that keep everybody off, by terms of which no two are equal."""
    for number in range(60):
        terms = [term(absent(number * 32 + n, 8), **whom) for n in range(32)]
        affinity = {pod_terms.ANTI_AFFINITY: {pod_terms.REQUIRED: terms}}
        scene.cache.set_pod(scene.make(f"a{number}", node="t11", affinity=affinity))


def has_labels_of_its_own(scene: Scene) -> None:
    for number in range(1000):
        labels = {key(number, n): str(number) for n in range(20)}
        scene.cache.set_pod(scene.make(f"a{number}", node="t11", labels=labels))


TENANTS: dict[str, Callable[[Scene], None]] = {
    "waits with long affinity": waits_with_long_terms,
    "waits with long anti-affinity": functools.partial(
        waits_with_long_terms, which=pod_terms.ANTI_AFFINITY
    ),
    "waits for each subset of targets": lambda scene: waits_for_each_subset(
        scene, "NodeAffinity", "NodeResourcesFit"
    ),
    "waits for each subset for its own pods": lambda scene: waits_for_each_subset(
        scene, "NodeAffinity", "PodTopologySpread"
    ),
    "waits for pods of thousands of namespaces": waits_for_pods_of_thousands_of_namespaces,
    "waits with many constraints": waits_with_many_constraints,
    "counts long selectors of all namespaces": lambda scene: prefers(scene, absent),
    "counts short selectors of all namespaces": lambda scene: prefers(
        scene, lambda n: absent(n, 1)
    ),
    "counts by many values": lambda scene: prefers(scene, differs),
    "counts pods of the bystander by name": lambda scene: prefers(
        scene, differs, namespaces=["team-c", "team-b"]
    ),
    "keeps everybody off": keeps_off,
    "keeps the bystander off by name": lambda scene: keeps_off(scene, namespaces=["team-c"]),
    "has labels of its own": has_labels_of_its_own,
}


@pytest.mark.parametrize("tenant", TENANTS)
def test_a_pod_of_another_costs_a_few_times_what_it_does_alone(tenant: str) -> None:
    scene = Scene()
    alone, size = costs.bytecodes(scene.place_bystander), scene.size()
    TENANTS[tenant](scene)
    assert scene.size() > size
    scene.place_bystander()
    beside = costs.bytecodes(scene.place_bystander)
    assert beside <= FEW_TIMES * alone
    scene.end()
    assert scene.size() <= size
    assert costs.bytecodes(scene.place_bystander) <= 1.1 * alone
