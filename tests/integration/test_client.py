"""The client's calls, and the errors that a real API server answers them with."""

from __future__ import annotations

import dataclasses
import random
import ssl
from collections.abc import AsyncIterator

import pytest

from hack.fleetlib import addresses
from hack.fleetlib import fleet as fleets
from tests import certificates
from tests.faults.fault_profile import FaultProfile
from tests.faults.proxy import FaultProxy, ProxiedServer
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Unreachable,
)
from vnode.api.objects import Object
from vnode.kube import credentials, watching
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions


def config_map(namespace: str, name: str = "a", **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_an_object_is_created_read_patched_and_deleted(
    client: Client, namespace: str
) -> None:
    made = await client.create(kinds.CONFIG_MAPS, config_map(namespace, a="1", b="2"))
    assert await client.get(kinds.CONFIG_MAPS, "a", namespace) == made
    body = {"data": {"b": None, "c": "3"}}
    changed = await client.patch(kinds.CONFIG_MAPS, "a", body, namespace)
    assert changed["data"] == {"a": "1", "c": "3"}
    await client.replace(kinds.CONFIG_MAPS, config_map(namespace, d="4"))
    listed = await client.list(kinds.CONFIG_MAPS, namespace, field_selector="metadata.name=a")
    assert [obj["data"] for obj in listed] == [{"d": "4"}]
    await client.delete(kinds.CONFIG_MAPS, "a", namespace)
    with pytest.raises(NotFound):
        await client.get(kinds.CONFIG_MAPS, "a", namespace)


@pytest.fixture
async def fault_proxy(fleet: Fleet) -> AsyncIterator[tuple[FaultProxy, str]]:
    """Yield a way to c1 that can fail, and its URL."""
    site = fleets.LocalFleet(fleet.folder).site("c1")
    upstream = ProxiedServer(site.address, addresses.API_SERVER, site.folder / "pki")
    fault_proxy = FaultProxy("c1", upstream, random.Random(1))
    url = await fault_proxy.start("127.0.0.1")
    yield fault_proxy, url
    await fault_proxy.close()


async def test_what_is_discarded_is_gone_or_the_conflict_is_heard_of(
    fleet: Fleet, client: Client, namespace: str, fault_proxy: tuple[FaultProxy, str]
) -> None:
    """A Conflict that is not about the UID once left chaperons behind for good."""
    account = f"--serviceaccount={namespace}:default"
    fleet.kubectl(
        "c1", "create", "rolebinding", "a", "--clusterrole=admin", account, "-n", namespace
    )
    token = fleet.kubectl("c1", "create", "token", "default", "-n", namespace).strip()
    faults, url = fault_proxy
    made = await client.create(kinds.CONFIG_MAPS, config_map(namespace))
    earlier = {**made, "metadata": {**objects.metadata(made), "uid": "earlier"}}

    async def authorization() -> str:
        return f"Bearer {token}"

    way = dataclasses.replace(client.endpoint, url=url, authorization=authorization)
    async with Client(way, name="c1") as through:
        faults.profile = FaultProfile(errors={409: 1.0})
        await through.discard(kinds.CONFIG_MAPS, earlier)
        with pytest.raises(Conflict):
            await through.discard(kinds.CONFIG_MAPS, made)

        faults.heal()
        await through.discard(kinds.CONFIG_MAPS, earlier)
        assert await through.get(kinds.CONFIG_MAPS, "a", namespace) == made
        await through.discard(kinds.CONFIG_MAPS, made)
        await through.discard(kinds.CONFIG_MAPS, made)


async def test_an_apply_owns_only_what_it_names(client: Client, namespace: str) -> None:
    await client.apply(kinds.CONFIG_MAPS, config_map(namespace, a="1", b="2"))
    await client.apply(kinds.CONFIG_MAPS, config_map(namespace, c="3"), manager="other")
    after = await client.apply(kinds.CONFIG_MAPS, config_map(namespace, a="1"))
    assert after["data"] == {"a": "1", "c": "3"}
    with pytest.raises(Conflict):
        await client.apply(kinds.CONFIG_MAPS, config_map(namespace, c="4"), force=False)


async def test_refusals_are_told_apart(client: Client, namespace: str) -> None:
    made = await client.create(kinds.CONFIG_MAPS, config_map(namespace))
    with pytest.raises(AlreadyExists):
        await client.create(kinds.CONFIG_MAPS, config_map(namespace))

    with pytest.raises(Conflict):
        await client.delete(kinds.CONFIG_MAPS, "a", namespace, uid="another")

    stale = {"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}}
    with pytest.raises(Conflict):
        await client.patch(kinds.CONFIG_MAPS, "a", stale, namespace)

    with pytest.raises(Invalid):
        await client.create(kinds.CONFIG_MAPS, config_map(namespace, name="No Name"))

    with pytest.raises(NotFound, match="gone-namespace"):
        await client.create(kinds.CONFIG_MAPS, config_map("gone-namespace"))

    assert await client.get(kinds.CONFIG_MAPS, "a", namespace) == made


def claim(namespace: str, mode: str) -> Object:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": "a", "namespace": namespace}, "spec": spec}


async def test_a_change_that_cannot_be_is_told_from_what_is_wrong(
    client: Client, namespace: str
) -> None:
    fixed = config_map(namespace, a="1") | {"immutable": True}
    head = {"metadata": fixed["metadata"]}
    plain = {**head, "spec": {"ports": [{"port": 80}]}}
    headless = {**head, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}}
    for kind, before, after, immutable in (
        (kinds.CONFIG_MAPS, fixed, {**fixed, "data": {"a": "2"}}, True),
        (kinds.CONFIG_MAPS, fixed, {**fixed, "data": {"field is immutable": "2"}}, False),
        (kinds.SECRETS, head, {**head, "type": "example.com/other"}, True),
        (kinds.SECRETS, head, {**head, "type": "kubernetes.io/tls"}, False),
        (kinds.SERVICES, plain, headless, True),
        (kinds.CLAIMS, claim(namespace, "ReadWriteOnce"), claim(namespace, "ReadOnlyMany"), True),
    ):
        made = await client.create(kind, before)
        type_ = {"apiVersion": kind.api_version, "kind": kind.kind}
        with pytest.raises(Invalid) as raised:
            await client.replace(kind, {**type_, **after})

        assert raised.value.immutable is immutable, raised.value
        await client.discard(kind, made)


async def test_a_wrong_token_is_denied_and_not_quoted(client: Client) -> None:
    endpoint = dataclasses.replace(
        client.endpoint,
        ssl=certificates.unverified(),
        authorization=credentials.Constant("Bearer s3cr3t-t0k3n"),
    )
    async with Client(endpoint, name="stranger") as stranger:
        with pytest.raises(Denied) as caught:
            await stranger.list(kinds.SECRETS)

    assert caught.value.status == 401
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "https://no-such-host.invalid"])
async def test_no_answer_is_unreachable_with_the_clusters_name(client: Client, url: str) -> None:
    endpoint = dataclasses.replace(client.endpoint, url=url)
    async with Client(endpoint, name="away") as away:
        with pytest.raises(Unreachable, match=r"^away: "):
            await away.get(kinds.NODES, "n")

        with pytest.raises(Unreachable, match=r"^away: "):
            async for _batch in watching.stream(away, ListOptions(kinds.NODES), "1"):
                pass


async def test_a_server_that_is_not_trusted_is_unreachable(client: Client) -> None:
    endpoint = dataclasses.replace(client.endpoint, ssl=ssl.create_default_context())
    async with Client(endpoint, name="stranger") as stranger:
        with pytest.raises(Unreachable, match="certificate"):
            await stranger.get(kinds.NAMESPACES, "default")


async def test_a_version_that_is_none_ends_a_watch_with_an_error(
    client: Client, namespace: str
) -> None:
    with pytest.raises(ApiError, match="not-a-version"):
        async for _batch in watching.stream(
            client, ListOptions(kinds.CONFIG_MAPS, namespace), "not-a-version"
        ):
            pass


async def test_an_answer_has_a_version_to_watch_from(client: Client, namespace: str) -> None:
    items, version = await client.list_at(
        kinds.CONFIG_MAPS, namespace, field_selector="metadata.name=a"
    )
    assert items == []
    made = await client.create(kinds.CONFIG_MAPS, config_map(namespace))
    selection = ListOptions(kinds.CONFIG_MAPS, namespace, field_selector="metadata.name=a")
    stream = watching.stream(client, selection, version)
    try:
        assert await anext(stream) == []
        (event,) = await anext(stream)
    finally:
        await stream.aclose()

    assert event.type == watching.ADDED
    assert objects.uid(event.object) == objects.uid(made)
