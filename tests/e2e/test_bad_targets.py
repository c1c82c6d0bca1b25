"""Targets that cannot be used: each says why and what helps, and touches nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.gateways import relayed, serving
from tests.e2e.own_targets import home, others_are_unaffected, shared
from tests.e2e.refused_targets import assert_says, holder, kubeconfig_of
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.cli import kubeconfigs
from vnode.kube.client import Client

__all__ = ["home", "others_are_unaffected", "shared"]

pytestmark = pytest.mark.usefixtures("others_are_unaffected")


NO_JSON = b'{"kind": "List", "metadata": {"resourceVersion": "\xff"}, "items": []}'
ODD_CONTINUE = b'{"kind": "List", "metadata": {"continue": {"a": 1}}, "items": [{}]}'
ODD_BOOKMARK = b'{"type": "BOOKMARK", "object": {"metadata": ["7"]}}\n'
LIST = b'{"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [{}]}'


@pytest.mark.parametrize(
    ("listed", "watched"),
    [(NO_JSON, b""), (ODD_CONTINUE, b""), (LIST, ODD_BOOKMARK), (LIST, b"\xff\n")],
    ids=["no-utf8", "continue", "bookmark", "no-utf8-watched"],
)
async def test_a_target_that_answers_nonsense_ends_nobody(
    source: Client, home: str, fleet: Fleet, listed: bytes, watched: bytes
) -> None:
    asked: set[str] = set()
    all_were, leader = asyncio.Event(), await holder(source)

    async def answer(request: web.Request) -> web.Response:
        asked.add(request.path.rpartition("/")[2])
        if request.path.endswith((f"/{keys.SUMMARY_NAME}", "/kube-system")):
            missing = {"kind": "Status", "code": 404, "message": keys.SUMMARY_NAME}
            return web.json_response(missing, status=404)  # else nothing there is believed

        if asked >= {"podchaperons", "configmaps", "secrets", "services", "ingresses"}:
            all_were.set()

        return web.Response(body=watched if "watch" in request.query else listed)

    async with serving(fleet, answer) as server:
        await own.put_secret(source, home, kubeconfig_of(f"server: '{server}'"))
        await own.put_target(source, home, own.named())
        async with asyncio.timeout(kit.PATIENCE):
            await all_were.wait()

        await kit.until_one(
            source, kinds.TARGETS, "bad", home, lambda t: own.ready(t).get("status") == "False"
        )

    assert await holder(source) == leader


async def account_token(client: Client, name: str) -> str:
    """Return a token of a new service account without any rights."""
    account = {"metadata": {"name": name, "namespace": "default"}}
    await client.create(kinds.SERVICE_ACCOUNTS, account, "default")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.create(
        kinds.SERVICE_ACCOUNTS, request, "default", name=name, subresource="token"
    )
    return str(objects.status(answer)["token"])


async def test_a_target_without_a_source_refuses(
    source: Client, c2: Client, home: str, fleet: Fleet
) -> None:
    token = await account_token(c2, home)
    await own.put_secret(source, home, own.with_token(fleet, "c2", token))
    await own.put_target(source, home, own.named())
    await assert_says(source, home, "Forbidden", f"default:{home}", "create a Source", home)
    await c2.delete(kinds.SERVICE_ACCOUNTS, home, "default")


async def test_a_target_that_does_not_know_the_token(
    source: Client, home: str, fleet: Fleet
) -> None:
    await own.put_secret(source, home, own.with_token(fleet, "c2", "nonsense"))
    await own.put_target(source, home, own.named())
    await assert_says(source, home, "Unauthorized", "run vnode connect again")


async def test_a_token_that_no_header_can_carry(source: Client, home: str, fleet: Fleet) -> None:
    await own.put_secret(source, home, own.with_token(fleet, "c2", "two\nlines"))
    await own.put_target(source, home, own.named())
    target = await kit.until_one(
        source, kinds.TARGETS, "bad", home, lambda t: own.ready(t).get("status") == "False"
    )
    assert "two" not in own.ready(target)["message"]


async def test_an_address_where_nobody_answers(source: Client, home: str, fleet: Fleet) -> None:
    await own.put_secret(source, home, own.admin(fleet, "c2").replace(b":6443", b":1"))
    await own.put_target(source, home, own.named())
    await assert_says(source, home, "Unreachable", "see that its API server runs")
    node = await source.get(kinds.NODES, names.virtual_node(home, "bad"))
    assert (objects.condition(node, "Ready") or {}).get("status") != "True"


async def test_a_namespace_that_the_target_lacks_until_it_is_there(
    source: Client, c2: Client, home: str, fleet: Fleet
) -> None:
    await own.put_secret(source, home, own.admin(fleet, "c2"))
    await own.put_target(source, home, own.named())
    await assert_says(source, home, "NamespaceNotFound", home, "create it there")
    await kit.namespace_for_pods(c2, home)
    await own.assert_connects(source, home)
    await c2.delete(kinds.NAMESPACES, home)


@pytest.fixture
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a cluster where vnode was never installed."""
    with started(tmp_path_factory, "bare", "--nodes", "0", sources=()) as fleet:
        yield fleet


async def test_a_target_where_vnode_is_not_installed(
    source: Client, home: str, fleet: Fleet, bare: Fleet
) -> None:
    """For an administrator, who sees that the kinds are not there, as for one without rights."""
    reach, _name = kubeconfigs.read(bare.kubeconfig("bare"))
    host = urlsplit(reach.server).hostname
    async with relayed(fleet, bare, "bare") as server, bare.client("bare") as client:
        theirs = f"server: {server}\n    tls-server-name: {host}"
        text = bare.kubeconfig("bare").read_text().replace(f"server: {reach.server}", theirs)
        reach = replace(reach.at(server), server_name=host)
        account = kubeconfigs.build(reach, await account_token(client, home), "default")
        for kubeconfig in (text.encode(), own.GARBAGE, account):
            await own.put_secret(source, home, kubeconfig)
            await own.put_target(source, home, own.named())
            if kubeconfig is own.GARBAGE:
                await assert_says(source, home, "Invalid", "neither YAML nor JSON")
            else:
                await assert_says(source, home, "NotInstalled", "run vnode install")

        await source.delete(kinds.TARGETS, "bad", home)
        node = names.virtual_node(home, "bad")
        await kit.until_gone(source, kinds.NODES, field_selector=f"metadata.name={node}")


async def test_two_sources_of_one_name_are_told_and_do_not_disturb_each_other(
    source: Client, c2: Client, shared: str, fleet: Fleet
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, shared)
    stranger = {
        "metadata": {
            "name": "stranger",
            "labels": {keys.PARENT_UID: "unknown", keys.PARENT_CLUSTER_NAME: "c1"},
            "annotations": {
                keys.PARENT_NAMESPACE: shared,
                keys.PARENT_NAME: "stranger",
                keys.PARENT_CLUSTER_UID: "uid-of-another-cluster",
                keys.IS_ALLOWED: "true",
            },
            "finalizers": [keys.DELEGATE_FINALIZER],
        },
        "spec": objects.spec(kit.pod("stranger")),
    }
    await c2.create(kinds.POD_CHAPERONS, stranger, shared)
    target = await kit.until_one(
        source,
        kinds.TARGETS,
        "bad",
        shared,
        lambda t: (objects.condition(t, "ClusterNameUnique") or {}).get("status") == "False",
    )
    message = str((objects.condition(target, "ClusterNameUnique") or {})["message"])
    assert "uid-of-another-cluster" in message
    assert "--cluster-name" in message
    await kit.until_event(source, shared, "reason=ClusterNameTaken")
    await own.run_pod(source, shared, "own")
    theirs = await kit.until_one(
        c2, kinds.PODS, "stranger", shared, lambda pod: kit.phase(pod) == "Running"
    )
    await source.delete(kinds.PODS, "own", shared)
    await kit.until_gone(source, kinds.PODS, shared)
    pods = await c2.list(kinds.PODS, shared)
    assert [objects.uid(pod) for pod in pods] == [objects.uid(theirs)]
    await c2.delete(kinds.POD_CHAPERONS, "stranger", shared)
    await kit.until_one(
        source,
        kinds.TARGETS,
        "bad",
        shared,
        lambda t: (objects.condition(t, "ClusterNameUnique") or {}).get("status") == "True",
    )


async def test_connecting_a_second_source_of_one_name_is_refused(
    c2: Client, shared: str, fleet: Fleet
) -> None:
    first = {
        "metadata": {
            "name": "c1",
            "namespace": shared,
            "annotations": {keys.PARENT_CLUSTER_UID: "uid-of-another-cluster"},
        },
        "spec": {"serviceAccountName": "c1"},
    }
    await c2.create(kinds.SOURCES, first, shared)
    done = own.connect(fleet, shared, "c2")
    assert done.code
    assert "pass another --cluster-name" in done.err
