"""The requests by which a proxy pod is bound: its finalizer first, and the binding at most once."""

from __future__ import annotations

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.unit.pods.bound_pods import SPACE, new_pod
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.clock import Clock
from vnode.api.errors import Conflict, Invalid, ServerError
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.pods.source import binding
from vnode.runtime.target_options import TargetOptions

pytestmark = pytest.mark.looptime

FINALIZER = keys.PREFIX + "shop-gpu"
OTHERS = "example.com/kept"


@pytest.fixture
async def server(clock: Clock) -> APIServer:
    server = APIServer("c1", clock)
    server.add(kinds.PODS, new_pod(metadata={"finalizers": [OTHERS]}))
    return server


def pod(server: APIServer) -> objects.Object:
    return server.find(kinds.PODS, "web", SPACE) or {}


# --- its finalizer


async def test_a_finalizer_that_a_pod_lacks_is_added_to_the_others(server: APIServer) -> None:
    assert await binding.hold(server.client(), pod(server), FINALIZER)
    assert objects.finalizers(pod(server)) == [OTHERS, FINALIZER]
    assert objects.labels(pod(server))[keys.HAS_FINALIZER] == "true"


async def test_a_finalizer_that_a_pod_has_costs_no_request(server: APIServer) -> None:
    assert await binding.hold(server.client(), pod(server), OTHERS)
    assert server.requests == []


async def test_a_finalizer_that_went_meanwhile_is_not_written_back(server: APIServer) -> None:
    before = pod(server)
    server.change(kinds.PODS, "web", SPACE, lambda obj: obj["metadata"].update(finalizers=[]))
    with pytest.raises(Conflict):
        await binding.hold(server.client(), before, FINALIZER)

    assert objects.finalizers(pod(server)) == []


async def test_a_pod_that_is_gone_cannot_be_held(server: APIServer) -> None:
    before = pod(server)
    server.remove(kinds.PODS, "web", SPACE)
    assert not await binding.hold(server.client(), before, FINALIZER)


# --- its binding


async def test_a_pod_is_bound_to_the_node(server: APIServer) -> None:
    assert await binding.create_binding(server.client(), pod(server), "gpu")
    assert objects.spec(pod(server))["nodeName"] == "gpu"


async def test_a_binding_says_where_candidates_stay(server: APIServer) -> None:
    expected = {keys.PLACEHOLDERS: "a,b"}
    assert await binding.create_binding(server.client(), pod(server), "gpu", expected)
    assert placeholders.of(pod(server)) == ("a", "b")


async def test_a_pod_gets_zone_and_region_of_its_target_with_the_binding(
    server: APIServer, clock: Clock
) -> None:
    identity, target = Identity("c1", "us"), TargetKey(SPACE, "t")
    link = links.link_to(APIServer("t", clock), target, identity, clock)
    zone, region = ("topology.kubernetes.io/" + name for name in ("zone", "region"))
    labels = {zone: "z", region: "r", "topology.kubernetes.io/other": "x", "disk": "ssd"}
    summary = {"metadata": {"name": keys.SUMMARY_NAME, "labels": labels}}
    link.summaries.store.put(summary)
    assert binding.places_of(link) == {zone: "z", region: "r"}
    spoilt = {"metadata": {**summary["metadata"], "labels": {zone: "no label", region: "r"}}}
    link.summaries.store.put(spoilt)
    assert binding.places_of(link) == {region: "r"}
    link.summaries.store.put(summary)
    link.labels_excluded = lambda text: text == f"{zone}=z"
    places = binding.places_of(link)
    assert await binding.create_binding(server.client(), pod(server), "gpu", labels=places)
    assert objects.labels(pod(server))[region] == "r"


async def test_a_target_chooses_no_place_that_its_target_does_not_let_it_choose(
    clock: Clock,
) -> None:
    zone, region = ("topology.kubernetes.io/" + name for name in ("zone", "region"))
    identity, target = Identity("c1", "us"), TargetKey(SPACE, "t")
    link = links.link_to(APIServer("t", clock), target, identity, clock)
    link.summaries.store.put({"metadata": {"name": keys.SUMMARY_NAME, "labels": {zone: "z"}}})
    for domains, places in (
        ({"nvidia.com"}, {}),
        ({region}, {}),
        ({zone}, {zone: "z"}),
        ({"nvidia.com", "topology.kubernetes.io"}, {zone: "z"}),
    ):
        link.options = TargetOptions(label_domains=frozenset(domains))
        assert binding.places_of(link) == places


async def test_a_reason_is_on_the_pod_with_the_binding_itself(server: APIServer) -> None:
    before = pod(server)
    assert await binding.create_binding(
        server.client(), before, "gpu", {keys.PLACED: "planned here: 1 of 1"}
    )
    assert objects.annotations(pod(server))[keys.PLACED] == "planned here: 1 of 1"
    assert [each.verb for each in server.requests] == ["create"]


async def test_a_pod_that_is_bound_stays_where_it_is(server: APIServer) -> None:
    before = pod(server)
    assert await binding.create_binding(server.client(), before, "gpu")
    assert not await binding.create_binding(server.client(), before, "other")
    assert objects.spec(pod(server))["nodeName"] == "gpu"


async def test_a_pod_that_ends_is_not_bound(server: APIServer) -> None:
    before = pod(server)
    await server.client().delete(kinds.PODS, "web", SPACE)
    assert not await binding.create_binding(server.client(), before, "gpu")
    server.remove(kinds.PODS, "web", SPACE)
    assert not await binding.create_binding(server.client(), before, "gpu")


async def test_a_namesake_is_not_bound_in_the_place_of_a_pod(server: APIServer) -> None:
    before = pod(server)
    server.remove(kinds.PODS, "web", SPACE)
    server.add(kinds.PODS, new_pod(metadata={"uid": "another"}))
    assert not await binding.create_binding(server.client(), before, "gpu")
    assert "nodeName" not in objects.spec(pod(server))


@pytest.mark.parametrize("error", [ServerError(500, "", "no leader"), Invalid(422, "", "no node")])
async def test_any_other_failure_is_for_the_scheduler_to_tell(
    server: APIServer, error: ServerError | Invalid
) -> None:
    server.fail(error, subresource="binding")
    with pytest.raises(type(error)):
        await binding.create_binding(server.client(), pod(server), "gpu")
