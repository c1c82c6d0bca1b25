"""Which cluster answers, whether it is the Target's, and what a connection does if it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.server import APIServer
from tests.unit.targets.served_clusters import (
    KEY,
    ServedCluster,
    chaperon,
    connected,
    summary,
    until_health,
)
from vnode.api import keys, kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import Denied
from vnode.api.target_key import TargetKey
from vnode.targets import cluster_identity, probing
from vnode.targets.cluster_identity import Expected, NotRecognized, Recognition, RecognizedClient

UIDS = st.sampled_from(["", "a", "b", "c"])


def target(recorded="", confirmed=None):
    annotations = {} if confirmed is None else {keys.CONFIRM_CLUSTER: confirmed}
    return {"metadata": {"annotations": annotations}, "status": {"clusterUID": recorded}}


@pytest.mark.parametrize(
    ("recorded", "confirmed", "uid", "reason"),
    [
        ("", "", None, None),
        ("", "", "", None),
        ("", "", "a", None),
        ("a", "", "a", None),
        ("a", "", None, "NoSummary"),
        ("a", "", "", "ClusterUnknown"),
        ("a", "", "b", "OtherCluster"),
        ("a", "c", "b", "OtherCluster"),
        ("a", "unknown", "b", "OtherCluster"),
        ("a", "b", "b", None),
        ("a", "b", "a", None),
        ("a", "unknown", "", None),
        ("a", "unknown", None, "NoSummary"),
    ],
)
def test_only_the_recorded_cluster_is_believed_or_one_that_was_confirmed(
    recorded, confirmed, uid, reason
):
    refused = cluster_identity.refusal(KEY, Expected(recorded, confirmed), uid)
    assert (refused and refused.reason) == reason


@given(recorded=UIDS, confirmed=UIDS, uid=UIDS)
def test_a_cluster_that_is_neither_recorded_nor_confirmed_is_refused(recorded, confirmed, uid):
    refused = cluster_identity.refusal(KEY, Expected(recorded, confirmed), uid)
    allowed = recorded in ("", uid) or (uid != "" and uid == confirmed)
    assert (refused is None) is allowed


@pytest.mark.parametrize(
    ("key", "words"),
    [(KEY, "-n team target c2 "), (TargetKey("", "c2"), "--overwrite clustertarget c2 ")],
)
def test_the_message_has_the_command_that_confirms(key, words):
    refused = cluster_identity.refusal(key, Expected("a"), "b")
    assert f"{words}{keys.CONFIRM_CLUSTER}=b;" in str(refused)


def test_a_refusal_is_neither_an_outage_that_may_pass_nor_explained_as_one():
    refused = cluster_identity.refusal(KEY, Expected("a"), "b")
    assert not probing.is_transient(refused)
    assert probing.explain(refused, "team") == ("OtherCluster", str(refused))


def test_what_the_status_lacks_is_remembered_and_what_it_has_counts():
    assert cluster_identity.expected(target(), "a") == Expected("a", "")
    assert cluster_identity.expected(target("b", "c"), "a") == Expected("b", "c")


@pytest.mark.parametrize(
    ("obj", "found", "written"),
    [
        (target(), "", ""),
        (target(), "a", "a"),
        (target("a"), "a", ""),
        (target("a", "b"), "b", "b"),
        (target("b"), "a", ""),  # found long ago by one who did not lead
        (target("a", "b"), "", ""),
    ],
)
def test_a_cluster_is_recorded_when_it_is_first_known_or_was_confirmed(obj, found, written):
    assert cluster_identity.to_record(obj, found) == written


@pytest.mark.parametrize(
    ("obj", "uid"),
    [
        (None, None),
        (summary(), ""),
        (summary("a-1"), "a-1"),
        (summary("a b"), ""),
        (summary("x" * 64), ""),
        ({"metadata": "odd"}, None),
    ],
)
def test_only_a_name_that_can_be_one_is_read_from_a_summary(obj, uid):
    assert cluster_identity.uid_from(obj) == uid


class Server:
    """A target that says who it is, as far as it may be asked."""

    def __init__(self, uid=None, *, kube_system=None):
        self._server = APIServer("c2", SystemClock())
        self.client = self._server.client()
        if uid is not None:
            self._server.add(kinds.CLUSTER_SUMMARIES, summary(uid))

        if kube_system is not None:
            metadata = {"name": "kube-system", "uid": kube_system}
            self._server.add(kinds.NAMESPACES, {"metadata": metadata})
        else:
            denied = Denied(403, "Forbidden", "no")
            self._server.fail(denied, kind=kinds.NAMESPACES, times=None)

    @property
    def asked(self):
        return [request.kind for request in self._server.requests]


def recognition(found=None, **words):
    found = found if found is not None else []
    return Recognition(KEY, lambda: Expected(**words), found.append)


async def test_a_summary_that_says_who_it_is_costs_no_further_request():
    found, server = [], Server("a")
    known = recognition(found)
    await known.recognize(server.client, summary("a"))
    await known.recognize(server.client, summary("a"))
    assert (known.uid, found, server.asked) == ("a", ["a"], [])


async def test_where_the_agent_does_not_say_so_the_namespace_is_asked_once_if_that_is_refused():
    known, server = recognition(), Server(kube_system="a")
    await known.recognize(server.client, summary())
    assert known.uid == "a"

    known, server = recognition(), Server()
    await known.recognize(server.client, summary())
    await known.recognize(server.client, summary())
    assert known.recognized.is_set()
    assert (known.uid, server.asked) == ("", [kinds.NAMESPACES])


async def test_a_cluster_that_is_its_own_target_is_asked_nothing():
    known, server = Recognition(KEY, Expected, lambda _uid: None, own_uid="own"), Server()
    await known.recognize(server.client, None)
    await known.check(server.client)
    assert known.uid == "own"
    assert server.asked == [kinds.CLUSTER_SUMMARIES]


async def test_another_cluster_ends_what_was_recognized_and_a_missing_summary_does_not():
    known = recognition(recorded="a")
    await known.recognize(Server().client, summary("a"))
    with pytest.raises(NotRecognized, match="no ClusterSummary"):
        await known.recognize(Server().client, None)

    assert not known.changed.is_set()
    with pytest.raises(NotRecognized, match="another cluster"):
        await known.recognize(Server().client, summary("b"))

    assert known.changed.is_set()


async def test_a_confirmed_cluster_is_connected_to_anew():
    """What was learned of the former one must not count there."""
    known = recognition(recorded="a", confirmed="b")
    await known.recognize(Server().client, summary("a"))
    with pytest.raises(NotRecognized, match="connecting"):
        await known.recognize(Server().client, summary("b"))

    assert known.changed.is_set()
    assert known.uid == "a"


@pytest.mark.parametrize("uid", [None, "", "b"])
async def test_a_list_counts_only_from_a_cluster_that_says_that_it_is_the_one(uid):
    known = recognition(recorded="a", confirmed="b")
    await known.recognize(Server().client, summary("a"))
    await known.check(Server("a").client)
    with pytest.raises(NotRecognized):
        await known.check(Server(uid).client)


async def test_nothing_is_asked_of_another_cluster_also_when_its_target_is_deleted():
    cluster = ServedCluster("b", chaperon("web"))
    async with connected(cluster, Expected("a")) as (connection, added, running):
        link = await added.get()
        await until_health(link, "OtherCluster")
        assert not link.synced
        assert not link.chaperons.store
        connection.leave()
        await running
        assert cluster.followed == []


async def test_a_cluster_that_is_confirmed_is_followed_at_once():
    cluster = ServedCluster("b", chaperon("web"))
    async with connected(cluster, Expected("a", "b")) as (_connection, added, _running):
        link = await added.get()
        await until_health(link, "Connected")
        assert link.candidate("team/web", "of-web")


async def test_a_list_of_another_cluster_behind_the_same_address_empties_nothing():
    cluster = ServedCluster("a", chaperon("web"))
    async with connected(cluster, Expected("a")) as (connection, added, _running):
        first = await added.get()
        await until_health(first, "Connected")
        cluster.become("b")
        await cluster.asked_for_uid.wait()  # after a list
        connection.probe_now()
        second = await added.get()
        await until_health(second, "OtherCluster")
        assert first.candidate("team/web", "of-web")
        assert not second.synced

        cluster.become("a", chaperon("web"))
        connection.probe_now()
        await until_health(second, "Connected")
        assert second.candidate("team/web", "of-web")


async def test_only_lists_that_lead_to_conclusions_are_checked():
    cluster = ServedCluster("a")
    known = recognition(recorded="a")
    async with (
        cluster.endpoint() as where,
        RecognizedClient(where, known, name="c2") as client,
    ):
        await client.list(kinds.POD_CHAPERONS)
        await known.recognize(client, summary("a"))
        cluster.become("b")
        with pytest.raises(NotRecognized):
            await client.list(kinds.POD_CHAPERONS)

        cluster.become("a")
        assert await client.list(kinds.POD_CHAPERONS) == []
        cluster.become("b")
