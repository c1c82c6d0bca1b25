"""What stays when its object has gone is small, however large somebody has made the object."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from scheduler_plugins import placement_shares
from scheduler_plugins.placement_shares import KnownShares
from tests import background
from tests.apiserver.server import APIServer
from tests.unit.scheduling.builders import pod, virtual_node
from vnode.api import keys, pod_terms, selectors
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.following import references
from vnode.overrides import record
from vnode.placement.policies import matching
from vnode.placement.policies.matching import PolicyIndex
from vnode.planning.policy import Policy
from vnode.pods.target import chaperon_controller
from vnode.scheduling.cache import Cache
from vnode.targets import kept_chaperons


def policy(name: str, selector: str = "app", namespace: str = "team-a") -> Policy:
    return Policy(f"placementpolicy/{name}", namespace, selectors.parse(selector))


def test_references_of_a_pod_that_has_thousands_are_not_kept() -> None:
    def named(count: int) -> Object:
        pull = [{"name": f"pull-{count}-{number}"} for number in range(count)]
        return {"metadata": {"namespace": "team-a"}, "spec": {"imagePullSecrets": pull}}

    trim, before = references.keeping(lambda pod: {**pod, "spec": {}}), kept(references._shared)
    assert len(references.of(trim(named(references.SHARED + 1)))) == references.SHARED + 1
    assert kept(references._shared) == before
    trim(named(references.SHARED))
    assert kept(references._shared) == before + 1


@pytest.mark.parametrize("text", ["x" * (kept_chaperons.SHARED + 1), 7])
def test_what_a_target_writes_for_rules_of_policies_is_not_kept(text: Any) -> None:
    chaperon = {"metadata": {"annotations": {keys.OVERRIDES: text}}}
    before = kept(kept_chaperons._shared)
    assert kept_chaperons.trim_chaperon(chaperon)["metadata"] == chaperon["metadata"]
    assert kept(kept_chaperons._shared) == before


def test_a_record_that_is_longer_than_any_is_neither_decoded_nor_kept() -> None:
    with pytest.raises(ConfigError, match="another version of vnode"):
        record.decode('{"rules": []}' + " " * record.LIMIT)


def test_terms_that_are_long_are_compiled_and_not_kept() -> None:
    values = [f"{number:063}" for number in range(900)]
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": values}]},
    }
    affinity = {"podAntiAffinity": {pod_terms.REQUIRED: [term]}}
    before = kept(pod_terms._known)
    assert len(pod_terms.required(pod("p", affinity=affinity), pod_terms.ANTI_AFFINITY)) == 1
    assert kept(pod_terms._known) == before


def test_labels_of_pods_that_have_gone_are_kept_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matching, "KEPT", 100)
    index = PolicyIndex([policy("web")])
    for number in range(50):
        labels = {"app": "web", **{f"key-{n}": str(number) for n in range(8)}}
        found = index.of({"metadata": {"namespace": "team-a", "labels": labels}})
        assert found == policy("web")

    (scope,) = index._scopes.values()
    assert sum(1 + len(labels) for _namespace, labels in scope._found) <= 100


def test_a_policy_whose_shares_are_known_goes_with_its_object() -> None:
    known, cache, web = KnownShares(), Cache(), policy("web")
    cache.update_node(virtual_node("a"))
    shares = known.of(web, cache.snapshot())
    assert known.of(web, cache.snapshot()) is shares
    gone = weakref.ref(web)
    del web
    gc.collect()
    assert gone() is None


def test_shares_are_made_anew_when_a_node_changes_and_are_the_same_if_equal() -> None:
    known, cache, web = KnownShares(), Cache(), policy("web")
    cache.update_node(virtual_node("a"))
    shares = known.of(web, cache.snapshot())
    cache.update_node(virtual_node("a", labels={"changed": "yes"}))
    assert known.of(web, cache.snapshot()) is shares
    cache.update_node(virtual_node("b"))
    assert {share.node for share in known.of(web, cache.snapshot())} == {"a", "b"}


def test_policies_of_one_namespace_have_no_shares_of_others_made_anew() -> None:
    """Of a burst whose shares were made anew the rest was weighed by what its first pods left."""
    known, cache, web = KnownShares(), Cache(), policy("web")
    cache.update_node(virtual_node("a"))
    snapshot = cache.snapshot()
    shares = known.of(web, snapshot)
    many = [policy(f"p{number}", namespace="team-b") for number in range(3000)]
    for each in many:
        known.of(each, snapshot)

    assert known.of(web, snapshot) is shares
    assert sum(map(len, known._shares.values())) <= 1 + placement_shares._POLICIES_KEPT


def test_shares_in_namespaces_that_have_gone_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_shares, "_NAMESPACES_KEPT", 10)
    known, cache, web = KnownShares(), Cache(), policy("web")
    cache.update_node(virtual_node("a"))
    snapshot = cache.snapshot()
    shares = known.of(web, snapshot)
    for number in range(100):
        known.of(policy("gone", namespace=f"n{number}"), snapshot)

    gc.collect()
    assert known.of(web, snapshot) is shares
    assert len(known._shares) <= 11


def kept(cached: Any) -> int:
    """Return how many results a cache holds."""
    return int(cached.cache_info().currsize)


@pytest.mark.looptime
async def test_chaperons_and_delegates_share_strings_whether_listed_or_watched(
    clock: Clock,
) -> None:
    server = APIServer("c1", clock)
    for informer in chaperon_controller.informers(server.client()):
        async with background.running(informer.run()):
            for name in ("a", "b"):
                metadata = {"name": name, "namespace": "team-a", "labels": {keys.PARENT_UID: name}}
                status = {"hostIP": "10.0.0.4"}
                server.add(informer.kind, {"metadata": metadata, "status": status})
                await asyncio.sleep(1)
                await informer.synced.wait()

        first, second = informer.store.values()
        assert first["status"]["hostIP"] is second["status"]["hostIP"]
