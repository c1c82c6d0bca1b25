"""What a pod refers to and its own cluster lacks is told by Events before its candidate is made."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.fleet import SOON, FollowingFleet
from vnode.api import kinds
from vnode.api.errors import Unreachable
from vnode.following import missing
from vnode.following.references import Ref

pytestmark = pytest.mark.looptime

CONFIG_MAP_REF = {"configMapRef": {"name": "m"}}
OPTIONAL_MAP_REF = {"configMapRef": {"name": "m", "optional": True}}
SECRET_REF = {"secretRef": {"name": "s"}}
OPTIONAL_SECRET_REF = {"secretRef": {"name": "s", "optional": True}}


def reasons(**spec):
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}
    return [each.reason for each in missing.missing_references(pod, lambda _ref: True)]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (CONFIG_MAP_REF, "MandatoryConfigMapNotFound"),
        (OPTIONAL_MAP_REF, "OptionalConfigMapNotFound"),
        (SECRET_REF, "MandatorySecretNotFound"),
        (OPTIONAL_SECRET_REF, "OptionalSecretNotFound"),
    ],
)
def test_the_reasons_are_those_of_virtual_kubelet(entry, reason):
    assert reasons(containers=[{"envFrom": [entry]}]) == [reason]


def test_a_missing_pull_secret_has_the_reason_of_a_kubelet():
    assert reasons(imagePullSecrets=[{"name": "s"}]) == ["FailedToRetrieveImagePullSecret"]


@pytest.mark.parametrize("entries", [[SECRET_REF, OPTIONAL_SECRET_REF], [OPTIONAL_SECRET_REF]])
def test_the_strongest_reference_decides_wherever_it_is(entries):
    mandatory = {"name": "v", "secret": {"secretName": "s"}}
    found = reasons(imagePullSecrets=[{"name": "s"}], containers=[{"envFrom": entries}])
    assert found == [f"{'Mandatory' if len(entries) > 1 else 'Optional'}SecretNotFound"]
    assert reasons(containers=[{"envFrom": entries}], volumes=[mandatory]) == [
        "MandatorySecretNotFound"
    ]


def test_an_optional_volume_is_optional():
    sources = [{"secret": {"name": "s", "optional": True}}]
    volumes = [
        {"name": "a", "configMap": {"name": "m", "optional": True}},
        {"name": "b", "projected": {"sources": sources}},
    ]
    assert reasons(volumes=volumes) == ["OptionalConfigMapNotFound", "OptionalSecretNotFound"]


def test_only_what_is_absent_is_told_and_claims_are_left_to_the_targets_scheduler():
    pod = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {
            "containers": [{"envFrom": [CONFIG_MAP_REF, SECRET_REF]}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    }
    there = {Ref(kinds.SECRETS, "ns", "s")}
    found = list(missing.missing_references(pod, lambda ref: ref not in there))
    assert [each.reason for each in found] == ["MandatoryConfigMapNotFound"]
    assert 'configmap "m" not found in namespace ns' in found[0].message


def not_found(fleet):
    return sorted(
        event["reason"]
        for event in fleet.source.all(kinds.EVENTS)
        if event["reason"].endswith("NotFound")
    )


async def test_a_pod_hears_what_its_cluster_lacks_until_it_is_there(clock):
    fleet = FollowingFleet(clock)
    fleet.add_original(kinds.SECRETS)
    fleet.add_original(kinds.CLAIMS)
    async with fleet.running():
        assert await fleet.following.ensure(fleet.add_pod(node=None), fleet.link) == ("", ())
        await asyncio.sleep(SOON)
        assert not_found(fleet) == ["MandatoryConfigMapNotFound"]

        fleet.add_original(kinds.CONFIG_MAPS)
        await asyncio.sleep(SOON)
        await fleet.following.ensure(fleet.add_pod("later", node=None), fleet.link)
        await asyncio.sleep(SOON)
        assert {name for name, _text in fleet.events_about} == {"web"}


async def test_what_is_absent_is_known_before_the_namespace_is_listed(clock):
    fleet = FollowingFleet(clock)
    fleet.add_original(kinds.SECRETS)
    pod = fleet.add_pod(node=None)
    async with fleet.running():
        fleet.source.fail(Unreachable("late"), verb="list", kind=kinds.CONFIG_MAPS, times=None)
        await fleet.following.ensure(pod, fleet.link)
        await asyncio.sleep(SOON)
        assert not_found(fleet) == ["MandatoryConfigMapNotFound"]
