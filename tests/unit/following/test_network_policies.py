"""NetworkPolicies are in a target before the pods that they select, or these do not go there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.following.fleet import FollowingFleet
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Denied
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following import policy_copies
from vnode.following.config import FollowingConfig
from vnode.following.reference_index import Key
from vnode.runtime.target_options import TargetOptions

US = Identity("c1", "us")
NAMED = {keys.PARENT_CLUSTER_NAME: "c1"}
MINE = US.labels
DENY = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def policy(name: str = "deny", **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec or DENY}


def web_policy() -> Object:
    return policy("web", podSelector={"matchLabels": {"app": "web"}}, policyTypes=["Ingress"])


def test_a_copy_selects_delegates_of_its_source_alone() -> None:
    assert policy_copies.policy(policy(), US, {})["spec"]["podSelector"] == {"matchLabels": NAMED}
    expressions = [{"key": "tier", "operator": "NotIn", "values": ["db"]}]
    chosen = {"matchLabels": {"app": "web"}, "matchExpressions": expressions}
    assert policy_copies.policy(policy(podSelector=chosen), US, {})["spec"]["podSelector"] == {
        "matchLabels": {keys.PREFIX + "app": "web", **NAMED},
        "matchExpressions": [{**expressions[0], "key": keys.PREFIX + "tier"}],
    }


def test_peers_are_delegates_and_in_other_namespaces_pods_of_the_target_too() -> None:
    front = {"podSelector": {"matchLabels": {"app": "front"}}}
    dns = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    block = {"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.1/32"]}}
    everybody = {"namespaceSelector": {}}
    ports = [{"port": 53, "protocol": "UDP"}]
    egress = [{"to": [front, dns, block, everybody], "ports": ports}, {"ports": ports}]
    made = policy_copies.policy(policy(podSelector={}, egress=egress), US, {})["spec"]["egress"]
    assert made[1] == {"ports": ports}
    renamed = {"podSelector": {"matchLabels": {keys.PREFIX + "app": "front", **NAMED}}}
    ours = {**dns, "podSelector": {"matchLabels": {keys.PREFIX + "k8s-app": "kube-dns", **NAMED}}}
    assert made[0] == {"to": [renamed, dns, ours, block, everybody], "ports": ports}


def test_the_copy_of_a_copy_selects_what_the_next_cluster_has() -> None:
    them = Identity("c2", "them")
    for source in ({}, them.labels):
        first = policy_copies.policy(web_policy(), US, US.labels)
        second = policy_copies.policy(first, them, source)
        labels = second["spec"]["podSelector"]["matchLabels"]
        assert labels == {keys.PREFIX + "app": "web", keys.PARENT_CLUSTER_NAME: "c2", **source}


@pytest.mark.looptime
async def test_a_policy_is_there_before_the_candidate_and_goes_after_the_last_pod(
    clock: Clock,
) -> None:
    fleet = FollowingFleet(clock)
    fleet.source.add(kinds.NETWORK_POLICIES, policy())
    async with fleet.running():
        assert fleet.gpu.find(kinds.NETWORK_POLICIES, "deny", "ns") is None
        pod = fleet.add_pod(node=None)
        await fleet.following.ensure(pod, fleet.link)
        copy = fleet.gpu.find(kinds.NETWORK_POLICIES, "deny", "ns")
        assert copy is not None
        assert copy["spec"]["podSelector"] == {"matchLabels": MINE}
        fleet.remove_pod()
        fleet.add_pod("bound")
        await asyncio.sleep(120)
        assert fleet.gpu.find(kinds.NETWORK_POLICIES, "deny", "ns") is not None
        fleet.gpu.change(
            *(kinds.NETWORK_POLICIES, "deny", "ns"),
            lambda obj: obj["spec"].update(podSelector={"matchLabels": {"nobody": "x"}}),
        )
        await asyncio.sleep(40)
        copy = fleet.gpu.find(kinds.NETWORK_POLICIES, "deny", "ns") or {}
        assert copy["spec"]["podSelector"] == {"matchLabels": MINE}
        fleet.source.add(kinds.NETWORK_POLICIES, web_policy())
        await asyncio.sleep(2)
        assert fleet.gpu.find(kinds.NETWORK_POLICIES, "web", "ns") is not None
        fleet.remove_pod("bound")
        await asyncio.sleep(30)
        assert fleet.gpu.all(kinds.NETWORK_POLICIES) == []


@pytest.mark.looptime
async def test_a_policy_that_changes_is_looked_at_in_targets_with_pods_of_its_namespace(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant may change policies all the time, and there may be hundreds of targets."""
    fleet, woken = FollowingFleet(clock), list[Key]()
    async with fleet.running():
        monkeypatch.setattr(fleet.following._policies, "_wake", woken.append)
        fleet.source.add(kinds.NETWORK_POLICIES, policy())
        await asyncio.sleep(2)
        assert woken == []
        fleet.add_pod("bound")
        await asyncio.sleep(2)
        fleet.source.change(
            *(kinds.NETWORK_POLICIES, "deny", "ns"), lambda obj: obj["spec"].update(egress=[])
        )
        await asyncio.sleep(2)

    assert [(key.node, key.ref.name) for key in woken] == [(fleet.link.node_name, "deny")]


@pytest.mark.looptime
async def test_a_pod_that_a_policy_selects_does_not_go_where_it_may_not_follow(
    clock: Clock,
) -> None:
    fleet = FollowingFleet(clock)
    denied = Denied(403, "Forbidden", "networkpolicies is forbidden")
    fault = fleet.gpu.fail(denied, kind=kinds.NETWORK_POLICIES, times=None)
    fleet.source.add(kinds.NETWORK_POLICIES, web_policy())
    async with fleet.running():
        pod = fleet.add_pod(node=None)
        with pytest.raises(ConfigError, match="vnode-source-network-policies") as raised:
            await fleet.following.ensure(pod, fleet.link)

        assert "vnode.dev/network-policies=ignore" in str(raised.value)
        other = fleet.source.add(
            kinds.PODS, {"metadata": {"name": "other", "namespace": "ns"}, "spec": {}}
        )
        assert await fleet.following.ensure(other, fleet.link) == ("", ())
        fault.times = 0
        await asyncio.sleep(60)  # its informer has asked again
        await fleet.following.ensure(pod, fleet.link)
        assert fleet.gpu.find(kinds.NETWORK_POLICIES, "web", "ns") is not None


@pytest.mark.looptime
async def test_a_target_that_ignores_policies_has_the_pod_say_so(clock: Clock) -> None:
    fleet = FollowingFleet(clock)
    fleet.link.options = TargetOptions(network_policies=False)
    fleet.source.add(kinds.NETWORK_POLICIES, policy())
    async with fleet.running():
        pod = fleet.add_pod(node=None)
        message, _tokens = await fleet.following.ensure(pod, fleet.link)
        assert message == (
            "networkpolicy/deny of this cluster selects this pod and is not enforced in target "
            "gpu, as its annotation vnode.dev/network-policies says"
        )
        await asyncio.sleep(2)
        assert ("web", message) in fleet.events_about
        assert fleet.gpu.all(kinds.NETWORK_POLICIES) == []


@pytest.mark.looptime
async def test_a_policy_of_the_target_of_the_same_name_keeps_the_pod_away(clock: Clock) -> None:
    fleet = FollowingFleet(clock)
    theirs: Object = {**policy("deny"), "spec": {"podSelector": {"matchLabels": {"app": "theirs"}}}}
    theirs["metadata"]["uid"] = "theirs"
    fleet.gpu.add(kinds.NETWORK_POLICIES, theirs)
    fleet.source.add(kinds.NETWORK_POLICIES, policy())
    async with fleet.running():
        pod = fleet.add_pod(node=None)
        with pytest.raises(ConfigError, match="not from this cluster and differs"):
            await fleet.following.ensure(pod, fleet.link)

        found = fleet.gpu.find(kinds.NETWORK_POLICIES, "deny", "ns") or {}
        assert found["spec"] == theirs["spec"]


@pytest.mark.looptime
async def test_labels_that_a_pod_keeps_take_a_policy_that_keeps_them(clock: Clock) -> None:
    fleet = FollowingFleet(clock)
    fleet.source.add(kinds.NETWORK_POLICIES, web_policy())
    async with fleet.running():
        pod = fleet.add_pod(node=None)
        keeping = {keys.NO_PREFIX_LABEL_REGEXP: "^app="}
        pod = {**pod, "metadata": {**pod["metadata"], "annotations": keeping}}
        with pytest.raises(ConfigError, match="would not select it in target gpu"):
            await fleet.following.ensure(pod, fleet.link)

        fleet.source.change(
            *(kinds.NETWORK_POLICIES, "web", "ns"),
            lambda obj: obj["metadata"].update(annotations=keeping),
        )
        await asyncio.sleep(1)
        await fleet.following.ensure(pod, fleet.link)
        copy = fleet.gpu.find(kinds.NETWORK_POLICIES, "web", "ns") or {}
        assert copy["spec"]["podSelector"] == {"matchLabels": {"app": "web", **MINE}}


@pytest.mark.looptime
async def test_while_policies_are_not_known_no_pod_goes(clock: Clock) -> None:
    fleet = FollowingFleet(clock)
    denied = Denied(403, "Forbidden", "networkpolicies is forbidden")
    fleet.source.fail(denied, kind=kinds.NETWORK_POLICIES, times=None)
    async with fleet.running():
        pod = fleet.add_pod(node=None)
        with pytest.raises(ConfigError, match="NetworkPolicies of this cluster are not known"):
            await fleet.following.ensure(pod, fleet.link)

    off = FollowingFleet(clock, follows=FollowingConfig(network_policies=False))
    async with off.running():
        pod = off.add_pod(node=None)
        assert await off.following.ensure(pod, off.link) == ("", ())
        assert off.source.count("list", kinds.NETWORK_POLICIES) == 0


@pytest.mark.looptime
async def test_a_successor_removes_what_nobody_needs_any_more(clock: Clock) -> None:
    fleet = FollowingFleet(clock)
    fleet.source.add(kinds.NETWORK_POLICIES, policy())
    async with fleet.running():
        fleet.add_pod()
        await asyncio.sleep(2)
        assert objects.name(fleet.gpu.all(kinds.NETWORK_POLICIES)[0]) == "deny"

    fleet.remove_pod()
    async with fleet.successor(clock).running():
        await asyncio.sleep(30)
        assert fleet.gpu.all(kinds.NETWORK_POLICIES) == []


LARGE: Object = {"matchExpressions": [{"key": f"k{n}", "operator": "Exists"} for n in range(101)]}
BLOCKS: Object = {"to": [{"ipBlock": {"cidr": f"10.0.{n % 256}.0/24"}} for n in range(3_400)]}
PEERS: Object = {"from": [{"podSelector": {"matchLabels": {"app": f"{n}"}}} for n in range(400)]}


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"podSelector": LARGE}, "spec.podSelector has 101 terms: use 100 at most"),
        ({"podSelector": {}, "egress": [BLOCKS]}, "spec has over 10000 fields and entries"),
        ({"podSelector": {}, "ingress": [PEERS]}, "of peers, podSelector has over 1000 values"),
    ],
)
async def test_a_policy_that_is_too_large_has_its_pods_wait_and_say_so(
    clock: Clock, spec: Object, message: str
) -> None:
    fleet = FollowingFleet(clock)
    fleet.source.add(kinds.NETWORK_POLICIES, policy("large", **spec))
    async with fleet.running():
        with pytest.raises(ConfigError, match=message) as raised:
            await fleet.following.ensure(fleet.add_pod(node=None), fleet.link)

        assert "networkpolicy/large" in str(raised.value)
        await asyncio.sleep(2)
        assert any(message in text for name, text in fleet.events_about if name == "web")
        assert fleet.gpu.all(kinds.NETWORK_POLICIES) == []


@pytest.mark.looptime
async def test_a_copy_stays_when_its_policy_becomes_too_large(clock: Clock) -> None:
    fleet = FollowingFleet(clock)
    fleet.source.add(kinds.NETWORK_POLICIES, web_policy())
    async with fleet.running():
        fleet.add_pod()
        await asyncio.sleep(2)
        before = fleet.gpu.find(kinds.NETWORK_POLICIES, "web", "ns")
        assert before is not None
        fleet.source.change(
            *(kinds.NETWORK_POLICIES, "web", "ns"), lambda obj: obj["spec"].update(egress=[BLOCKS])
        )
        await asyncio.sleep(60)
        assert fleet.gpu.find(kinds.NETWORK_POLICIES, "web", "ns") == before


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("count", "spec", "message"),
    [
        (201, DENY, "more than 200 NetworkPolicies that select this pod"),
        (1_001, {"podSelector": {"matchLabels": {"app": "x"}}}, "more than 1000 NetworkPolicies"),
        (
            51,
            {"podSelector": {**LARGE, "matchExpressions": LARGE["matchExpressions"][:99]}},
            "5000",
        ),
    ],
)
async def test_pods_of_a_namespace_with_too_many_policies_wait_and_others_do_not(
    clock: Clock, count: int, spec: Object, message: str
) -> None:
    fleet = FollowingFleet(clock)
    for number in range(count):
        fleet.source.add(kinds.NETWORK_POLICIES, policy(f"p{number}", **spec))

    async with fleet.running():
        pod = fleet.add_pod(node=None)
        with pytest.raises(ConfigError, match=message):
            await fleet.following.ensure(pod, fleet.link)

        for number in range(1, count):
            fleet.source.remove(kinds.NETWORK_POLICIES, f"p{number}", "ns")

        await asyncio.sleep(1)
        await fleet.following.ensure(pod, fleet.link)


@pytest.mark.looptime
async def test_a_copy_is_made_once_for_each_version(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Object] = []
    build = policy_copies.policy

    def counted(original: Object, *of: Any) -> Object:
        made.append(original)
        return build(original, *of)

    monkeypatch.setattr(policy_copies, "policy", counted)
    fleet = FollowingFleet(clock)
    fleet.source.add(kinds.NETWORK_POLICIES, web_policy())
    async with fleet.running():
        for number in range(20):
            fleet.add_pod(f"web-{number}")
            await asyncio.sleep(1)
            fleet.remove_pod(f"web-{number}")

        assert len(made) == 1
        for number in range(60):
            fleet.source.change(
                *(kinds.NETWORK_POLICIES, "web", "ns"),
                lambda obj, number=number: obj["spec"].update(policyTypes=[f"{number}"]),
            )
            fleet.add_pod(f"web-{number}")
            await asyncio.sleep(0.1)
            fleet.remove_pod(f"web-{number}")

        assert len(made) <= 12  # five at once, and then one in two seconds
