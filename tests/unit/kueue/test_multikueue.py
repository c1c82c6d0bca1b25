"""MultiKueue's clusters are Targets that the configuration names, in order; they go with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import background
from tests.apiserver.server import APIServer
from tests.unit.kueue.environment import crd
from vnode.agent.multikueue import WantedClusters
from vnode.api import keys, kinds, names, objects
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.kueue.config import FollowedDecisionRef, KueueConfig, MultiKueueEntry
from vnode.kueue.multikueue import REORDERED, MultiKueueSetup
from vnode.targets.target_lister import TargetLister

pytestmark = pytest.mark.looptime

CONFIGS, CLUSTERS = kinds.MULTIKUEUE_CONFIGS, kinds.MULTIKUEUE_CLUSTERS
DECISIONS = kinds.OCM_PLACEMENT_DECISIONS
NAMED = MultiKueueEntry("named", targets=("paris", "team/gpu", "nowhere", "berlin"))
TEAM_GPU = "team-gpu-a6ddc1763e"
OF_SET = MultiKueueEntry("of-set", target_set="clouds", access="ClusterProfile")
DECIDED = MultiKueueEntry("decided", decision_ref=FollowedDecisionRef("Placement", "fleet", "jobs"))


class MultiKueueHub:
    """A source that serves Kueue's kinds, with Targets and their virtual nodes."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.server = APIServer("hub", clock)
        for namespace in ("team", "fleet"):
            self.server.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})

        for kind in (CONFIGS, CLUSTERS, DECISIONS, kinds.PLACEMENT_DECISIONS):
            self.server.add(kinds.CRDS, crd(kind))

        for name in ("berlin", "paris"):
            self.add(name)

        self.add("gpu", "team")

    def add(self, name: str, namespace: str = "", *, of: str = "") -> None:
        """Add a Target, of that set, and its virtual node."""
        metadata: Object = {"name": name, "labels": {keys.TARGET_SET: of} if of else {}}
        if namespace:
            metadata["namespace"] = namespace

        profile = {"clusterProfile": {"namespace": "fleet", "name": f"profile-{name}"}}
        self.server.add(self._kind(namespace), {"metadata": metadata, "spec": profile})
        labels = {keys.TARGET_NAME if namespace else keys.CLUSTER_TARGET_NAME: name}
        node = names.virtual_node(namespace, name)
        self.server.add(kinds.NODES, {"metadata": {"name": node, "labels": labels}})

    def remove(self, name: str, namespace: str = "") -> None:
        self.server.remove(self._kind(namespace), name, namespace)

    @staticmethod
    def _kind(namespace: str) -> Kind:
        return kinds.TARGETS if namespace else kinds.CLUSTER_TARGETS

    def decide(self, *clusters: str) -> None:
        """Have Open Cluster Management decide for these, best first."""
        status = {"decisions": [{"clusterName": name, "reason": ""} for name in clusters]}
        name, labels = "jobs-decision-1", {keys.OCM_PLACEMENT: "jobs"}
        if self.server.find(DECISIONS, name, "fleet") is None:
            metadata = {"name": name, "namespace": "fleet", "labels": labels}
            self.server.add(DECISIONS, {"metadata": metadata, "status": status})
        else:
            self.server.change(DECISIONS, name, "fleet", lambda obj: obj.update(status=status))

    def decide_profiles(self, *profiles: str) -> None:
        """Have somebody decide for these ClusterProfiles, best first."""
        decisions = [{"clusterProfileRef": {"namespace": "fleet", "name": n}} for n in profiles]
        metadata = {"name": "jobs", "namespace": "fleet"}
        self.server.add(kinds.PLACEMENT_DECISIONS, {"metadata": metadata, "decisions": decisions})

    def config(self, name: str) -> list[str] | None:
        """Return the clusters of a config, None if it does not exist."""
        found = self.server.find(CONFIGS, name)
        return None if found is None else objects.spec(found)["clusters"]

    def clusters(self) -> set[str]:
        return set(map(objects.name, self.server.all(CLUSTERS)))

    @asynccontextmanager
    async def keeping(self, *entries: MultiKueueEntry) -> AsyncIterator[None]:
        client = self.server.client()
        targets, nodes = TargetLister(client), Informer(client, kinds.NODES)
        wanted = WantedClusters(entries, client, targets, nodes)
        setup = MultiKueueSetup(client, wanted.by_config, wanted.subscribe, self.clock)
        async with background.running(targets.run(), nodes.run(), setup.run()):
            await asyncio.sleep(5)
            yield


@pytest.fixture
async def hub(clock: Any) -> MultiKueueHub:
    return MultiKueueHub(clock)


async def test_named_targets_are_clusters_in_their_order(hub: MultiKueueHub) -> None:
    async with hub.keeping(NAMED):
        assert hub.config("named") == ["paris", TEAM_GPU, "berlin"]
        assert hub.clusters() == {"paris", TEAM_GPU, "berlin"}
        cluster = hub.server.find(CLUSTERS, TEAM_GPU)
        assert cluster
        secret = {"location": TEAM_GPU, "locationType": "Secret"}
        assert objects.spec(cluster) == {"clusterSource": {"kubeConfig": secret}}
        written = hub.server.count("create") + hub.server.count("patch")
        hub.add("rome")
        await asyncio.sleep(5)
        assert hub.server.count("create") + hub.server.count("patch") == written


async def test_a_cluster_target_and_a_namespaces_target_of_its_name_are_two_clusters(
    hub: MultiKueueHub,
) -> None:
    hub.add("team-gpu")
    entry = MultiKueueEntry("named", targets=("team-gpu", "team/gpu"), access="ClusterProfile")
    async with hub.keeping(entry):
        assert hub.config("named") == ["team-gpu", TEAM_GPU]
        found = {objects.name(obj): objects.spec(obj) for obj in hub.server.all(CLUSTERS)}
        profiles = {name: spec["clusterSource"] for name, spec in found.items()}
        assert profiles == {
            "team-gpu": {"clusterProfileRef": {"name": "profile-team-gpu"}},
            TEAM_GPU: {"clusterProfileRef": {"name": "profile-gpu"}},
        }


async def test_a_cluster_of_a_name_without_a_hash_makes_way_for_the_new_one(
    hub: MultiKueueHub,
) -> None:
    made = {"name": "team-gpu", "labels": {keys.MULTIKUEUE: ""}}
    secret = {"location": "team-gpu", "locationType": "Secret"}
    hub.server.add(CLUSTERS, {"metadata": made, "spec": {"clusterSource": {"kubeConfig": secret}}})
    named = {"name": "named", "labels": {keys.MULTIKUEUE: ""}}
    hub.server.add(CONFIGS, {"metadata": named, "spec": {"clusters": ["team-gpu"]}})
    async with hub.keeping(NAMED):
        assert hub.config("named") == ["paris", TEAM_GPU, "berlin"]
        assert hub.clusters() == {"paris", TEAM_GPU, "berlin"}


async def test_a_target_that_goes_leaves_the_config_at_once_and_its_cluster_when_it_has_no_work(
    hub: MultiKueueHub,
) -> None:
    async with hub.keeping(NAMED):
        body = {"metadata": {"name": "job", "namespace": "team"}}
        hub.server.add(kinds.WORKLOADS, {**body, "status": {"clusterName": "paris"}})
        hub.remove("paris")
        hub.remove("gpu", "team")
        await asyncio.sleep(5)
        assert hub.config("named") == ["berlin"]
        assert hub.clusters() == {"berlin", "paris"}
        hub.server.remove(kinds.WORKLOADS, "job", "team")
        await asyncio.sleep(40)
        assert hub.clusters() == {"berlin"}
        hub.remove("berlin")
        await asyncio.sleep(5)
        assert hub.config("named") is None
        assert not hub.clusters()
        hub.add("berlin")
        await asyncio.sleep(5)
        assert hub.config("named") == ["berlin"]


async def test_targets_of_a_set_come_and_go_with_it_by_their_profiles(hub: MultiKueueHub) -> None:
    async with hub.keeping(OF_SET):
        assert hub.config("of-set") is None
        for name in ("two", "one"):
            hub.add(name, of="clouds")

        await asyncio.sleep(5)
        assert hub.config("of-set") == ["one", "two"]
        cluster = hub.server.find(CLUSTERS, "one")
        assert cluster
        profile = {"clusterProfileRef": {"name": "profile-one"}}
        assert objects.spec(cluster)["clusterSource"] == profile
        mark = {keys.PROFILE_GONE: "2026-01-01T00:00:00Z"}
        hub.server.change(
            kinds.CLUSTER_TARGETS, "one", "", lambda obj: obj["metadata"].update(annotations=mark)
        )
        await asyncio.sleep(5)
        assert hub.config("of-set") == ["two"]


async def test_a_decision_says_the_order_and_nothing_goes_while_it_cannot_be_read(
    hub: MultiKueueHub,
) -> None:
    async with hub.keeping(DECIDED):
        assert hub.config("decided") is None
        hub.decide("paris", "berlin")
        await asyncio.sleep(5)
        assert hub.config("decided") == ["paris", "berlin"]
        hub.decide("berlin", "paris")
        await asyncio.sleep(5)
        assert hub.config("decided") == ["paris", "berlin"]  # an order alone has to wait
        await asyncio.sleep(REORDERED)
        assert hub.config("decided") == ["berlin", "paris"]
        hub.server.remove(DECISIONS, "jobs-decision-1", "fleet")
        await asyncio.sleep(5)
        assert hub.config("decided") == ["berlin", "paris"]
        hub.decide("paris")
        await asyncio.sleep(5)
        assert hub.config("decided") == ["paris"]
        assert hub.clusters() == {"paris"}
        hub.decide()
        await asyncio.sleep(5)
        assert hub.config("decided") is None


@pytest.mark.parametrize("kind", ["Placement", "PlacementDecision"])
async def test_no_decision_is_for_a_target_of_a_namespace(hub: MultiKueueHub, kind: Any) -> None:
    """Whoever administers a namespace gives its Targets any name, and any profile there is."""
    hub.add("paris", "team")
    hub.add("paris", "fleet")
    hub.decide("paris")
    hub.decide_profiles("profile-paris")
    decided = MultiKueueEntry(
        "decided", decision_ref=FollowedDecisionRef(kind, "fleet", "jobs"), access="ClusterProfile"
    )
    async with hub.keeping(decided):
        assert hub.config("decided") == ["paris"]
        hub.remove("paris")
        await asyncio.sleep(5)
        assert hub.config("decided") is None


async def test_what_others_have_made_is_left_as_it_is(
    hub: MultiKueueHub, caplog: pytest.LogCaptureFixture
) -> None:
    spec = {"clusters": ["mine"]}
    hub.server.add(CONFIGS, {"metadata": {"name": "of-set"}, "spec": spec})
    mine = {"clusterSource": {"kubeConfig": {"location": "mine", "locationType": "Secret"}}}
    hub.server.add(CLUSTERS, {"metadata": {"name": "berlin"}, "spec": mine})
    hub.add("one", of="clouds")
    async with hub.keeping(NAMED, OF_SET):
        assert hub.config("of-set") == ["mine"]
        cluster = hub.server.find(CLUSTERS, "berlin")
        assert cluster
        assert objects.spec(cluster) == mine
        assert hub.clusters() == {"berlin", "paris", TEAM_GPU}

    assert "MultiKueueConfig of-set is not vnode's" in caplog.text


async def test_the_first_twenty_are_named_and_the_others_told(
    hub: MultiKueueHub, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(23):
        hub.add(f"t{number:02}", of="clouds")

    async with hub.keeping(OF_SET):
        assert hub.config("of-set") == [f"t{number:02}" for number in range(20)]
        assert len(hub.clusters()) == 20

    assert "left out: t20, t21, t22" in caplog.text


async def test_an_empty_list_removes_what_was_kept(hub: MultiKueueHub) -> None:
    async with hub.keeping(NAMED):
        assert hub.clusters()

    async with hub.keeping():
        assert hub.config("named") is None
        assert not hub.clusters()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (MultiKueueEntry("a"), "name either targets, or a targetSet, or a decisionRef"),
        (MultiKueueEntry("a", targets=("b",), target_set="c"), "name either targets"),
        (MultiKueueEntry("", targets=("b",)), "name has to be that of a MultiKueueConfig"),
        (MultiKueueEntry("a", targets=("b", "b")), "names one of them twice"),
        (
            MultiKueueEntry("a", decision_ref=FollowedDecisionRef("Placement", "", "b")),
            "needs the namespace and name",
        ),
    ],
)
def test_an_entry_that_says_too_little_or_too_much_is_refused(
    entry: MultiKueueEntry, text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        KueueConfig(multi_kueue=(entry,)).check()


def test_two_entries_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two entries have one name"):
        KueueConfig(multi_kueue=(NAMED, NAMED)).check()
