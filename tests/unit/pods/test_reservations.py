"""A place is held for a candidate until its source says what to do, or is silent for too long."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds
from vnode.api.errors import ServerError
from vnode.pods import delegate
from vnode.pods.reservations import TIMEOUT, Refusal, Reservations

pytestmark = pytest.mark.looptime


class Held:
    """The reservations of an agent, which knows the chaperons of its cluster."""

    def __init__(self, clock):
        self.cluster = TargetCluster(clock)
        self.agent = self.cluster.server.client("agent")
        self.reservations = Reservations(self.agent, self.cluster.chaperons)

    def candidate(self, name="web", **metadata):
        """Store a new chaperon and return its delegate."""
        return delegate.build(self.cluster.send(name, **metadata))

    async def ask(self, pod):
        """Begin to wait for a source's word on a delegate."""
        task = asyncio.create_task(self.reservations.allowed(pod))
        await asyncio.sleep(SETTLED)
        return task

    @property
    def is_reserved(self):
        return self.cluster.noted(keys.IS_RESERVED) == "true"

    @property
    def writes(self):
        return self.cluster.count("patch", "podchaperons")


@pytest.fixture
async def held(clock):
    return Held(clock)


async def test_a_candidate_is_reserved_until_it_is_allowed(held):
    pod = held.candidate()
    async with held.cluster.informed():
        task = await held.ask(pod)
        assert held.is_reserved
        assert not task.done()
        held.cluster.annotate(is_allowed="true", is_reserved="true")
        await asyncio.wait_for(task, 0.1)
        assert held.writes == 1


async def test_a_candidate_that_is_allowed_already_is_not_reserved(held):
    pod = held.candidate(annotations={keys.IS_ALLOWED: "true"})
    async with held.cluster.informed():
        await asyncio.wait_for(held.reservations.allowed(pod), 0.1)
        assert held.writes == 0


async def test_a_reservation_that_was_withdrawn_is_made_again_while_the_place_is_held(held):
    pod = held.candidate()
    async with held.cluster.informed():
        task = await held.ask(pod)
        held.cluster.annotate(is_reserved=None)
        await asyncio.sleep(SETTLED)
        assert held.is_reserved
        assert held.writes == 2
        task.cancel()


async def test_a_placeholder_is_refused_at_once(held):
    pod = held.candidate(annotations={keys.PLACEHOLDER: "true"})
    async with held.cluster.informed():
        with pytest.raises(Refusal, match="is a placeholder here: this cluster has room now"):
            await asyncio.wait_for(held.reservations.allowed(pod), 0.1)

        assert not held.is_reserved
        assert held.writes == 0


async def test_a_pod_that_has_finished_is_refused_at_once(held):
    pod = held.candidate(annotations={keys.IS_ALLOWED: "true"})
    held.cluster.server.change(
        *(kinds.POD_CHAPERONS, "web", NAMESPACE),
        lambda chaperon: chaperon.update(status={"phase": "Succeeded"}),
    )
    async with held.cluster.informed():
        with pytest.raises(Refusal, match="has finished: its result stays"):
            await asyncio.wait_for(held.reservations.allowed(pod), 0.1)


async def test_a_candidate_that_becomes_a_placeholder_gives_its_place_back(held):
    pod = held.candidate()
    async with held.cluster.informed():
        task = await held.ask(pod)
        assert held.is_reserved
        held.cluster.annotate(placeholder="true", is_reserved="true")
        with pytest.raises(Refusal, match="placeholder"):
            await asyncio.wait_for(task, 1)

        assert not held.is_reserved


async def test_a_source_that_says_nothing_loses_the_reservation(held):
    pod = held.candidate()
    async with held.cluster.informed():
        task = await held.ask(pod)
        await asyncio.sleep(TIMEOUT - SETTLED - 1)
        assert not task.done()
        with pytest.raises(Refusal, match=f"did not allow {NAMESPACE}/web within 30 s"):
            await asyncio.wait_for(task, 2)

        assert not held.is_reserved


async def test_the_end_of_a_chaperon_ends_the_wait(held):
    pod = held.candidate()
    async with held.cluster.informed():
        task = await held.ask(pod)
        await held.cluster.end()
        with pytest.raises(Refusal, match="is gone"):
            await asyncio.wait_for(task, 0.1)

        assert held.writes == 1


async def test_a_chaperon_that_vanishes_ends_the_wait(held):
    pod = held.candidate()
    async with held.cluster.informed():
        task = await held.ask(pod)
        held.cluster.server.remove(kinds.POD_CHAPERONS, "web", NAMESPACE)
        with pytest.raises(Refusal, match="is gone"):
            await asyncio.wait_for(task, 0.1)


async def test_the_word_on_a_later_candidate_of_the_name_is_not_for_this_one(held):
    """The informer can see both at once: then no moment shows the name without a chaperon."""
    pod = held.candidate()
    async with held.cluster.informed():
        task = await held.ask(pod)
        held.cluster.server.remove(kinds.POD_CHAPERONS, "web", NAMESPACE)
        held.candidate()
        with pytest.raises(Refusal, match="is gone"):
            await asyncio.wait_for(task, 0.1)

        assert not held.is_reserved


async def test_a_namesake_that_is_not_known_yet_is_not_reserved(held):
    pod = held.candidate()
    async with held.cluster.informed():
        await asyncio.sleep(SETTLED)
        held.cluster.server.silence_watches(kinds.POD_CHAPERONS)
        held.cluster.server.remove(kinds.POD_CHAPERONS, "web", NAMESPACE)
        held.candidate()
        with pytest.raises(Refusal, match="is gone"):
            await held.reservations.allowed(pod)

        assert not held.is_reserved


@pytest.mark.parametrize("owner", ["", "another"])
async def test_a_pod_that_no_chaperon_of_its_name_controls_is_refused(held, owner):
    pod = held.candidate()
    references = [{"kind": "PodChaperon", "uid": owner, "controller": True}] if owner else []
    pod["metadata"]["ownerReferences"] = references
    async with held.cluster.informed():
        with pytest.raises(Refusal, match="no PodChaperon controls it"):
            await held.reservations.allowed(pod)

        assert held.writes == 0


async def test_a_pod_whose_chaperon_is_not_there_is_refused(held):
    pod = held.candidate()
    held.cluster.server.remove(kinds.POD_CHAPERONS, "web", NAMESPACE)
    async with held.cluster.informed():
        with pytest.raises(Refusal, match="is gone"):
            await held.reservations.allowed(pod)


async def test_an_error_of_the_api_server_is_the_callers(held):
    pod = held.candidate()
    held.cluster.server.fail(ServerError(500, "", "no"), verb="patch", kind=kinds.POD_CHAPERONS)
    async with held.cluster.informed():
        with pytest.raises(ServerError):
            await held.reservations.allowed(pod)


async def test_a_second_call_for_a_candidate_waits_with_the_first(held):
    """kube-scheduler asks again where it has lost the first answer."""
    pod = held.candidate()
    async with held.cluster.informed():
        tasks = [await held.ask(pod), await held.ask(pod)]
        held.cluster.annotate(is_allowed="true")
        await asyncio.wait_for(asyncio.gather(*tasks), 0.1)
        assert held.writes == 1


async def test_whoever_is_allowed_does_not_wait_behind_newcomers(held):
    pods = [held.candidate(f"web-{number}") for number in range(40)]
    async with held.cluster.informed():
        first = await held.ask(pods[0])
        held.cluster.server.fail(None, verb="patch", times=None, delay=5)
        others = [asyncio.create_task(held.reservations.allowed(pod)) for pod in pods[1:]]
        await asyncio.sleep(SETTLED)
        assert held.writes == 1 + 16
        held.cluster.annotate("web-0", is_allowed="true")
        await asyncio.wait_for(first, 0.1)
        await asyncio.sleep(15)
        assert held.writes == 40
        for task in others:
            task.cancel()


async def test_a_place_that_is_given_up_is_still_reserved_as_far_as_we_know(held):
    """kube-scheduler hung up: whether it keeps the place, only its next word tells."""
    pod = held.candidate()
    async with held.cluster.informed():
        task = await held.ask(pod)
        task.cancel()
        await asyncio.wait([task])
        assert held.is_reserved
        again = await held.ask(pod)
        held.cluster.annotate(is_allowed="true")
        await asyncio.wait_for(again, 0.1)
