"""What the candidate scheduler is answered when it asks to have a delegate bound."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, Unreachable
from vnode.pods import delegate
from vnode.pods.reservations import TIMEOUT, Reservations
from vnode.pods.target import extender
from vnode.pods.target.extender import BindRequest, Extender

ALLOWED = {keys.IS_ALLOWED: "true"}


class Posted:
    """A request as far as it is read."""

    def __init__(self, payload):
        self._payload = payload

    async def read(self):
        return self._payload


class Asked:
    """The extender of an agent, and the scheduler that calls it."""

    def __init__(self, clock):
        self.cluster = TargetCluster(clock)
        agent = self.cluster.server.client("agent")
        reservations = Reservations(agent, self.cluster.chaperons)
        self.extender = Extender(
            agent, reservations, self.cluster.delegates, lambda _certificate: True, clock
        )

    def candidate(self, **metadata):
        """Store a chaperon and its delegate, which has no node yet; return the delegate."""
        pod = delegate.build(self.cluster.send(**metadata))
        return self.cluster.server.add(kinds.PODS, pod)

    async def post(self, payload):
        """Post a payload to the extender; return the status and the body of the answer."""
        response = await self.extender.handle(cast("web.Request", Posted(payload)))
        assert isinstance(response.text, str)
        return response.status, json.loads(response.text)

    async def bind(self, pod, node="n1"):
        """Ask to have a pod bound; return the `error` of the answer, None if the pod is bound."""
        status, answer = await self.post(arguments(pod, node))
        assert status == 200  # kube-scheduler takes any other for a failure of the extender
        return answer.get("error")

    @property
    def node(self):
        return objects.spec(self.cluster.pod()).get("nodeName")


def arguments(pod, node="n1"):
    """Encode ExtenderBindingArgs for a pod and a node, as Go writes them."""
    return json.dumps(
        {
            "PodName": objects.name(pod),
            "PodNamespace": objects.namespace(pod),
            "PodUID": objects.uid(pod),
            "Node": node,
        }
    ).encode()


@pytest.fixture
async def asked(clock):
    return Asked(clock)


@pytest.mark.looptime
async def test_a_candidate_is_bound_once_it_is_allowed(asked):
    pod = asked.candidate()
    async with asked.cluster.informed():
        answer = asyncio.create_task(asked.bind(pod))
        await asyncio.sleep(SETTLED)
        assert asked.node is None
        assert asked.cluster.noted(keys.IS_RESERVED) == "true"
        asked.cluster.annotate(is_allowed="true")
        assert await asyncio.wait_for(answer, 0.1) is None
        assert asked.node == "n1"


@pytest.mark.looptime
async def test_a_candidate_that_nobody_allows_is_not_bound(asked):
    pod = asked.candidate()
    async with asked.cluster.informed():
        answer = await asyncio.wait_for(asked.bind(pod), TIMEOUT + 1)
        assert answer == "the source did not allow shop/web within 30 s"
        assert asked.node is None


@pytest.mark.looptime
async def test_a_candidate_that_its_source_deletes_is_not_bound(asked):
    pod = asked.candidate()
    async with asked.cluster.informed():
        answer = asyncio.create_task(asked.bind(pod))
        await asyncio.sleep(SETTLED)
        await asked.cluster.end()
        assert await asyncio.wait_for(answer, 0.1) == "the PodChaperon of shop/web is gone"
        assert asked.cluster.server.find(kinds.PODS, "web", NAMESPACE) is None  # not tried again


@pytest.mark.looptime
async def test_a_candidate_that_this_replica_has_not_seen_yet_is_not_deleted(asked):
    async with asked.cluster.informed():
        await asyncio.sleep(SETTLED)
        asked.cluster.server.silence_watches(kinds.POD_CHAPERONS)
        pod = asked.candidate()
        assert await asked.bind(pod) == "the PodChaperon of shop/web is gone"
        assert asked.cluster.server.find(kinds.PODS, "web", NAMESPACE) is not None


@pytest.mark.looptime
async def test_a_pod_of_somebody_else_is_not_bound(asked):
    metadata = {"name": "theirs", "namespace": NAMESPACE}
    pod = asked.cluster.server.add(kinds.PODS, {"metadata": metadata, "spec": {}})
    async with asked.cluster.informed():
        assert "is not a candidate of this cluster" in await asked.bind(pod)
        assert asked.cluster.asked == []


@pytest.mark.looptime
async def test_a_pod_that_is_too_new_for_the_informer_is_bound(asked):
    async with asked.cluster.informed():
        await asyncio.sleep(SETTLED)
        asked.cluster.server.silence_watches(kinds.PODS)
        pod = asked.candidate(annotations=ALLOWED)
        await asyncio.sleep(SETTLED)
        assert await asked.bind(pod) is None
        assert asked.node == "n1"


@pytest.mark.looptime
async def test_a_pod_that_the_informer_has_is_not_fetched(asked):
    pod = asked.candidate(annotations=ALLOWED)
    async with asked.cluster.informed():
        await asked.bind(pod)
        assert asked.cluster.server.count("get", kinds.PODS) == 0


@pytest.mark.looptime
async def test_a_pod_that_is_gone_is_not_bound(asked):
    pod = asked.candidate(annotations=ALLOWED)
    asked.cluster.stop()
    async with asked.cluster.informed():
        assert await asked.bind(pod) == '404 NotFound: pods "web" not found'


@pytest.mark.looptime
async def test_another_pod_of_the_name_is_not_bound(asked):
    pod = asked.candidate(annotations=ALLOWED)
    async with asked.cluster.informed():
        earlier = {**pod, "metadata": {**pod["metadata"], "uid": "earlier"}}
        assert await asked.bind(earlier) == "shop/web was deleted, and another pod has its name"
        assert asked.node is None


@pytest.mark.looptime
async def test_a_pod_that_was_replaced_meanwhile_is_not_bound(asked):
    """The binding names the pod's UID, for what the informer does not know yet."""
    pod = asked.candidate(annotations=ALLOWED)
    async with asked.cluster.informed():
        await asyncio.sleep(SETTLED)
        asked.cluster.server.silence_watches(kinds.PODS)
        asked.cluster.stop()
        other = {**pod, "metadata": {**pod["metadata"], "uid": "later"}}
        asked.cluster.server.add(kinds.PODS, other)
        assert "409" in await asked.bind(pod)
        assert asked.node is None


@pytest.mark.looptime
@pytest.mark.parametrize(
    "error", [Conflict(409, "Conflict", "is already assigned"), Unreachable("timed out")]
)
async def test_an_error_of_the_binding_is_told(asked, error):
    pod = asked.candidate(annotations=ALLOWED)
    asked.cluster.server.fail(error, verb="create", subresource="binding")
    async with asked.cluster.informed():
        assert await asked.bind(pod) == str(error)


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"\xff", b"{", b"[]", b"null", b"{}"),
        b'{"podName":"a","podNamespace":"b","node":"c"}',
        b'{"podName":"..","podNamespace":"b","podUID":"u","node":"c"}',
        b'{"podName":"a","podNamespace":{},"podUID":"u","node":"c"}',
    ],
)
async def test_what_is_no_request_is_a_bad_request(asked, payload):
    assert await asked.post(payload) == (400, {"error": "not an ExtenderBindingArgs"})
    assert asked.cluster.asked == []


@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
def test_keys_are_read_in_any_case(spell):
    fields = {"podNamespace": "shop", "podName": "web", "podUID": "u", "node": "n1"}
    payload = json.dumps({spell(key): value for key, value in fields.items()}).encode()
    assert extender.parse(payload) == BindRequest("shop", "web", "u", "n1")


async def test_nobody_binds_without_the_certificate_of_the_scheduler(asked):
    async with TestClient(TestServer(asked.extender.app())) as client:
        response = await client.post("/bind", data=arguments(asked.candidate(annotations=ALLOWED)))
        assert response.status == 403
        assert asked.cluster.asked == []
