"""Service accounts that pods name are made where a Target asks for it, and go with their pods."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.fleet import SOON, US, FollowingFleet
from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, Denied
from vnode.following import references
from vnode.following.follower import GRACE
from vnode.runtime.target_options import TargetOptions

pytestmark = pytest.mark.looptime


@pytest.fixture
async def fleet(clock):
    fleet = FollowingFleet(clock)
    fleet.link.options = TargetOptions(create_service_accounts=True)
    return fleet


def add_pod(fleet, name="web", account="builder"):
    """Store a pending pod and the account that it names.

    The account has rights in the source by its annotations.
    """
    present = fleet.source.find(kinds.SERVICE_ACCOUNTS, account, "ns")
    if present is None and account:
        metadata = {"name": account, "namespace": "ns", "annotations": {"cloud/role": "admin"}}
        body = {"metadata": metadata, "secrets": [{"name": "s"}], "imagePullSecrets": []}
        fleet.source.add(kinds.SERVICE_ACCOUNTS, body)

    metadata = {"name": name, "namespace": "ns", "uid": name}
    spec = {"containers": [{"name": "main"}], "serviceAccountName": account}
    return fleet.source.add(kinds.PODS, {"metadata": metadata, "spec": spec})


def bind(fleet, name="web", to=None):
    """Bind the pod to the target."""
    node = (to or fleet.link).node_name
    fleet.source.change(kinds.PODS, name, "ns", lambda pod: pod["spec"].update(nodeName=node))


def made(fleet, name="builder"):
    return fleet.gpu.find(kinds.SERVICE_ACCOUNTS, name, "ns")


async def test_an_account_is_made_before_the_candidate_and_goes_with_its_last_pod(fleet):
    pods = [add_pod(fleet, name) for name in ("web", "other")]
    async with fleet.running():
        for pod in pods:
            assert await fleet.following.ensure(pod, fleet.link) == ("", ())
            bind(fleet, objects.name(pod))

        first = made(fleet)
        assert first
        await asyncio.sleep(SOON)
        fleet.remove_pod("web")
        await asyncio.sleep(GRACE + 2 * SOON)
        assert made(fleet) == first
        fleet.remove_pod("other")
        await asyncio.sleep(GRACE + 2 * SOON)
        assert made(fleet) is None


async def test_only_the_name_of_an_account_follows(fleet):
    pod = add_pod(fleet)
    async with fleet.running():
        await fleet.following.ensure(pod, fleet.link)

    account = made(fleet)
    assert US.made(account)
    assert account["automountServiceAccountToken"] is False
    assert not account.keys() & {"secrets", "imagePullSecrets"}
    marks = {**objects.labels(account), **objects.annotations(account)}
    assert all(key.startswith((keys.PREFIX, keys.OWN_PREFIX)) for key in marks)


async def test_an_account_that_is_there_is_used_as_it_is_and_stays(fleet):
    theirs = fleet.gpu.add(
        kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "builder", "namespace": "ns"}}
    )
    pod = add_pod(fleet)
    async with fleet.running():
        assert await fleet.following.ensure(pod, fleet.link) == ("", ())
        bind(fleet)
        await asyncio.sleep(60)
        fleet.remove_pod()
        await asyncio.sleep(60)
        assert made(fleet) == theirs
        assert fleet.events_about == []


async def test_nothing_is_asked_of_a_target_that_does_not_ask_for_accounts(fleet):
    fleet.link.options = TargetOptions()
    pod = add_pod(fleet)
    async with fleet.running():
        assert await fleet.following.ensure(pod, fleet.link) == ("", ())
        assert made(fleet) is None
        requests = ("get", "list", "watch", "create", "delete")
        assert not any(fleet.gpu.count(verb, kinds.SERVICE_ACCOUNTS) for verb in requests)


@pytest.mark.parametrize("verb", ["list", "create"])
async def test_a_pod_whose_account_may_not_be_made_hears_which_role_is_missing(fleet, verb):
    denied = Denied(403, "Forbidden", "no")
    fleet.gpu.fail(denied, verb=verb, kind=kinds.SERVICE_ACCOUNTS, times=None)
    pod = add_pod(fleet)
    async with fleet.running():
        with pytest.raises(ConfigError, match="bind ClusterRole vnode-source-service-accounts"):
            await fleet.following.ensure(pod, fleet.link)

        await asyncio.sleep(SOON)
        assert {
            name for name, text in fleet.events_about if keys.CREATE_SERVICE_ACCOUNTS in text
        } == {"web"}


async def test_a_pod_with_a_candidate_already_hears_of_the_missing_role_too(fleet):
    denied = Denied(403, "Forbidden", "no")
    fault = fleet.gpu.fail(denied, verb="list", kind=kinds.SERVICE_ACCOUNTS, times=None)
    pod = add_pod(fleet)
    async with fleet.running():
        fleet.following.renew(pod, fleet.link)
        await asyncio.sleep(SOON)
        assert [
            name for name, text in fleet.events_about if "vnode-source-service-accounts" in text
        ] == ["web"]
        fault.clear()
        await asyncio.sleep(10)
        assert made(fleet)


@pytest.mark.parametrize("name", ["default", ""])
def test_the_account_of_every_namespace_is_not_made(name):
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"serviceAccountName": name}}
    assert references.of(pod) == ()
