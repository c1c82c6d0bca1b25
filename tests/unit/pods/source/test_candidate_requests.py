"""What targets are asked in the candidate phase, and how much of it at a time."""

from __future__ import annotations

import asyncio

import pytest

from tests.permitted import MANIFESTS
from tests.unit.pods.targets import Target, is_silent
from vnode.api import keys, kinds, names, objects
from vnode.api.errors import ConfigError, Denied, NotFound, TooManyRequests, Unreachable
from vnode.api.identity import Identity
from vnode.pods import chaperons
from vnode.pods.overriding import NoOverrides
from vnode.pods.source.candidate_requests import LEFTOVERS, CandidateRequests
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.unanswered_candidates import FIRST
from vnode.runtime.target_options import TargetOptions

pytestmark = pytest.mark.looptime


async def nothing(_pod, _link):
    return "", ()


def requests_of(ensure_copies, clock):
    us = Identity("c1", "uid-of-c1")
    return CandidateRequests(ChaperonFactory(us, MANIFESTS, NoOverrides(), ensure_copies), clock)


@pytest.fixture
def requests(clock):
    return requests_of(nothing, clock)


def pod(name: str, namespace: str = "default") -> dict:
    return {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": {}}


async def test_whoever_waits_for_a_turn_is_sent_away_when_the_target_goes_down(requests, clock):
    target = Target("c2", clock, is_silent)
    target.server.freeze()
    tasks = [asyncio.ensure_future(requests.create(pod(f"p{n}"), target.link)) for n in range(40)]
    await asyncio.sleep(1)
    target.set_healthy(False)
    target.server.thaw()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert target.asked("create") == FIRST
    assert [type(answer) for answer in answers[FIRST:]] == [Unreachable] * (40 - FIRST)


async def test_a_pod_waits_for_one_request_of_each_other_namespace(requests, clock):
    target = Target("c2", clock, is_silent)
    for name in ("other", "busy-0", "busy-1", "busy-2"):
        target.server.add(kinds.NAMESPACES, {"metadata": {"name": name}})

    target.server.freeze()
    many = [
        asyncio.ensure_future(requests.create(pod(f"m{n}", f"busy-{n % 3}"), target.link))
        for n in range(60)
    ]
    await asyncio.sleep(1)
    one = asyncio.ensure_future(requests.create(pod("one", "other"), target.link))
    await asyncio.sleep(1)
    assert target.asked("create") == 16
    target.server.thaw()
    await one
    assert sum(task.done() for task in many) < 40
    await asyncio.gather(*many)


async def test_a_namespace_whose_candidates_pile_up_creates_no_more_of_them(clock):
    """Else pods that are created and deleted without a pause fill the target."""
    target, left = Target("c2", clock, is_silent), {"default": LEFTOVERS}
    factory = ChaperonFactory(Identity("c1", "uid-of-c1"), MANIFESTS, NoOverrides(), nothing)
    requests = CandidateRequests(factory, clock, lambda _node, name: left[name])
    await requests.create(pod("p"), target.link)
    left["default"] += 1
    with pytest.raises(TooManyRequests, match="201 candidates of pods of namespace default"):
        await requests.create(pod("q"), target.link)

    assert target.asked("create") == 1


async def test_nothing_is_brought_to_a_target_that_is_down(clock):
    target = Target("c2", clock, is_silent)
    target.set_healthy(False)
    brought = []

    async def ensure_copies(pod, _link):
        brought.append(pod)
        return "", ()

    requests = requests_of(ensure_copies, clock)
    with pytest.raises(Unreachable, match="does not answer"):
        await requests.create(pod("p"), target.link)

    assert not brought


async def test_a_candidate_that_is_allowed_to_run_is_not_deleted(requests, clock):
    target = Target("c2", clock, is_silent)
    await requests.create(pod("p"), target.link)
    target.annotate(target.candidate("p"), **{keys.IS_ALLOWED: "true"})
    await requests.delete(target.candidate("p"), target.link)
    assert target.find("p") is not None


async def test_the_end_of_a_candidate_is_expected_once_if_it_was_deleted_here(requests, clock):
    target = Target("c2", clock, is_silent)
    for name in ("ours", "theirs", "anew"):
        await requests.create(pod(name), target.link)

    ours, theirs, anew = (target.candidate(name) for name in ("ours", "theirs", "anew"))
    await requests.delete(ours, target.link)
    await requests.delete(anew, target.link, expected=False)
    assert [requests.expected(c, target.link) for c in (ours, theirs, anew)] == [True, False, False]
    assert not requests.expected(ours, target.link)
    assert objects.uid(ours)


async def test_secrets_that_the_target_has_tokens_for_are_exchanged_for_them(clock):
    target = Target("c2", clock, is_silent)
    target.link.options = TargetOptions(source_api=("api", "6443"))

    async def ensure_copies(_pod, _link):
        return "", ("exec",)

    requests = requests_of(ensure_copies, clock)
    volume = {"name": "v", "secret": {"secretName": "exec"}}
    await requests.create({**pod("p"), "spec": {"volumes": [volume]}}, target.link)
    (made,) = target.server.all(kinds.POD_CHAPERONS)
    (volume,) = objects.spec(made)["volumes"]
    assert volume["secret"]["secretName"] == names.token_secret("p", "p")
    assert chaperons.tokens_of(made) == {"exec"}


async def test_a_namespace_that_a_cluster_source_does_not_give_is_told_with_the_cure(
    requests, clock
):
    target = Target("c2", clock, is_silent, home="")
    said = 'podchaperons is forbidden: User "c1" cannot create resource "podchaperons"'
    target.server.fail(Denied(403, "Forbidden", said), verb="create", kind=kinds.POD_CHAPERONS)
    with pytest.raises(ConfigError) as told:
        await requests.create(pod("p"), target.link)

    assert str(told.value).startswith(f"{said}; label that namespace in the target")
    assert "kubectl label namespace default vnode.dev/cluster-sources=enabled" in str(told.value)
    refused = Denied(401, "Unauthorized", "who are you")
    target.server.fail(refused, verb="create", kind=kinds.POD_CHAPERONS)
    with pytest.raises(Denied, match="who are you"):
        await requests.create(pod("p"), target.link)


@pytest.mark.parametrize(
    ("error", "doubts"),
    [
        (Denied(403, "Forbidden", "no"), 1),
        (NotFound(404, "NotFound", 'namespaces "default" not found'), 1),
        (Unreachable("no answer"), 0),
    ],
)
async def test_who_is_refused_has_the_target_asked_for_rights(requests, clock, error, doubts):
    target, asked = Target("c2", clock, is_silent), []
    target.link.on_doubt(lambda: asked.append("asked"))
    target.server.fail(error, verb="create", kind=kinds.POD_CHAPERONS)
    with pytest.raises(type(error)):
        await requests.create(pod("p"), target.link)

    assert len(asked) == doubts
