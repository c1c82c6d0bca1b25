"""Policies follow decisions, whose kinds may come and go, and nothing is watched for nobody."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests import decisions
from tests.apiserver.server import APIServer
from tests.decisions import OCM, SIG, of_placement, of_profiles
from tests.unit.placement.environment import SETTLED, PlacementEnvironment, node_of
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, ServerError
from vnode.api.objects import Object
from vnode.placement.decisions.followed import FollowedDecisions
from vnode.planning.cluster_decision import DecisionKind, DecisionReference
from vnode.planning.policy import Policy
from vnode.runtime.supervisor import supervise

pytestmark = pytest.mark.looptime

POD: Object = {"metadata": {"name": "p", "namespace": "default", "labels": {"app": "web"}}}
WEB = {"matchLabels": {"app": "web"}}


class Fleet(PlacementEnvironment):
    """Targets a, b and c, of which a and b name profiles of the namespace fleet."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, "c")
        for name in "ab":
            labels = {keys.OCM_CLUSTER_NAME: f"{name}-of-ocm"}
            profile = {"namespace": "fleet", "name": f"p-{name}"}
            self.add_target(name, labels=labels, clusterProfile=profile)

    def follow(self, kind: Any, **more: Any) -> None:
        self.add_policy(
            selector=WEB, clusters={"decisionRef": decisions.reference(kind, "web")}, **more
        )

    def decide(self, obj: Object) -> None:
        kind = SIG if "decisions" in obj else OCM
        name = objects.name(obj)
        if self.server.find(kind, name, "default"):
            self.server.change(kind, name, "default", lambda found: found.update(_content(obj)))
        else:
            self.server.add(kind, obj)

    def policy(self) -> Policy:
        found = self.policies.of(POD)
        assert found is not None, "no policy is in force"
        return found

    def clusters(self) -> list[str]:
        """Return the clusters that the policy has, by name."""
        nodes = [_Node(node) for node in self.server.all(kinds.NODES)]
        found = {share.node for share in self.policy().shares(nodes)}
        return [name for name in "abc" if node_of(name) in found]

    def decided(self) -> tuple[str, str, str]:
        return self.accepted(type_="Decided")


class _Node:
    def __init__(self, node: Object) -> None:
        self.name, self.labels = objects.name(node), objects.labels(node)


def _content(obj: Object) -> Object:
    return {field: value for field, value in obj.items() if field != "metadata"}


async def settled() -> None:
    await asyncio.sleep(SETTLED)


async def test_without_a_policy_that_names_one_nothing_is_watched(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.server.add(kinds.CRDS, decisions.established(SIG))
    fleet.add_policy(selector=WEB)
    async with fleet.running():
        assert fleet.server.count("list", kinds.CRDS) == 0
        assert fleet.server.count("list", SIG) == 0


async def test_slices_name_the_profiles_of_targets(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.server.add(kinds.CRDS, decisions.established(SIG))
    fleet.decide(of_profiles("web", "fleet/p-b", index=0))
    fleet.decide(of_profiles("web", "fleet/p-a", "fleet/gone", index=1))
    fleet.follow(SIG)
    async with fleet.running():
        assert fleet.clusters() == ["a", "b"]
        status, reason, message = fleet.decided()
        assert (status, reason) == ("False", "UnknownClusters")
        assert "without a virtual node: fleet/gone;" in message
        fleet.add_target("d", clusterProfile={"namespace": "fleet", "name": "gone"})
        await settled()
        assert fleet.decided() == (
            *("True", "Decided"),
            "placementdecision/default/web selects fleet/p-b, fleet/p-a, fleet/gone",
        )
        fleet.server.remove(SIG, "web-1", "default")
        await settled()
        assert fleet.clusters() == ["b"]


async def test_placements_name_clusters_by_label_or_target(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.server.add(kinds.CRDS, decisions.established(OCM))
    fleet.decide(of_placement("web", "a-of-ocm", "b", "c"))
    fleet.follow(OCM)
    async with fleet.running():
        assert fleet.clusters() == ["a", "c"], "b has another name there"
        heard = list[list[str]]()
        fleet.policies.subscribe(lambda _: heard.append(fleet.clusters()))
        fleet.decide(of_placement("web", "b-of-ocm"))
        await settled()
        assert heard == [["b"]]
        fleet.decide(of_placement("web"))
        await settled()
        assert heard == [["b"], []]
        assert fleet.decided()[1:] == (
            "NoClusters",
            "pods of the policy stay pending: placement/default/web selects no clusters",
        )


async def test_a_kind_and_a_decision_may_come_later_and_go(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.follow(SIG)
    async with fleet.running():
        assert fleet.clusters() == []
        assert fleet.decided()[1] == "DecisionsNotServed"
        assert fleet.server.count("list", SIG) == 0
        fleet.server.add(kinds.CRDS, decisions.established(SIG))
        await settled()
        status, reason, message = fleet.decided()
        assert (status, reason) == ("False", "DecisionNotFound")
        assert "kubectl get placementdecisions.multicluster.x-k8s.io" in message
        fleet.decide(of_profiles("web", "fleet/p-a"))
        await settled()
        assert fleet.clusters() == ["a"]
        fleet.server.remove(kinds.CRDS, SIG.resource)
        await settled()
        assert fleet.clusters() == []
        assert fleet.decided()[1] == "DecisionsNotServed"
        fleet.server.add(kinds.CRDS, decisions.established(SIG))
        await settled()
        assert fleet.clusters() == ["a"]


async def test_without_the_right_to_read_them_the_condition_names_the_role(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.server.add(kinds.CRDS, decisions.established(OCM))
    fleet.decide(of_placement("web", "c"))
    fleet.follow(OCM)
    fault = fleet.server.fail(Denied(403, "Forbidden", "no"), verb="list", kind=OCM, times=None)
    async with fleet.running():
        status, reason, message = fleet.decided()
        assert (status, reason) == ("False", "DecisionUnreadable")
        assert "bind ClusterRole vnode-decisions to the agent" in message
        fault.clear()
        await settled()
        assert fleet.clusters() == ["c"]


async def test_a_policy_that_follows_none_any_more_has_all_its_clusters(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.server.add(kinds.CRDS, decisions.established(OCM))
    fleet.decide(of_placement("web", "c"))
    fleet.follow(OCM)
    async with fleet.running():
        assert fleet.clusters() == ["c"]
        assert fleet.decided()[0] == "True"
        fleet.server.change(
            kinds.PLACEMENT_POLICIES, "web", "default", lambda obj: obj["spec"].pop("clusters")
        )
        await settled()
        assert fleet.clusters() == ["a", "b", "c"]
        assert [c["type"] for c in fleet.status()["conditions"]] == ["Accepted", "Ready"]
        reads = fleet.server.count("list", OCM)
        fleet.decide(of_placement("web", "a"))
        await settled()
        assert fleet.server.count("list", OCM) == reads


async def test_the_condition_survives_a_restart_without_a_write(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.server.add(kinds.CRDS, decisions.established(OCM))
    fleet.decide(of_placement("web", "c"))
    fleet.follow(OCM)
    async with fleet.running():
        writes = fleet.server.count("patch", kinds.PLACEMENT_POLICIES, "status")
        assert writes >= 1

    async with fleet.running():
        assert fleet.server.count("patch", kinds.PLACEMENT_POLICIES, "status") == writes


async def test_nothing_waits_for_a_server_that_fails_over_decisions(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.server.add(kinds.CRDS, decisions.established(OCM))
    fleet.decide(of_placement("web", "c"))
    fleet.follow(OCM)
    fleet.add_policy("other", selector={"matchLabels": {"app": "other"}})
    broken = ServerError(500, "InternalError", "conversion webhook")
    fault = fleet.server.fail(broken, verb="list", kind=OCM, times=None)
    async with fleet.running():
        assert len(fleet.policies.in_force()) == 2, "others are known all the same"
        assert fleet.clusters() == []
        fault.clear()
        await settled()
        assert fleet.clusters() == ["c"]


async def test_only_policies_that_follow_a_decision_hear_of_it(clock: Clock) -> None:
    fleet = Fleet(clock)
    fleet.server.add(kinds.CRDS, decisions.established(OCM))
    fleet.follow(OCM)
    async with fleet.running():
        before = fleet.policies.verdict("default/web")
        fleet.decide(of_placement("other", "c"))
        await settled()
        assert fleet.policies.verdict("default/web") is before


async def test_a_policy_costs_the_same_however_many_follow_decisions(clock: Clock) -> None:
    kind = DecisionKind.PLACEMENT_DECISION
    followed = FollowedDecisions(APIServer("c1", clock).client(), lambda _concerns: None)
    async with supervise() as tasks:
        followed.start(tasks.keyed(clock=clock))
        begun = time.thread_time()
        for number in range(3_000):
            name = f"d{number}"
            followed.use(name, DecisionReference(kind, f"ns{number % 300}", name))

        assert time.thread_time() - begun < 0.5  # 1.3 s, with a look at all of them each time
