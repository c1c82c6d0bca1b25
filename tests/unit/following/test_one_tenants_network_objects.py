"""One tenant's Services, Ingresses and NetworkPolicies do not make an event of anybody longer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pytest

from tests import tenant_scenarios
from tests.apiserver.server import APIServer
from tests.tenant_scenarios import Pause, TenantScenario, measured, sizes
from tests.unit.following.family_environment import NODE, FamilySource, pod
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.following import write_back_patches
from vnode.following.network_objects import NetworkObjects
from vnode.following.network_policies import NetworkPolicies

pytestmark = pytest.mark.looptime


def policy(name: str, version: int, selector: Object) -> Object:
    metadata = {"name": name, "namespace": "team-a", "uid": name, "resourceVersion": f"{version}"}
    return {"metadata": metadata, "spec": {"podSelector": selector}}


def policies_of(clock: Clock, given: list[Object]) -> tuple[NetworkPolicies, Callable[[], Any]]:
    """Return a family that knows these policies, and what removes them."""
    source = FamilySource(clock, APIServer("source", clock).client())
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


def one_large_policy(size: int, clock: Clock) -> TenantScenario:
    """Create a candidate of a pod that it may be about."""
    absent = [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(10 * size)]
    family, remove = policies_of(clock, [policy("large", 1, {"matchExpressions": absent})])
    return TenantScenario(lambda: placed(family), remove, lambda: policies_kept(family))


def many_policies(size: int, clock: Clock) -> TenantScenario:
    """Create a candidate of a pod that all of them select."""
    family, remove = policies_of(clock, [policy(f"p{n}", 1, {}) for n in range(size)])
    return TenantScenario(lambda: placed(family), remove, lambda: policies_kept(family))


def policies_that_select_others(size: int, clock: Clock) -> TenantScenario:
    """Create a candidate of a pod that is unlike what they select in the last of many labels."""
    absent = [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(99)]
    other = [*absent, {"key": "app", "operator": "NotIn", "values": ["web"]}]
    given = [policy(f"p{n}", 1, {"matchExpressions": other}) for n in range(size // 8)]
    family, remove = policies_of(clock, given)
    return TenantScenario(lambda: placed(family), remove, lambda: policies_kept(family))


def first_pod_with_many_policies(size: int, clock: Clock) -> TenantScenario:
    """Change the only pod of a namespace on a node."""
    family, remove = policies_of(clock, [policy(f"p{n}", 1, {}) for n in range(size)])

    async def change() -> None:
        family.on_pod(pod(), {**pod(), "metadata": {**pod()["metadata"], "labels": {"a": "b"}}})
        await Pause()
        family._stale.step()

    return TenantScenario(change, remove, lambda: policies_kept(family))


def many_services(size: int, clock: Clock) -> TenantScenario:
    """Change the labels of a pod that all of them select."""
    source = FamilySource(clock, APIServer("source", clock).client())
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
    return TenantScenario(change, remove, lambda: sizes(stale._stale, stale._under_way, pods))


def an_ingress_of_many_names(size: int, clock: Clock) -> TenantScenario:
    """Take an event of it, and change a pod of its namespace."""
    source = FamilySource(clock, APIServer("source", clock).client())
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
    return TenantScenario(
        change, remove, lambda: sizes(informer.store, stale._stale, stale._under_way, pods)
    )


def many_ingresses_without_secrets(size: int, clock: Clock) -> TenantScenario:
    """Find whether one of them names any, as at each event of a pod."""
    source = FamilySource(clock, APIServer("source", clock).client())
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

    return TenantScenario(lambda: family.has_certificates("team-a"), remove, lambda: len(store))


def addresses_that_a_user_has_noted(size: int, _clock: Clock) -> TenantScenario:
    """Find what to write back of a Service, as at each of its events."""
    noted = {f"n{n}": [{"ip": f"::{n:x}:{k:x}"} for k in range(16)] for n in range(size)}
    note = msgspec.json.encode(noted).decode()
    service = {"metadata": {"name": "s", "annotations": {keys.ADDRESSES: note}}, "status": {}}
    reports = {NODE: {"status": {"loadBalancer": {"ingress": [{"ip": "::1"}] * size}}}}
    return TenantScenario(
        lambda: write_back_patches.addresses(service, reports, bool, is_service=True),
        lambda: None,
        lambda: 0,
    )


def selectors_that_a_user_has_noted(size: int, _clock: Clock) -> TenantScenario:
    """Find whether Admiralty has replaced the selector of a Service."""
    note = ",".join(f"label-{n}=value-of-it" for n in range(2 * size))
    service = {"metadata": {"name": "s", "annotations": {keys.ORIGINAL_SELECTOR: note}}}
    return TenantScenario(lambda: write_back_patches.restoration(service), lambda: None, lambda: 0)


def ingress(name: str, backends: int) -> Object:
    """Return one that leads to so many Services, none of which there is."""
    paths = [{"backend": {"service": {"name": f"s{n}"}}} for n in range(backends)]
    metadata = {"name": name, "namespace": "team-a"}
    return {"metadata": metadata, "spec": {"rules": [{"http": {"paths": paths}}]}}


@pytest.mark.parametrize("backends", [1, 50])
async def test_a_target_that_connects_looks_at_no_backends_of_ingresses_at_once(
    backends: int, clock: Clock
) -> None:
    source = FamilySource(clock, APIServer("source", clock).client())
    family = NetworkObjects(
        source.context, relabel=lambda labels, _kept: labels, target_exists=bool, active=True
    )
    family.on_pod(None, pod())
    for number in range(100):
        family._originals[kinds.INGRESSES].store.put(ingress(f"i{number}", backends))

    keys = family.keys_on(NODE)
    assert max(measured(lambda: next(keys)) for _ in range(100)) < 250
    assert next(keys, None) is None


SCENARIOS: Final = (
    one_large_policy,
    many_policies,
    policies_that_select_others,
    first_pod_with_many_policies,
    many_services,
    an_ingress_of_many_names,
    many_ingresses_without_secrets,
    addresses_that_a_user_has_noted,
    selectors_that_a_user_has_noted,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
async def test_what_one_tenant_has_makes_no_step_longer_and_leaves_nothing(
    scenario: Callable[[int, Clock], TenantScenario], clock: Clock
) -> None:
    tenant_scenarios.check(scenario, clock)
