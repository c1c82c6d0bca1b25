"""Profiles are watched while their kind is served; each plugin is the matter of its own Target."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, NotFound, Unreachable
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube import exec_runs
from vnode.kube.endpoint import Trust
from vnode.kube.exec_runs import Execution
from vnode.kube.plugin_credentials import PluginCredentials
from vnode.runtime.supervisor import supervise
from vnode.targets import model
from vnode.targets.accesses import TargetAccess, TargetAccesses
from vnode.targets.profiles import last_profile, refusals
from vnode.targets.profiles.config import AccessProvider, ExecConfig, InventoryConfig
from vnode.targets.profiles.refusals import ProfileRefused, ProfileUnavailable

pytestmark = pytest.mark.looptime

V1 = "client.authentication.k8s.io/v1"
CRD: Object = {
    "metadata": {"name": "clusterprofiles.multicluster.x-k8s.io"},
    "spec": {"versions": [{"name": "v1alpha1", "served": True}]},
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}


class Inventory:
    """A source that serves profiles or does not, and plugins that are played."""

    def __init__(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source = APIServer("c1", clock)
        self.runs: list[str] = []
        self.life: float | None = 3600
        self.hanging: set[str] = set()
        self.changed: list[TargetKey] = []
        self._clock = clock
        monkeypatch.setattr(exec_runs, "run", self._run)
        config = InventoryConfig(
            ("fleet",), tuple(AccessProvider(name, ExecConfig(name)) for name in ("works", "hangs"))
        )
        self.accesses = TargetAccesses(
            self.source.client("agent"), lambda _key: Trust(), config, clock, lambda _name: {}
        )

    async def _run(self, execution: Execution) -> bytes:
        self.runs.append(execution.command)
        if execution.command in self.hanging:
            await self._clock.sleep(execution.timeout)
            raise Unreachable(f"exec plugin {execution.command!r} gave no answer")

        await self._clock.sleep(0.2)
        status = {"token": f"word-{len(self.runs)}"}
        if self.life is not None:
            ends = self._clock.now() + timedelta(seconds=self.life)
            status["expirationTimestamp"] = objects.timestamp(ends)

        return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}).encode()

    def add(self, name: str, provider: str = "works", server: str = "https://c2") -> None:
        access = {"name": provider, "cluster": {"server": server}}
        profile = {
            "metadata": {"namespace": "fleet", "name": name},
            "spec": {"clusterManager": {"name": "tests"}},
            "status": {"accessProviders": [access]},
        }
        self.source.add(kinds.CLUSTER_PROFILES, profile)

    async def read(self, name: str) -> TargetAccess:
        target: Object = {
            "metadata": {"name": name},
            "spec": {"clusterProfile": {"namespace": "fleet", "name": name}},
        }
        return await self.accesses.read(model.parse(target))

    async def until(self, name: str, seconds: float = 30) -> TargetAccess:
        """Return what is read once there is something, as a controller tries after each change."""
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await self.read(name)
                except (ProfileRefused, ProfileUnavailable):
                    await asyncio.sleep(0.1)

    async def reason(self, name: str) -> str:
        with pytest.raises((ProfileRefused, ProfileUnavailable)) as raised:
            await self.read(name)

        assert isinstance(raised.value, ProfileRefused | ProfileUnavailable)
        return raised.value.reason

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        async with supervise() as tasks:
            self.accesses.watch(tasks, self.changed.append)
            yield
            tasks.stop()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Have the source serve the kind from the beginning, with the profile c2."""
        self.source.add(kinds.CRDS, CRD)
        self.add("c2")
        async with self.working():
            yield


@pytest.fixture
async def inventory(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Inventory:
    return Inventory(clock, monkeypatch)


async def test_a_kind_that_comes_later_is_noticed_at_once(inventory: Inventory) -> None:
    inventory.add("c2")
    async with inventory.working():
        assert await inventory.reason("c2") == refusals.NOT_SERVED
        await asyncio.sleep(900)
        assert inventory.source.count("list", kinds.CLUSTER_PROFILES) == 0
        assert inventory.source.count("list", kinds.CRDS) == 1
        inventory.source.add(kinds.CRDS, CRD)
        await asyncio.sleep(0.1)
        assert inventory.changed, "the Target is looked at again"
        found = await inventory.until("c2", 1)
        assert found.endpoint.url == "https://c2"


async def test_a_kind_that_is_refused_at_first_is_tried_again_within_seconds(
    inventory: Inventory,
) -> None:
    """An API server may answer 404 for a moment after it has said that a kind is established."""
    inventory.add("c2")
    inventory.source.add(kinds.CRDS, CRD)
    missing = NotFound(404, "NotFound", "the server could not find the requested resource")
    inventory.source.fail(missing, verb="list", kind=kinds.CLUSTER_PROFILES, times=4)
    async with inventory.working():
        await inventory.until("c2", 10)


async def test_no_profile_means_no_watch(inventory: Inventory) -> None:
    async with inventory.serving():
        await inventory.accesses.read(
            model.parse({"metadata": {"name": "me"}, "spec": {"self": True}})
        )
        await asyncio.sleep(60)
        assert not inventory.source.requests


async def test_a_profile_that_is_gone_differs_from_a_kind_that_is_going(
    inventory: Inventory,
) -> None:
    async with inventory.serving():
        await inventory.until("c2")
        inventory.source.remove(kinds.CLUSTER_PROFILES, "c2", "fleet")
        await asyncio.sleep(0.1)
        assert await inventory.reason("c2") == refusals.NOT_FOUND
        inventory.source.remove(kinds.CRDS, objects.name(CRD))
        assert await inventory.reason("c2") == refusals.NOT_SERVED, "asked before it is told"
        await asyncio.sleep(0.1)
        assert await inventory.reason("c2") == refusals.NOT_SERVED


async def test_missing_rights_are_told(inventory: Inventory) -> None:
    inventory.source.fail(Denied(403, "Forbidden", "no"), verb="list", kind=kinds.CRDS, times=99)
    async with inventory.working():
        assert await inventory.reason("c2") == refusals.UNREADABLE


async def test_a_plugin_that_hangs_holds_up_no_other(inventory: Inventory) -> None:
    inventory.source.add(kinds.CRDS, CRD)
    inventory.hanging.add("hangs")
    for number in range(20):
        inventory.add(f"bad-{number}", "hangs")
        inventory.add(f"good-{number}")

    async with inventory.working():
        for number in range(20):
            with pytest.raises(TimeoutError):
                await inventory.until(f"bad-{number}", 0.3)

        begun = asyncio.get_running_loop().time()
        for number in range(20):
            await inventory.until(f"good-{number}", 15)

        assert asyncio.get_running_loop().time() - begun < 15
        await asyncio.sleep(60)
        assert await inventory.reason("bad-0") == refusals.PLUGIN_FAILED


async def test_changes_that_matter_run_the_plugin_and_others_do_not(inventory: Inventory) -> None:
    async with inventory.serving():
        first = await inventory.until("c2")
        for number in range(100):
            condition = {"type": "ControlPlaneHealthy", "status": "False", "message": str(number)}
            change(inventory, conditions=[condition])
            await asyncio.sleep(0.5)
            assert (await inventory.read("c2")).fingerprint == first.fingerprint

        assert inventory.runs == ["works"]
        cluster = {"server": "https://c2.elsewhere"}
        change(inventory, accessProviders=[{"name": "works", "cluster": cluster}])
        await asyncio.sleep(0.1)
        moved = await inventory.until("c2")
        assert moved.endpoint.url == "https://c2.elsewhere"
        assert moved.fingerprint.server != first.fingerprint.server


async def test_a_new_token_is_taken_over_by_the_connection_that_there_is(
    inventory: Inventory,
) -> None:
    async with inventory.serving():
        first = await inventory.until("c2")
        inventory.changed.clear()
        await asyncio.sleep(3590)
        assert inventory.changed == [TargetKey("", "c2")]
        second = await inventory.until("c2")
        assert second.fingerprint[:2] == first.fingerprint[:2]
        assert second.fingerprint.token != first.fingerprint.token
        assert await first.endpoint.authorization() == await second.endpoint.authorization()


async def test_a_plugin_that_fails_later_is_told_while_the_last_token_is_used(
    inventory: Inventory,
) -> None:
    async with inventory.serving():
        assert (await inventory.until("c2")).renewal is None
        inventory.hanging.add("works")
        await asyncio.sleep(3570)
        found = await inventory.read("c2")
        assert found.renewal is not None
        assert "no answer" in found.renewal.failure
        await asyncio.sleep(120)
        assert await inventory.reason("c2") == refusals.PLUGIN_FAILED


async def test_a_plugin_that_is_slower_than_a_probe_is_run_to_its_end_after_a_401(
    inventory: Inventory,
) -> None:
    async with inventory.serving():
        credentials = (await inventory.until("c2")).endpoint.authorization
        assert isinstance(credentials, PluginCredentials)
        former = await credentials()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await credentials.rejected(former)

        await asyncio.sleep(1)
        assert credentials.lasting is not None
        assert f"Bearer {credentials.lasting.token}" != former


async def test_a_plugin_that_hangs_holds_up_no_request_while_the_last_token_lasts(
    inventory: Inventory,
) -> None:
    async with inventory.serving():
        credentials = (await inventory.until("c2")).endpoint.authorization
        inventory.hanging.add("works")
        loop = asyncio.get_running_loop()
        await asyncio.sleep(3500)
        for _try in range(80):  # it is tried again and again meanwhile, for 10 s each
            before = loop.time()
            assert await credentials() == "Bearer word-1"
            assert loop.time() == before
            await asyncio.sleep(1)

        assert len(inventory.runs) > 2


async def test_a_target_that_goes_ends_its_plugin(inventory: Inventory) -> None:
    async with inventory.serving():
        await inventory.until("c2")
        inventory.accesses.forget(TargetKey("", "c2"))
        await asyncio.sleep(7200)
        assert inventory.runs == ["works"]


def change(inventory: Inventory, **status: Any) -> None:
    """Change fields of the profile's status."""
    inventory.source.change(
        kinds.CLUSTER_PROFILES, "c2", "fleet", lambda profile: profile["status"].update(status)
    )


def of_a_set(inventory: Inventory) -> Object:
    """Return the Target that a set has made of the profile c2, as it remembers this profile."""
    profile = inventory.source.find(kinds.CLUSTER_PROFILES, "c2", "fleet") or {}
    owner = {"kind": "ClusterTargetSet", "name": "all", "uid": "1", "controller": True}
    return {
        "metadata": {
            "name": "c2",
            "labels": {keys.TARGET_SET: "all"},
            "ownerReferences": [owner],
        },
        "spec": {"clusterProfile": {"namespace": "fleet", "name": "c2"}},
        "status": {last_profile.FIELD: last_profile.text_of(profile)},
    }


async def test_a_target_of_a_set_outlives_its_profile_in_an_agent_that_starts_later(
    inventory: Inventory,
) -> None:
    inventory.add("c2")
    inventory.add("stays")
    inventory.source.add(kinds.CRDS, CRD)
    made, reference = of_a_set(inventory), {"namespace": "fleet", "name": "c2"}
    async with inventory.working():
        found = await inventory.until("c2")
        inventory.source.remove(kinds.CLUSTER_PROFILES, "c2", "fleet")
        await asyncio.sleep(1)
        kept = await inventory.accesses.read(model.parse(made))
        assert kept.fingerprint == found.fingerprint
        by_hand = {**made, "metadata": {"name": "c2"}}
        elsewhere = {**made, "spec": {"clusterProfile": {**reference, "name": "other"}}}
        broken = {**made, "status": {last_profile.FIELD: "{"}}
        for target in (by_hand, elsewhere, broken):
            with pytest.raises(ProfileRefused):
                await inventory.accesses.read(model.parse(target))


async def test_an_agent_that_starts_without_the_kind_goes_by_what_a_set_remembers(
    inventory: Inventory,
) -> None:
    inventory.add("c2")
    made = of_a_set(inventory)
    async with inventory.working():
        with pytest.raises(ProfileUnavailable):  # its plugin runs
            await inventory.accesses.read(model.parse(made))

        await asyncio.sleep(1)
        kept = await inventory.accesses.read(model.parse(made))
        assert kept.endpoint.url == "https://c2"
        by_hand = {**made, "metadata": {"name": "other"}}
        with pytest.raises(ProfileUnavailable, match="does not serve"):
            await inventory.accesses.read(model.parse(by_hand))

        change(inventory, accessProviders=[{"name": "works", "cluster": {"server": "https://new"}}])
        inventory.changed.clear()
        inventory.source.add(kinds.CRDS, CRD)
        await asyncio.sleep(1)
        assert TargetKey("", "c2") in inventory.changed
        back = await inventory.accesses.read(model.parse(made))
        assert back.endpoint.url == "https://new"


async def test_a_connection_outlives_the_kind_without_a_change(inventory: Inventory) -> None:
    async with inventory.serving():
        found, made = await inventory.until("c2"), of_a_set(inventory)
        inventory.source.remove(kinds.CRDS, objects.name(CRD))
        inventory.source.remove(kinds.CLUSTER_PROFILES, "c2", "fleet")
        for _hour in range(2):
            await asyncio.sleep(3600)
            kept = await inventory.accesses.read(model.parse(made))
            assert kept.fingerprint[:2] == found.fingerprint[:2]

        assert len(inventory.runs) > 1, "credentials are renewed"


def test_what_is_remembered_of_a_profile_has_a_bound_and_no_moments() -> None:
    entry = {"name": "a", "value": "1", "lastObservedTime": "2026-01-01T00:00:00Z"}
    profile: Object = {"metadata": {"name": "c2"}, "status": {"properties": [entry]}}
    assert "lastObservedTime" not in last_profile.text_of(profile)
    profile["status"]["properties"] = [{"name": "a", "value": "x" * 200_000}]
    assert "properties" not in last_profile.text_of(profile)
    profile["status"]["accessProviders"] = [{"name": "x" * 200_000}]
    assert last_profile.text_of(profile) == ""
