"""`vnode connect` between two real clusters, as a user runs it."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from tests import kit
from tests.fleets import SOURCE, TARGET, Result, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, NotFound
from vnode.api.kinds import Kind
from vnode.cli import identity, kubeconfigs
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.kube.kubeconfig import Kubeconfig


@dataclass(frozen=True)
class Bare:
    """What was said of a target without vnode, and then by `vnode install` there."""

    connecting: Result
    installing: Result


@dataclass(frozen=True)
class Pair:
    """c1 as source and c2 as target, with a fresh namespace in both."""

    fleet: Fleet
    source: Client
    target: Client
    namespace: str

    def connect(self, *words: str) -> Result:
        """Run `vnode connect` for the namespace of the pair."""
        return connect(self.fleet, "--namespace", self.namespace, *words)

    async def kubeconfig(self) -> bytes:
        """Return what the Secret holds."""
        secret = await self.source.get(kinds.SECRETS, "vnode-target-c2", self.namespace)
        return base64.b64decode(secret["data"]["config"])


def connect(fleet: Fleet, *words: str) -> Result:
    """Run `vnode connect --source c1 --target c2 WORDS`."""
    files = ("--source", fleet.kubeconfig(SOURCE), "--target", fleet.kubeconfig(TARGET))
    return vnode("connect", *files, *words)


@pytest.fixture(scope="module")
def bare(fleet: Fleet) -> Bare:
    """Return what `vnode connect` says of c2 without vnode, and what `vnode install` says there."""
    before = connect(fleet)
    return Bare(before, vnode("install", "--kubeconfig", fleet.kubeconfig(TARGET)))


@pytest.fixture
async def pair(fleet: Fleet, bare: Bare) -> AsyncIterator[Pair]:
    """Yield both clusters, made ready, with a fresh namespace."""
    assert bare.installing.code == 0, bare.installing.err
    async with fleet.client(SOURCE) as source, fleet.client(TARGET) as target:
        name = f"test-{uuid.uuid4().hex[:10]}"
        for client in (source, target):
            await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})

        yield Pair(fleet, source, target, name)


def test_a_target_that_is_not_installed_is_told_how_to_be(bare: Bare, fleet: Fleet) -> None:
    if "unchanged" in bare.installing.out:
        return  # a fleet that is kept between runs has vnode installed

    assert bare.connecting.code == 1
    assert f"vnode install --kubeconfig {fleet.kubeconfig(TARGET)}" in bare.connecting.err
    assert bare.connecting.err.count("\n") == 1
    *made, warning = bare.installing.out.splitlines()
    assert {line.split()[-1] for line in made} == {"created"}
    assert "the webhook calls Service" in warning  # this cluster's agent runs outside of it


async def test_connecting_makes_a_target_whose_kubeconfig_works(pair: Pair) -> None:
    done = pair.connect()
    assert done.code == 0, done.err
    target = await pair.source.get(kinds.TARGETS, "c2", pair.namespace)
    assert objects.spec(target)["kubeconfigSecret"]["name"] == "vnode-target-c2"
    name = (await identity.identity(pair.source)).name
    source = await pair.target.get(kinds.SOURCES, name, pair.namespace)
    assert objects.spec(source) == {"serviceAccountName": name}
    reached = endpoint.from_kubeconfig(
        Kubeconfig.parse(await pair.kubeconfig(), kubeconfigs.CONTEXT)
    )
    assert reached.namespace == pair.namespace
    kind = Kind(
        "authentication.k8s.io",
        "v1",
        "selfsubjectreviews",
        "SelfSubjectReview",
        namespaced=False,
    )
    async with Client(reached, name="c2") as client:
        review = await client.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind})

    user = objects.status(review)["userInfo"]["username"]
    assert user == f"system:serviceaccount:{pair.namespace}:{name}"


async def test_connecting_again_changes_nothing(pair: Pair) -> None:
    pair.connect()
    before = await pair.kubeconfig()
    again = pair.connect()
    assert again.out.count("unchanged") == 7
    assert "created" not in again.out
    assert "issued" not in again.out
    assert await pair.kubeconfig() == before


async def test_another_cluster_takes_the_place_of_a_target_only_when_told_to(pair: Pair) -> None:
    pair.connect()
    before = await pair.kubeconfig()
    was = {"status": {"clusterUID": "another"}}
    await pair.source.patch(kinds.TARGETS, "c2", was, pair.namespace, subresource="status")
    refused = pair.connect()
    assert refused.code == 1
    assert "pass --confirm-cluster" in refused.err
    assert await pair.kubeconfig() == before

    done = pair.connect("--confirm-cluster")
    assert done.code == 0, done.err
    target = await pair.source.get(kinds.TARGETS, "c2", pair.namespace)
    uid = await identity.cluster_uid(pair.target)
    assert objects.annotations(target)[keys.CONFIRM_CLUSTER] == uid


async def test_a_token_that_the_target_does_not_accept_any_more_is_replaced(pair: Pair) -> None:
    pair.connect()
    before = await pair.kubeconfig()
    name = (await identity.identity(pair.source)).name
    await pair.target.delete(kinds.SERVICE_ACCOUNTS, name, pair.namespace)
    again = pair.connect()
    assert f"serviceaccount/{name} created" in again.out
    assert "issued" in again.out
    assert await pair.kubeconfig() != before


async def test_a_token_of_an_account_that_ended_is_replaced_though_it_is_still_accepted(
    pair: Pair,
) -> None:
    """An API server remembers for ten seconds whom a token is of."""
    pair.connect()
    before = await pair.kubeconfig()
    name = (await identity.identity(pair.source)).name
    async with Client(
        endpoint.from_kubeconfig(Kubeconfig.parse(before, kubeconfigs.CONTEXT)), name="c2"
    ) as client:
        with pytest.raises(Denied):  # it is known, and has no rights yet
            await client.list(kinds.POD_CHAPERONS, pair.namespace)

    await pair.target.delete(kinds.SERVICE_ACCOUNTS, name, pair.namespace)
    assert "issued" in pair.connect().out


async def test_a_connection_that_exists_keeps_the_name_of_its_source(pair: Pair) -> None:
    assert pair.connect("--cluster-name", "chosen").code == 0
    again = pair.connect()
    assert "source/chosen unchanged" in again.out
    assert "created" not in again.out


async def test_the_token_lives_as_long_as_asked(pair: Pair) -> None:
    assert pair.connect("--token-lifetime", "7200").code == 0  # as 2h: a number is seconds
    token = kubeconfigs.token_in(await pair.kubeconfig())
    issued, ends = kubeconfigs.lifetime(token or "") or (0, 0)
    assert ends - issued == 7200


async def test_another_address_and_name_can_be_given(pair: Pair) -> None:
    server = "https://192.0.2.1:6443"
    assert pair.connect("--name", "west", "--server", server).code == 0
    target = await pair.source.get(kinds.TARGETS, "west", pair.namespace)
    secret = objects.spec(target)["kubeconfigSecret"]
    assert secret == {"name": "vnode-target-west", "key": "config", "context": "target"}
    stored = await pair.source.get(kinds.SECRETS, "vnode-target-west", pair.namespace)
    assert server.encode() in base64.b64decode(stored["data"]["config"])


async def test_the_namespace_is_enabled_only_when_asked(pair: Pair) -> None:
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    output = pair.connect()
    assert f"kubectl label namespace {pair.namespace} {label}={value}" in output.out
    namespace = await pair.source.get(kinds.NAMESPACES, pair.namespace)
    assert label not in objects.labels(namespace)
    pair.connect("--enable-namespace")
    namespace = await pair.source.get(kinds.NAMESPACES, pair.namespace)
    assert objects.labels(namespace)[label] == value


IN = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}


async def test_a_target_that_would_drop_the_selector_gets_no_cluster_source(pair: Pair) -> None:
    """As one with the CRDs of Admiralty, or of an older release, would."""
    name = "clustersources.multicluster.admiralty.io"
    crd = await pair.target.get(kinds.CRDS, name)
    (version,) = objects.spec(crd)["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    selector = fields.pop("namespaceSelector")
    where = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/namespaceSelector"
    await pair.target.json_patch(kinds.CRDS, name, [{"op": "remove", "path": where}])
    try:
        words = ("--cluster-wide", "--agent-namespace", pair.namespace)
        named = ("--name", pair.namespace, "--cluster-name", pair.namespace)
        async with asyncio.timeout(kit.PATIENCE):
            while "does not know" not in (refused := connect(pair.fleet, *words, *named)).err:
                await pair.target.delete(kinds.CLUSTER_SOURCES, pair.namespace)

        assert refused.code == 1
        assert "vnode install" in refused.err
        with pytest.raises(NotFound):
            await pair.target.get(kinds.CLUSTER_SOURCES, pair.namespace)
    finally:
        put_back = [{"op": "add", "path": where, "value": selector}]
        await pair.target.json_patch(kinds.CRDS, name, put_back)


async def test_cluster_wide_names_the_namespace_of_account_and_secret(pair: Pair) -> None:
    words = ("--cluster-wide", "--agent-namespace", pair.namespace)
    named = ("--name", pair.namespace, "--cluster-name", pair.namespace)
    done = connect(pair.fleet, *words, *named)
    assert done.code == 0, done.err
    target = await pair.source.get(kinds.CLUSTER_TARGETS, pair.namespace)
    assert objects.spec(target)["kubeconfigSecret"]["namespace"] == pair.namespace
    source = await pair.target.get(kinds.CLUSTER_SOURCES, pair.namespace)
    account = {"name": pair.namespace, "namespace": pair.namespace}
    labelled = {"matchLabels": {"vnode.dev/cluster-sources": "enabled"}}
    assert objects.spec(source) == {"serviceAccount": account, "namespaceSelector": labelled}
    assert "kubectl label namespace NAMESPACE vnode.dev/cluster-sources=enabled" in done.out
    everything = connect(pair.fleet, *words, *named, "--grant-all-namespaces")
    assert "as good as cluster-admin" in everything.out
    for given, selector in (((), None), (("--target-namespaces", "a in (b,c)"), IN), ((), IN)):
        again = connect(pair.fleet, *words, *named, *given)
        assert again.code == 0, again.err
        source = await pair.target.get(kinds.CLUSTER_SOURCES, pair.namespace)
        assert objects.spec(source).get("namespaceSelector") == selector

    await pair.source.delete(kinds.CLUSTER_TARGETS, pair.namespace)
    await pair.target.delete(kinds.CLUSTER_SOURCES, pair.namespace)


async def test_a_cluster_may_be_its_own_target(pair: Pair) -> None:
    file = pair.fleet.kubeconfig(SOURCE)
    words = ("--namespace", pair.namespace, "--name", "self")
    done = vnode("connect", "--source", file, "--target", file, *words)
    assert done.code == 0, done.err
    target = await pair.source.get(kinds.TARGETS, "self", pair.namespace)
    assert objects.spec(target) == {"self": True}


async def test_a_target_that_is_the_source_itself_is_not_turned_into_another(pair: Pair) -> None:
    file = pair.fleet.kubeconfig(SOURCE)
    words = ("--namespace", pair.namespace, "--name", "c2")
    assert vnode("connect", "--source", file, "--target", file, *words).code == 0
    refused = pair.connect()
    assert refused.code == 1
    assert "--name" in refused.err


async def test_the_name_of_another_source_cluster_is_refused(pair: Pair) -> None:
    pair.connect()
    note = {"metadata": {"annotations": {keys.PARENT_CLUSTER_UID: "another"}}}
    name = (await identity.identity(pair.source)).name
    await pair.target.patch(kinds.SOURCES, name, note, pair.namespace)
    refused = pair.connect()
    assert refused.code == 1
    assert "--cluster-name" in refused.err


async def test_a_namespace_that_is_not_there_is_named_with_its_side(pair: Pair) -> None:
    only_here = await kit.new_namespace(pair.source, f"{pair.namespace}-here")
    for name, side in ((only_here, "target"), ("nowhere", "source")):
        refused = replace(pair, namespace=name).connect()
        assert refused.code == 1
        assert f"the {side} cluster has no namespace {name!r}" in refused.err
        assert f"create namespace {name}" in refused.err


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("--token-lifetime", "1m"), 2, "write 10m or more"),
        (("--server", "http://192.0.2.1"), 1, "https://"),
        (("--name", "Not_A_Name"), 1, "use lower case letters"),
        (("--source-context", "other"), 1, "no context named 'other'"),
        (("--cluster-wide", "--namespace", "a"), 2, "exclude each other"),
        (("--target-namespaces", "a=b"), 2, "are for --cluster-wide"),
        (("--cluster-wide", "--target-namespaces", "a in ("), 1, "--target-namespaces: "),
        (
            ("--cluster-wide", "--target-namespaces", "a", "--grant-all-namespaces"),
            2,
            "exclude each other",
        ),
        (("--cluster-wide", "--enable-namespace"), 2, "one namespace"),
    ],
)
def test_wrong_input_is_one_line_with_the_cure(
    fleet: Fleet, words: tuple[str, ...], code: int, hint: str
) -> None:
    failed = connect(fleet, *words)
    assert failed.code == code
    assert hint in failed.err
    assert "Traceback" not in failed.err
