"""What is deleted in a target when its Target is, in which order, and how long that may take."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, Invalid, Unreachable
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.targets import cleanup

pytestmark = pytest.mark.looptime

OURS = Identity("c1", "uid")
THEIRS = {keys.PARENT_CLUSTER_UID: "another"}


class Target:
    """A target with chaperons; `slow` ones stay until `release`, as with a running delegate."""

    def __init__(self, clock):
        self.server, self.withdrawn, self._clock = APIServer("c2", clock), False, clock
        self.link = links.link_to(self.server, TargetKey("team", "c2"), OURS, clock)

    def add(self, name, kind=kinds.POD_CHAPERONS, *, slow=False, **metadata):
        kept = {"finalizers": ["example.com/delegate"]} if slow else {}
        labels = {keys.PARENT_CLUSTER_NAME: OURS.name}
        head = {"namespace": "team", "name": name, "labels": labels}
        self.server.add(kind, {"metadata": head | kept | metadata})

    def release(self, name):
        self.server.remove(kinds.POD_CHAPERONS, name, "team")

    @property
    def deleted(self):
        return [request.name for request in self.server.received("delete")]

    @property
    def left(self):
        return [objects.name(each) for each in self.server.all(kinds.POD_CHAPERONS)]

    async def run_cleanup(self):
        def withdraw():
            self.withdrawn = True

        async with links.connected(self.link):
            self.started = elapsed()
            await cleanup.clean_up(self.link, OURS.owns, OURS, withdraw, clock=self._clock)
            assert self.withdrawn

    def took(self, seconds):
        return elapsed() - self.started == pytest.approx(seconds, abs=0.01)


@pytest.fixture
async def target(clock):
    return Target(clock)


def elapsed():
    return asyncio.get_running_loop().time()


def later(seconds, action, *words):
    asyncio.get_running_loop().call_later(seconds, action, *words)


async def test_all_of_ours_are_deleted_and_no_others(target):
    target.add("a")
    target.add("b")
    target.add("strange", annotations=THEIRS)
    await target.run_cleanup()
    assert sorted(target.deleted) == ["a", "b"]
    assert target.left == ["strange"]
    assert target.took(cleanup.SETTLE + cleanup.LAST_CHECK)


async def test_the_link_stays_until_delegates_have_ended(target):
    target.add("a", slow=True)
    seen = []
    later(4, target.release, "a")
    later(3.9, lambda: seen.append(target.withdrawn))
    await target.run_cleanup()
    assert target.deleted == ["a"]
    assert seen == [False]
    assert target.took(4 + cleanup.SETTLE + cleanup.LAST_CHECK)


async def test_one_whose_creation_was_under_way_is_deleted_too(target):
    target.add("a")
    later(1.5, target.add, "late")
    await target.run_cleanup()
    assert target.deleted == ["a", "late"]


async def test_one_that_comes_late_is_deleted_after_the_link_was_withdrawn(target):
    target.add("a", slow=True)
    later(1, target.add, "late")
    later(2, target.release, "a")
    await target.run_cleanup()
    assert target.deleted == ["a", "late"]
    assert target.left == []


async def test_a_target_that_does_not_answer_costs_a_bounded_time(target):
    target.add("a")
    target.server.fail(Unreachable("away"), verb="delete", times=None)
    later(0.5, target.server.stop)
    await target.run_cleanup()
    assert target.left == ["a"]
    assert target.took(cleanup.TIMEOUT + cleanup.SETTLE + cleanup.LAST_CHECK)


async def test_what_followed_the_pods_goes_after_them(target):
    target.add("a")
    target.add("secret", kinds.SECRETS)
    target.add("service", kinds.SERVICES)
    target.add("strange", kinds.SECRETS, annotations=THEIRS)
    await target.run_cleanup()
    assert target.deleted == ["a", "secret", "service"]
    assert target.withdrawn


@pytest.mark.parametrize(
    "refusal", [Denied(403, "Forbidden", "kept"), Invalid(422, "Invalid", "kept")]
)
async def test_a_copy_that_may_not_be_deleted_keeps_no_other(target, refusal):
    for name in ("a", "kept", "z"):
        target.add(name, kinds.SECRETS)

    target.server.fail(
        refusal, verb="delete", when=lambda request: request.name == "kept", times=None
    )
    await target.run_cleanup()
    assert [objects.name(each) for each in target.server.all(kinds.SECRETS)] == ["kept"]


@pytest.mark.parametrize(("kind", "logged"), [(kinds.SERVICE_ACCOUNTS, 0), (kinds.SECRETS, 1)])
async def test_copies_that_could_not_be_made_without_a_further_role_are_not_missed(
    target, caplog, kind, logged
):
    caplog.set_level("INFO")
    target.server.fail(Denied(403, "Forbidden", "no"), verb="list", kind=kind, times=None)
    await target.run_cleanup()
    assert sum("stay in" in record.message for record in caplog.records) == logged


async def test_service_accounts_that_were_made_go_with_the_target(target):
    target.add("builder", kinds.SERVICE_ACCOUNTS)
    target.add("theirs", kinds.SERVICE_ACCOUNTS, annotations=THEIRS)
    await target.run_cleanup()
    assert target.deleted == ["builder"]
