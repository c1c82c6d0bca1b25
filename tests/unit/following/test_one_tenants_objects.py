"""What one tenant's pods refer to does not make an event of anybody longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Final

import pytest

from tests import tenant_scenarios
from tests.tenant_scenarios import Pause, TenantScenario, measured, sizes
from tests.unit.following.family_environment import NODE, FamilySource, pod
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.following import references
from vnode.following.config_objects import ConfigObjects
from vnode.following.reference_index import Key, ReferenceIndex
from vnode.following.references import Ref

pytestmark = pytest.mark.looptime

TRIM: Final = references.keeping(lambda each: {**each, "spec": {"nodeName": NODE}})


def referring(number: int) -> list[Object]:
    """Return containers that refer to that many ConfigMaps."""
    named = [{"configMapRef": {"name": f"c{n}", "optional": True}} for n in range(number)]
    return [{"name": "c", "image": "i", "envFrom": named}]


def index_size(index: ReferenceIndex) -> int:
    return sizes(
        *(index._uses, index._bound, index._awaiting, index._pending),
        *(index._namespaces, index._undecided),
    )


def many_pods_that_refer(size: int, clock: Clock) -> TenantScenario:
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

    return TenantScenario(reconcile, remove, lambda: index_size(index))


def one_pod_with_many_references(size: int, clock: Clock) -> TenantScenario:
    """Look at a version of that pod."""
    index = ReferenceIndex(lambda _key: None, clock)
    given = pod(containers=referring(size))

    def change() -> None:
        index.on_pod(None, TRIM(given))

    return TenantScenario(change, lambda: index.on_pod(given, None), lambda: index_size(index))


def many_objects_that_were_read(size: int, clock: Clock) -> TenantScenario:
    """Change the pod of a bystander, which refers to nothing."""
    source = FamilySource(clock)
    index = ReferenceIndex(lambda _key: None, clock)
    family = ConfigObjects(source.context, index)
    used = pod(containers=referring(size))
    family.on_pod(None, used)
    for number in range(size):
        reading = family._read(Ref(kinds.CONFIG_MAPS, "team-a", f"c{number}"))
        with pytest.raises(StopIteration):
            reading.send(None)

    plain = pod("web", "team-c")
    return TenantScenario(
        lambda: family.on_pod(plain, plain),
        lambda: family.on_pod(used, None),
        lambda: len(family._namespaces) + index_size(index),
    )


def many_pending_pods_of_one_object(size: int, clock: Clock) -> TenantScenario:
    """Change that object, and reconcile it in a target that has nothing to do with it."""
    links = [SimpleNamespace(node_name=NODE, candidate=lambda *_of: None)]
    context = replace(FamilySource(clock).context, links=links)  # type: ignore[arg-type]
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

    return TenantScenario(change, remove, lambda: index_size(index))


async def test_a_target_that_connects_looks_at_references_of_pods_one_by_one(
    clock: Clock,
) -> None:
    index = ReferenceIndex(lambda _key: None, clock)
    for number in range(20):
        index.on_pod(None, TRIM(pod(f"p{number}", containers=referring(100 + number))))

    keys = index.keys_on(NODE)
    assert max(measured(lambda: next(keys)) for _ in range(119)) < 50
    assert next(keys, None) is None


SCENARIOS: Final = (
    many_pods_that_refer,
    many_pending_pods_of_one_object,
    one_pod_with_many_references,
    many_objects_that_were_read,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
async def test_what_one_tenant_has_makes_no_step_longer_and_leaves_nothing(
    scenario: Callable[[int, Clock], TenantScenario], clock: Clock
) -> None:
    tenant_scenarios.check(scenario, clock)
