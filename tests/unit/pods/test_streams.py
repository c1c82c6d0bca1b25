"""Agents of a source and a target tell each other what else is written: with streams, and without.

Both ends are real, with an API server in memory; what a stream carries takes a millisecond. What is
said must come to the same as what is written, whatever becomes of the stream.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.stream_pair import DIGEST, StreamPair
from tests.unit.pods.target_side import NAMESPACE, SETTLED
from vnode.api import keys, kinds
from vnode.pods import reservations
from vnode.pods.reservations import TIMEOUT, Refusal
from vnode.pods.source import told_permissions
from vnode.pods.stream_messages import CandidateName

pytestmark = pytest.mark.looptime


@pytest.fixture
async def pair(clock):
    return StreamPair(clock)


async def test_a_pod_is_reserved_and_allowed_without_a_write(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.shows(keys.IS_RESERVED) == "true"
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)
        assert pair.shows(keys.IS_ALLOWED) == "true"
        assert pair.patches == 0


async def test_reservations_are_written_once_the_stream_ends(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.cluster.noted(keys.IS_RESERVED) is None
        pair.lose_streams()
        await asyncio.sleep(SETTLED)
        assert pair.cluster.noted(keys.IS_RESERVED) == "true"
        assert pair.shows(keys.IS_RESERVED) == "true"
        assert not task.done()
        task.cancel()


async def test_a_source_that_has_heard_and_decides_later_needs_no_write(pair):
    """In a burst of pods a source is seconds behind."""
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        await asyncio.sleep(2 * reservations.SLOW)
        assert pair.patches == 0
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)
        assert pair.patches == 0


async def test_a_source_that_stays_silent_gets_it_in_writing(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        await asyncio.sleep(reservations.SILENT)
        assert pair.cluster.noted(keys.IS_RESERVED) == "true"
        assert pair.patches == 1
        await asyncio.sleep(reservations.SILENT)
        assert pair.patches == 1
        task.cancel()


async def test_a_source_that_does_not_hear_gets_it_in_writing_sooner(pair):
    pod = pair.candidate()
    async with pair.cluster.informed():
        with pair.streams.open(DIGEST) as stream:
            task = await pair.ask(pod)
            assert (await stream.outbox.take())["reserved"]
            await asyncio.sleep(reservations.SLOW)
            assert pair.cluster.noted(keys.IS_RESERVED) == "true"
            task.cancel()


async def test_what_one_stream_has_heard_counts_while_that_is_open(pair):
    pod = pair.candidate()
    async with pair.cluster.informed():
        with pair.streams.open(DIGEST):
            with pair.streams.open(DIGEST) as gone:
                task = await pair.ask(pod)
                (name,) = (await gone.outbox.take())["reserved"]
                stranger = CandidateName(name.key, "of another")
                pair.streams.acknowledge(DIGEST, gone, [name, stranger])
                assert gone.acknowledged == {name}

            await asyncio.sleep(reservations.SLOW)
            assert pair.cluster.noted(keys.IS_RESERVED) == "true"
            task.cancel()


async def test_a_place_that_is_given_back_is_none_for_the_source(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        pair.cluster.annotate(placeholder="true")
        with pytest.raises(Refusal):
            await asyncio.wait_for(task, 1)

        await asyncio.sleep(SETTLED)
        assert pair.shows(keys.IS_RESERVED) is None


async def test_nobody_who_was_not_allowed_in_time_stays_reserved(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        with pytest.raises(Refusal, match="did not allow"):
            await asyncio.wait_for(task, TIMEOUT + 1)

        await asyncio.sleep(SETTLED)
        assert pair.shows(keys.IS_RESERVED) is None
        assert pair.cluster.noted(keys.IS_RESERVED) is None


async def test_a_permission_that_shows_no_effect_is_written(pair):
    pair.candidate()
    async with pair.running():
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.sleep(told_permissions.SLOW - 1)
        assert pair.shows(keys.IS_ALLOWED) == "true"
        await asyncio.sleep(2)
        assert pair.shows(keys.IS_ALLOWED) is None
        assert not pair.source.allow(pair.link, pair.shown())


async def test_one_that_is_confirmed_is_not_until_the_stream_ends(pair):
    """A pod that starts beside many others is reported half a minute after it was bound."""
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)
        await asyncio.sleep(5 * told_permissions.SLOW)
        assert pair.shows(keys.IS_ALLOWED) == "true"
        pair.lose_streams()
        await asyncio.sleep(0.1)
        assert pair.shows(keys.IS_ALLOWED) is None
        assert not pair.source.allow(pair.link, pair.shown())


async def test_what_was_bound_stays_allowed_when_the_stream_ends(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)
        pair.cluster.server.change(
            *(kinds.POD_CHAPERONS, "web", NAMESPACE),
            lambda chaperon: chaperon.update(status={"phase": "Running"}),
        )
        await asyncio.sleep(SETTLED)
        pair.wires.cut("c2")
        await asyncio.sleep(SETTLED)
        assert pair.shows(keys.IS_ALLOWED) == "true"
        assert pair.patches == 0


async def test_one_that_did_is_not(pair):
    pair.candidate()
    async with pair.running():
        assert pair.source.allow(pair.link, pair.shown())
        pair.cluster.server.change(
            *(kinds.POD_CHAPERONS, "web", NAMESPACE),
            lambda chaperon: chaperon.update(status={"phase": "Running"}),
        )
        await asyncio.sleep(told_permissions.SLOW + 1)
        assert pair.shows(keys.IS_ALLOWED) == "true"


async def test_permissions_are_written_once_the_stream_ends(pair):
    pair.candidate()
    async with pair.running():
        assert pair.source.allow(pair.link, pair.shown())
        pair.lose_streams()
        await asyncio.sleep(0.1)
        assert pair.shows(keys.IS_ALLOWED) is None
        assert not pair.source.allow(pair.link, pair.shown())


async def test_a_stream_that_ended_is_opened_again_and_says_all_that_holds(pair):
    pod = pair.candidate()
    async with pair.running():
        pair.wires.cut("c2")
        task = await pair.ask(pod)
        assert pair.wires.opened >= 2
        assert pair.shows(keys.IS_RESERVED) == "true"
        assert pair.source.allow(pair.link, pair.shown())
        await asyncio.wait_for(task, 0.1)


async def test_a_source_whose_agent_ends_leaves_nothing_assumed_that_is_not_so(pair):
    pod = pair.candidate()
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.shows(keys.IS_RESERVED)
        pair.links.remove(pair.link)
        await asyncio.sleep(SETTLED)
        assert pair.cluster.noted(keys.IS_RESERVED) == "true"  # for the next one, in writing
        task.cancel()


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({"digest": "of another source"}, id="of-another-source"),
        pytest.param({keys.GANG_MARK: "{}"}, id="of-a-gang"),
    ],
)
async def test_other_candidates_are_written(pair, annotations):
    pair.candidate("first")  # else there is no stream
    pod = pair.candidate(**annotations)
    async with pair.running():
        task = await pair.ask(pod)
        assert pair.cluster.noted(keys.IS_RESERVED) == "true"
        assert not pair.source.allow(pair.link, pair.shown())
        task.cancel()


async def test_without_a_candidate_there_is_no_stream(pair):
    async with pair.running():
        assert pair.wires.opened == 0


async def test_replicas_that_are_known_are_asked_ever_more_rarely(pair):
    pair.candidate()
    async with pair.running():
        await asyncio.sleep(600)
        assert 5 < pair.wires.opened < 20
