"""Whatever code a webhook denies a request with, and whichever request, the pod has its words."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import BoundPodsEnvironment
from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.target_side import TargetCluster
from tests.unit.pods.targets import Target
from vnode.api import errors, keys, kinds, objects
from vnode.api.errors import ApiError

pytestmark = pytest.mark.looptime

CODES = [
    *(400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417),
    *(418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 499),
    *(500, 501, 502, 503, 504, 505, 507, 508, 511, 599),
]
SOME_CODES = (404, 406, 409, 412, 429, 503)
REASONS = ("", "AlreadyExists", "Conflict", "Expired", "TooManyRequests", "InternalError")


def denial(code: int, reason: str = "") -> ApiError:
    message = f'admission webhook "deny.example.com" denied the request: policy says {code}'
    return errors.from_status(code, reason, message)


@pytest.mark.parametrize("code", CODES)
def test_a_denial_is_one_by_its_words_whatever_its_code_and_reason(code):
    for reason in REASONS:
        expected = errors.Denied if code == 403 else errors.Invalid
        assert type(denial(code, reason)) is expected
        words = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
        assert type(errors.from_status(code, reason, f'pods "x" is forbidden: {words}')) is expected


@pytest.mark.parametrize("code", CODES)
def test_every_code_of_400_and_more_has_a_kind_by_what_to_do_about_it(code):
    assert type(errors.from_status(code, "", "what it says")) is not ApiError


@pytest.mark.parametrize("code", SOME_CODES)
async def test_a_delegate_that_is_denied_is_told_to_the_source(clock, code):
    cluster = TargetCluster(clock)
    cluster.server.fail(denial(code), verb="create", kind=kinds.PODS, times=None)
    cluster.send()
    async with cluster.running():
        await cluster.until(lambda: f"policy says {code}" in (cluster.rejection or ""), 2)
        await asyncio.sleep(20)
        assert cluster.count("create", "pods") == 1


@pytest.mark.parametrize(("code", "seconds"), [(429, 3), (500, 1), (503, 1), (408, 1)])
async def test_a_server_that_is_in_trouble_is_told_once_it_stays_so(clock, code, seconds):
    cluster = TargetCluster(clock)
    trouble = errors.from_status(code, "", "please try again later")
    fault = cluster.server.fail(trouble, verb="create", kind=kinds.PODS, times=None)
    cluster.send()
    async with cluster.running():
        await cluster.until(lambda: cluster.rejection == "please try again later", seconds)
        fault.clear()
        await cluster.until(cluster.pod, 31)


@pytest.mark.parametrize("code", SOME_CODES)
async def test_a_chaperon_that_is_denied_is_told_on_the_pending_pod(clock, code):
    target = Target("c2", clock, cpu="1000")
    target.server.fail(denial(code), verb="create", kind=kinds.POD_CHAPERONS, times=None)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", f"policy says {code}")
        assert clock.monotonic() < 5


@pytest.mark.parametrize("code", SOME_CODES)
async def test_a_binding_that_is_denied_is_told_on_the_pending_pod(clock, code):
    target = Target("c2", clock, cpu="1000")
    source = SourceCluster(clock, target)
    source.server.fail(denial(code), verb="create", kind=kinds.PODS, times=None)
    async with source.running():
        source.add("p")
        await source.until_said("p", f"this cluster does not bind the pod: {denial(code).message}")
        assert clock.monotonic() < 5
        scheduled = objects.condition(source.pod("p"), "PodScheduled") or {}
        assert scheduled["status"] == "False"


REQUESTS = {
    "the chaperon of a pod that others bound": ("create", kinds.POD_CHAPERONS, "target"),
    "leave to run": ("patch", kinds.POD_CHAPERONS, "target"),
    "what the delegate reports": ("patch", kinds.PODS, "source"),
    "the end": ("delete", kinds.POD_CHAPERONS, "target"),
}


@pytest.mark.parametrize("code", [404, 409, 412, 429])
@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_for_a_bound_pod_that_is_denied_is_told_by_an_event(clock, name, code):
    env = BoundPodsEnvironment(clock)
    verb, kind, where = REQUESTS[name]
    server = env.source if where == "source" else env.target.server
    server.fail(denial(code), verb=verb, kind=kind, times=None)
    if verb == "create":
        env.add(spec={"schedulerName": "default-scheduler"}, metadata={"finalizers": []})
    else:
        env.target.add(env.add(), allowed=verb != "patch" or where == "source", phase="Running")

    async with env.running(seconds=1):
        if verb == "delete":
            await env.delete(grace=30)

        await asyncio.sleep(4)
        told = [event["message"] for event in env.source.all(kinds.EVENTS)]
        assert any(f"policy says {code}" in message for message in told)


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_trouble_that_stays_is_told_and_that_of_a_moment_is_not(clock, code):
    for times, told in ((1, 0), (None, 1)):
        env = BoundPodsEnvironment(clock)
        trouble = errors.from_status(code, "", "please try again later")
        env.target.server.fail(trouble, verb="patch", kind=kinds.POD_CHAPERONS, times=times)
        env.target.add(env.add(), allowed=False)
        async with env.running(seconds=5):
            assert len(env.event_messages("RequestRefused")) == told


async def test_a_delegate_that_may_not_be_deleted_is_told_on_the_terminating_pod(clock):
    cluster = TargetCluster(clock)
    cluster.server.fail(denial(412), verb="delete", kind=kinds.PODS, times=None)
    chaperon = cluster.send()
    async with cluster.running():
        await cluster.until(cluster.pod, 1)
        await cluster.source.discard(kinds.POD_CHAPERONS, chaperon)
        await cluster.until(
            lambda: (
                "policy says 412" in objects.annotations(cluster.chaperon()).get(keys.REFUSED, "")
            ),
            2,
        )

    env = BoundPodsEnvironment(clock)
    env.target.add(env.add(), phase="Running")
    async with env.running(seconds=1):
        await env.delete(grace=30)
        await asyncio.sleep(1)
        env.target.annotate(**{keys.REFUSED: "policy says 412"})
        await asyncio.sleep(2)
        (message,) = env.event_messages("RequestRefused")
        assert "policy says 412" in message


@pytest.mark.parametrize("code", [404, 409, 412, 429])
async def test_a_change_that_is_denied_is_told(clock, code):
    env = BoundPodsEnvironment(clock)
    env.target.add(env.add(), phase="Running")
    async with env.running(seconds=1):
        env.target.server.fail(denial(code), verb="patch", kind=kinds.POD_CHAPERONS, times=None)
        env.change(lambda pod: pod["metadata"].setdefault("labels", {}).update(tier="gold"))
        await asyncio.sleep(3)
        (message,) = env.event_messages("ChangeRefused")
        assert f"policy says {code}" in message
