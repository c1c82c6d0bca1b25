"""What users get wrong: each is said where they look, with its cure, and touches nothing else.

The Targets of these tests are their own, in a namespace of each test; the fleet's own Targets must
come through all of it without noticing.
"""

from __future__ import annotations

import asyncio
import base64
import subprocess
import uuid
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import kit
from tests.fleets import Result, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube.client import Client

GARBAGE = b"{ this is no kubeconfig"


def ready(target: Object) -> Object:
    return objects.condition(target, "Ready") or {}


def is_because(reason: str):
    return lambda target: ready(target).get("reason") == reason


@pytest.fixture(autouse=True)
async def _others_are_unaffected(source: Client) -> AsyncIterator[None]:
    """The fleet's own Targets are ready before each test, and the very same after it."""

    async def conditions() -> list[Object]:
        connected = is_because("Connected")
        return [
            ready(await kit.until_one(source, kinds.TARGETS, name, "default", connected))
            for name in ("c2", "c3")
        ]

    before = await conditions()
    yield
    assert await conditions() == before


@pytest.fixture
async def home(source: Client) -> AsyncIterator[str]:
    """A namespace in c1, whose Targets end with the test."""
    name = await kit.new_namespace(source, f"bad-{uuid.uuid4().hex[:8]}")
    yield name
    for target in await source.list(kinds.TARGETS, name):
        await source.delete(kinds.TARGETS, objects.name(target), name)

    await source.delete(kinds.NAMESPACES, name)


def named(name: str = "kubeconfig", **more: object) -> Object:
    """The spec of a Target that names a Secret."""
    return {"kubeconfigSecret": {"name": name}, **more}


async def put_secret(source: Client, home: str, kubeconfig: bytes, key: str = "config") -> None:
    data = {key: base64.b64encode(kubeconfig).decode()}
    metadata = {"name": "kubeconfig", "namespace": home}
    await source.apply(kinds.SECRETS, {"metadata": metadata, "data": data}, manager="test")


async def put_target(source: Client, home: str, spec: Object) -> None:
    metadata = {"name": "bad", "namespace": home}
    await source.apply(kinds.TARGETS, {"metadata": metadata, "spec": spec}, manager="test")


async def assert_says(source: Client, home: str, reason: str, *words: str) -> None:
    """The condition of the Target and an Event on it say so, and its node is not there or ready."""
    target = await kit.until_one(source, kinds.TARGETS, "bad", home, is_because(reason))
    condition = ready(target)
    assert condition["status"] == "False"
    for word in words:
        assert word in condition["message"]

    await kit.until(
        source,
        kinds.EVENTS,
        lambda all_: any(
            event["involvedObject"]["uid"] == objects.uid(target)
            and (event["type"], event["reason"]) == ("Warning", reason)
            and event["message"] == condition["message"]
            for event in all_.values()
        ),
        namespace=home,
    )


async def assert_connects(source: Client, home: str, seconds: float = 30) -> None:
    await kit.until_one(
        source, kinds.TARGETS, "bad", home, is_because("Connected"), seconds=seconds
    )


def admin(fleet: Fleet, name: str) -> bytes:
    return fleet.kubeconfig(name).read_bytes()


def with_token(fleet: Fleet, name: str, token: str) -> bytes:
    reach, _name = kubeconfigs.read(fleet.kubeconfig(name))
    return kubeconfigs.build(reach, token, "default")


async def test_an_unparsable_kubeconfig(source: Client, home: str) -> None:
    await put_secret(source, home, GARBAGE)
    await put_target(source, home, named())
    await assert_says(source, home, "Invalid", "neither YAML nor JSON")


async def test_a_kubeconfig_that_refers_to_files_of_the_agent(source: Client, home: str) -> None:
    kubeconfig = (
        b"{current-context: it, contexts: [{name: it, context: {cluster: it, user: it}}],"
        b"clusters: [{name: it, cluster: {server: 'https://192.0.2.1'}}],"
        b"users: [{name: it, user: {tokenFile: /etc/passwd}}]}"
    )
    await put_secret(source, home, kubeconfig)
    await put_target(source, home, named())
    await assert_says(source, home, "Invalid", "tokenFile", "kubectl config view --flatten")


async def test_a_missing_secret_until_it_is_there(source: Client, home: str, fleet: Fleet) -> None:
    await put_target(source, home, {"kubeconfigSecret": {"name": "kubeconfig"}})
    await assert_says(source, home, "Invalid", "no Secret 'kubeconfig'", home, "vnode connect")
    await put_secret(source, home, admin(fleet, "c2"))
    await assert_says(source, home, "NamespaceNotFound", home, "create it there")


async def test_a_secret_without_the_key(source: Client, home: str) -> None:
    await put_secret(source, home, b"", key="value")
    await put_target(source, home, named())
    await assert_says(
        source, home, "Invalid", "no key 'config' but value", "spec.kubeconfigSecret.key"
    )


@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        (named(self=True), "remove one of them"),
        ({}, "set kubeconfigSecret.name"),
        (named(excludedLabelsRegexp="("), "spec.excludedLabelsRegexp"),
        (named(excludedLabelsRegexp="(a*)*"), "take ages"),
        (named("Not A Name"), "spec.kubeconfigSecret.name"),
    ],
    ids=["both", "neither", "bad-regexp", "slow-regexp", "bad-name"],
)
async def test_a_spec_that_cannot_be(source: Client, home: str, spec: Object, cure: str) -> None:
    await put_target(source, home, spec)
    await assert_says(source, home, "Invalid", cure)


async def account_token(client: Client, name: str) -> str:
    """A token of a new service account without any rights."""
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
    await put_secret(source, home, with_token(fleet, "c2", token))
    await put_target(source, home, named())
    await assert_says(source, home, "Forbidden", f"default:{home}", "create a Source", home)
    await c2.delete(kinds.SERVICE_ACCOUNTS, home, "default")


async def test_a_target_that_does_not_know_the_token(
    source: Client, home: str, fleet: Fleet
) -> None:
    await put_secret(source, home, with_token(fleet, "c2", "nonsense"))
    await put_target(source, home, named())
    await assert_says(source, home, "Unauthorized", "run vnode connect again")


async def test_a_token_that_no_header_can_carry(source: Client, home: str, fleet: Fleet) -> None:
    await put_secret(source, home, with_token(fleet, "c2", "two\nlines"))
    await put_target(source, home, named())
    target = await kit.until_one(
        source, kinds.TARGETS, "bad", home, lambda t: ready(t).get("status") == "False"
    )
    assert "two" not in ready(target)["message"]


async def test_an_address_where_nobody_answers(source: Client, home: str, fleet: Fleet) -> None:
    await put_secret(source, home, admin(fleet, "c2").replace(b":6443", b":1"))
    await put_target(source, home, named())
    await assert_says(source, home, "Unreachable", "see that its API server runs")
    node = await source.get(kinds.NODES, names.virtual_node(home, "bad"))
    assert (objects.condition(node, "Ready") or {}).get("status") != "True"


async def test_a_namespace_that_the_target_lacks_until_it_is_there(
    source: Client, c2: Client, home: str, fleet: Fleet
) -> None:
    await put_secret(source, home, admin(fleet, "c2"))
    await put_target(source, home, named())
    await assert_says(source, home, "NamespaceNotFound", home, "create it there")
    await kit.new_namespace(c2, home)
    await assert_connects(source, home)
    await c2.delete(kinds.NAMESPACES, home)


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Fleet]:
    """A cluster where vnode was never installed."""
    fleet = Fleet(tmp_path / "bare")
    fleet.run("up", "bare", "--nodes", "0")
    yield fleet
    fleet.run("down")


@asynccontextmanager
async def relayed(fleet: Fleet, other: Fleet, name: str) -> AsyncIterator[str]:
    """An address at which `fleet` reaches a cluster of another fleet, to which it has no route."""
    address = urlsplit(kubeconfigs.read(other.kubeconfig(name))[0].server)
    own = urlsplit(kubeconfigs.read(fleet.kubeconfig("c1"))[0].server)
    gateway = f"{(own.hostname or '').rpartition('.')[0]}.1"  # the machine, as c1 sees it

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, thither = await asyncio.open_connection(address.hostname, address.port)
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(reader, thither))
            group.create_task(_copy(there, writer))

    server = await asyncio.start_server(relay, gateway, 0)
    try:
        yield f"https://{gateway}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


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
        for kubeconfig in (text.encode(), GARBAGE, account):
            await put_secret(source, home, kubeconfig)
            await put_target(source, home, named())
            if kubeconfig is GARBAGE:
                await assert_says(source, home, "Invalid", "neither YAML nor JSON")
            else:
                await assert_says(source, home, "NotInstalled", "run vnode install")

        await source.delete(kinds.TARGETS, "bad", home)
        node = names.virtual_node(home, "bad")
        await kit.until_gone(source, kinds.NODES, field_selector=f"metadata.name={node}")


def connect(fleet: Fleet, home: str, target: str, *words: str) -> Result:
    return vnode(
        "connect",
        "--source",
        fleet.kubeconfig("c1"),
        "--target",
        fleet.kubeconfig(target),
        "--namespace",
        home,
        "--name",
        "bad",
        *words,
    )


@pytest.fixture
async def shared(source: Client, c2: Client, c3: Client, home: str) -> AsyncIterator[str]:
    """A namespace that all three clusters have."""
    for client in (c2, c3):
        await kit.new_namespace(client, home)

    yield home
    for client in (c2, c3):
        await client.delete(kinds.NAMESPACES, home)


async def run_pod(source: Client, namespace: str, name: str, **notes: str) -> Object:
    """A pod of that namespace, running."""
    template = kit.pod(name, annotations={keys.ELECT: "", **notes})
    await source.create(kinds.PODS, template, namespace)
    return await kit.until_one(
        source, kinds.PODS, name, namespace, lambda pod: kit.phase(pod) == "Running"
    )


async def test_two_sources_of_one_name_are_told_and_do_not_disturb_each_other(
    source: Client, c2: Client, shared: str, fleet: Fleet
) -> None:
    done = connect(fleet, shared, "c2")
    assert not done.code, done.err
    await assert_connects(source, shared)
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
    await kit.until(
        source,
        kinds.EVENTS,
        lambda all_: any(event["reason"] == "ClusterNameTaken" for event in all_.values()),
        namespace=shared,
    )
    await run_pod(source, shared, "own")
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
    done = connect(fleet, shared, "c2")
    assert done.code
    assert "pass another --cluster-name" in done.err


@pytest.fixture
async def followed(source: Client, fleet: Fleet) -> AsyncIterator[Process]:
    """`kubectl logs -f` of a pod in the fleet's own c2."""
    name = f"follow-{uuid.uuid4().hex[:6]}"
    constraints = f"nodeSelector: {{{keys.TARGET_NAME}: c2}}"
    await run_pod(source, "default", name, **{keys.PROXY_CONSTRAINTS: constraints})
    command = [*fleet.kubectl_command("c1"), "logs", "-f", name]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline()
    yield process
    process.terminate()
    await process.communicate()
    await source.delete(kinds.PODS, name, "default")
    await kit.until_gone(source, kinds.PODS, "default", label_selector=f"app={name}")


async def test_a_secret_takes_effect_at_once_and_for_its_target_alone(
    source: Client, shared: str, fleet: Fleet, followed: Process
) -> None:
    await put_secret(source, shared, admin(fleet, "c2"))
    await put_target(source, shared, named())
    await assert_connects(source, shared)
    pod = await run_pod(source, shared, "through-it-all")
    for kubeconfig, reason in (
        (with_token(fleet, "c2", "nonsense"), "Unauthorized"),
        (admin(fleet, "c2"), "Connected"),
        (GARBAGE, "Invalid"),
        (admin(fleet, "c2"), "Connected"),
    ):
        await put_secret(source, shared, kubeconfig)
        await kit.until_one(source, kinds.TARGETS, "bad", shared, is_because(reason), seconds=2)

    await source.delete(kinds.SECRETS, "kubeconfig", shared)
    await kit.until_one(source, kinds.TARGETS, "bad", shared, is_because("Invalid"), seconds=2)
    await kit.until_one(
        source,
        kinds.NODES,
        names.virtual_node(shared, "bad"),
        "",
        lambda node: (objects.condition(node, "Ready") or {}).get("status") == "False",
    )
    await put_secret(source, shared, admin(fleet, "c2"))
    await assert_connects(source, shared, seconds=2)
    assert followed.returncode is None
    now = await source.get(kinds.PODS, "through-it-all", shared)
    assert (objects.uid(now), kit.phase(now)) == (objects.uid(pod), "Running")
    await source.delete(kinds.PODS, "through-it-all", shared)
    await kit.until_gone(source, kinds.PODS, shared)


async def test_a_changed_target_takes_effect_at_once(
    source: Client, c2: Client, shared: str, fleet: Fleet, followed: Process
) -> None:
    node = objects.name((await c2.list(kinds.NODES))[0])
    await c2.patch(kinds.NODES, node, {"metadata": {"labels": {"disk": "fast"}}})
    await put_secret(source, shared, admin(fleet, "c2"))
    await put_target(source, shared, named())
    name = names.virtual_node(shared, "bad")
    await kit.until_one(source, kinds.NODES, name, "", lambda n: "disk" in objects.labels(n))
    await put_target(source, shared, named(excludedLabelsRegexp="^disk="))
    await kit.until_one(
        source, kinds.NODES, name, "", lambda n: "disk" not in objects.labels(n), seconds=2
    )
    assert followed.returncode is None
    await c2.patch(kinds.NODES, node, {"metadata": {"labels": {"disk": None}}})


async def test_a_deleted_target_leaves_nothing_and_can_come_back(
    source: Client, c2: Client, c3: Client, shared: str, fleet: Fleet
) -> None:
    for target, words in (("c3", ()), ("c2", ("--name", "other"))):
        done = connect(fleet, shared, target, *words)
        assert not done.code, done.err

    on = {
        name: {keys.PROXY_CONSTRAINTS: f"nodeSelector: {{{keys.TARGET_NAME}: {name}}}"}
        for name in ("bad", "other")
    }
    kept = await run_pod(source, shared, "kept", **on["other"])
    await run_pod(source, shared, "reserved", **on["bad"])
    await run_pod(source, shared, "unreserved", **on["bad"], **{keys.NO_RESERVATION: ""})
    waiting = kit.pod("waiting", annotations={keys.ELECT: "", keys.NO_RESERVATION: "", **on["bad"]})
    waiting["spec"]["nodeSelector"] = {"no": "such-node"}
    await source.create(kinds.PODS, waiting, shared)
    await kit.until(c3, kinds.PODS, lambda all_: len(all_) == 3, namespace=shared)

    await source.delete(kinds.TARGETS, "bad", shared)
    node = names.virtual_node(shared, "bad")
    await kit.until_gone(source, kinds.NODES, field_selector=f"metadata.name={node}")
    await kit.until_gone(c3, kinds.POD_CHAPERONS, shared)
    await kit.until_gone(c3, kinds.PODS, shared)
    for name in ("reserved", "unreserved"):
        await kit.until_gone(source, kinds.PODS, shared, field_selector=f"metadata.name={name}")

    # Of this one nothing ever ran. Kubernetes removes pods whose node is gone, after a minute.
    await source.delete(kinds.PODS, "waiting", shared)
    await kit.until_gone(source, kinds.PODS, shared, field_selector="metadata.name=waiting")
    assert not await c3.list(kinds.POD_CHAPERONS, shared)
    now = await source.get(kinds.PODS, "kept", shared)
    assert (objects.uid(now), kit.phase(now)) == (objects.uid(kept), "Running")
    assert not objects.is_terminating(now)

    done = connect(fleet, shared, "c3")
    assert not done.code, done.err
    back = await run_pod(source, shared, "back", **on["bad"])
    assert objects.spec(back)["nodeName"] == node
    for name in ("kept", "back"):
        await source.delete(kinds.PODS, name, shared)

    await kit.until_gone(source, kinds.PODS, shared)
