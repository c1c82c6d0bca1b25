"""The admission policies for the agent's account: whoever has its token is refused what the agent
never does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests import kit
from tests.fleets import SOURCE, vnode
from tests.integration.agent_token import AgentToken
from tests.kit import Fleet
from tests.rights import bind, holder, until_may
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.following import write_back_patches
from vnode.kube import leases
from vnode.kube.client import Client
from vnode.nodes import virtual
from vnode.runtime.certs import authority, csr, keypairs
from vnode.targets import source_rbac
from vnode.targets.source_rbac import Grant

CONTAINERS: Final = [{"name": "c", "image": "example.com/c"}]
RBAC: Final = "rbac.authorization.k8s.io"


@pytest.fixture
async def token(fleet: Fleet, client: Client) -> AsyncIterator[AgentToken]:
    """Yield the agent's token."""
    async with await holder(fleet, SOURCE, client, "vnode", "vnode") as agent:
        yield AgentToken(agent)


async def test_no_policy_has_an_expression_that_its_kinds_do_not_have(
    token: AgentToken, client: Client
) -> None:
    for policy in await client.list(kinds.VALIDATING_POLICIES):
        if objects.name(policy).startswith("vnode-agent-"):
            found = await kit.until_one(
                client,
                kinds.VALIDATING_POLICIES,
                objects.name(policy),
                "",
                lambda p: "typeChecking" in objects.status(p),
            )
            assert objects.status(found)["typeChecking"] == {}, objects.name(found)


async def test_a_machine_is_out_of_reach_and_a_virtual_node_is_not(
    token: AgentToken, client: Client, namespace: str
) -> None:
    machine = f"machine-{namespace}"
    await client.create(kinds.NODES, {"metadata": {"name": machine}})
    target = TargetKey(namespace, "gpu")
    cordon = {"spec": {"unschedulable": True}}
    mark = {"metadata": {"labels": {keys.PROVIDER_LABEL: keys.PROVIDER}}}
    status = {"status": {"conditions": []}}
    for method, body, subresource in (
        ("DELETE", None, None),
        ("PATCH", cordon, None),
        ("PATCH", mark, None),
        ("PATCH", status, "status"),
    ):
        why = await token.refusal(method, kinds.NODES, body, None, machine, subresource)
        assert "the agent of vnode writes virtual nodes only" in why

    await token.refusal("POST", kinds.NODES, {"metadata": {"name": "other", **mark["metadata"]}})
    agent, name = token.client, target.node_name
    node = await agent.create(kinds.NODES, virtual.registration(target))
    await agent.patch(kinds.NODES, name, cordon)
    labels = {**objects.labels(node), "example.com/x": "y"}
    await agent.apply(kinds.NODES, virtual.description(target, labels, 10250))
    offered = {"metadata": {"name": name}, "status": {"capacity": {"cpu": "1"}}}
    await agent.apply(kinds.NODES, offered, subresource="status")
    now = SystemClock().now()
    await leases.renew_for_node(agent, name, objects.uid(node), now)
    await leases.renew_for_node(agent, name, objects.uid(node), now)
    lease = leases.build_for_node(machine, "u", now)
    await token.refusal("POST", kinds.LEASES, lease, leases.NODE_NAMESPACE)
    del lease["metadata"]["ownerReferences"]  # of no Node that is there: it would be collected
    await client.create(kinds.LEASES, lease)
    late = {"spec": {"renewTime": "2000-01-01T00:00:00.000000Z"}}
    await token.refusal("PATCH", kinds.LEASES, late, leases.NODE_NAMESPACE, machine)
    await agent.delete(kinds.NODES, name, uid=objects.uid(node))
    await client.delete(kinds.NODES, machine)


def binding(kind: Kind, role: str, subject: Object, **labels: str) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "b", "labels": labels},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


async def test_bindings_of_others_stay_and_those_of_sources_come_and_go(
    token: AgentToken, client: Client, namespace: str
) -> None:
    user = {"apiGroup": RBAC, "kind": "User", "name": "eve"}
    itself = {"kind": "ServiceAccount", "name": "vnode", "namespace": "vnode"}
    marked = {source_rbac.MADE_FOR_SOURCE: "true"}
    local = kinds.ROLE_BINDINGS
    # The agent has all rights of this role, so that RBAC would let it bind it.
    await client.create(local, binding(local, "vnode", user), namespace)
    why = await token.refusal("DELETE", local, None, namespace, "b")
    assert "delete it yourself" in why
    change = {"metadata": {"labels": marked}}
    await token.refusal("PATCH", local, change, namespace, "b")
    await token.refusal("DELETE", kinds.CLUSTER_ROLE_BINDINGS, None, None, "cluster-admin")
    own = binding(kinds.CLUSTER_ROLE_BINDINGS, "vnode", user, **marked)
    await token.refusal("POST", kinds.CLUSTER_ROLE_BINDINGS, own)
    role = source_rbac.SOURCE_ROLE
    group = {"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}
    account = {"apiGroup": RBAC, "kind": "User", "name": "system:serviceaccount:vnode:vnode"}
    for subject in (itself, group, account):
        why = await token.refusal("POST", local, binding(local, role, subject, **marked), namespace)
        assert "never itself" in why

    await token.refusal("POST", local, binding(local, role, user), namespace)

    agent = token.client
    grant = Grant(namespace, "src", "uid-of-source", "eve", (namespace, "east"))
    await agent.create(kinds.SERVICE_ACCOUNTS, source_rbac.service_account(grant))
    for kind, wanted in source_rbac.bindings(grant):
        # Nobody blocks the end of a Source that is not there.
        wanted["metadata"].pop("ownerReferences", None)
        await agent.apply(kind, wanted)
        await agent.apply(kind, {**wanted, "subjects": [user]})
        await agent.delete(kind, objects.name(wanted), objects.namespace(wanted) or None)


async def test_a_binding_that_admiralty_has_made_is_taken_over(
    token: AgentToken, client: Client, namespace: str
) -> None:
    grant = Grant(namespace, "src", "u", "eve", None)
    kind, wanted = source_rbac.bindings(grant)[0]
    wanted["metadata"].pop("ownerReferences")
    older = {**wanted, "metadata": {"name": objects.name(wanted)}}
    await client.create(kind, older, namespace)
    await token.client.apply(kind, wanted)
    await client.patch(kind, objects.name(wanted), {"metadata": {"labels": None}}, namespace)
    await token.client.delete(kind, objects.name(wanted), namespace)


async def test_an_account_that_no_source_owns_is_not_made(
    token: AgentToken, namespace: str
) -> None:
    body = {"metadata": {"name": "robot"}}
    why = await token.refusal("POST", kinds.SERVICE_ACCOUNTS, body, namespace)
    assert "of Sources only" in why


async def test_pods_of_others_stay_as_they_are(
    token: AgentToken, client: Client, pod_namespace: str
) -> None:
    space, agent = pod_namespace, token.client
    await client.create(
        kinds.PODS, {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}}, space
    )
    ephemeral = {"name": "d", "image": "example.com/d"}
    for method, body, subresource in (
        ("DELETE", None, None),
        ("PATCH", {"metadata": {"labels": {keys.PARENT_UID: "u"}}}, None),
        ("PATCH", {"spec": {"activeDeadlineSeconds": 1}}, None),
        ("PATCH", {"status": {"message": "x"}}, "status"),
        ("PATCH", {"spec": {"ephemeralContainers": [ephemeral]}}, "ephemeralcontainers"),
    ):
        why = await token.refusal(method, kinds.PODS, body, space, "p", subresource)
        assert "makes pods of PodChaperons only" in why

    plain = {"metadata": {"name": "q"}, "spec": {"containers": CONTAINERS}}
    await token.refusal("POST", kinds.PODS, plain, space)

    elected = {"schedulerName": keys.PROXY_SCHEDULER, "containers": CONTAINERS}
    await client.create(kinds.PODS, {"metadata": {"name": "proxy"}, "spec": elected}, space)
    await agent.patch(kinds.PODS, "proxy", {"metadata": {"annotations": {"a": "b"}}}, space)
    await agent.patch(
        kinds.PODS, "proxy", {"status": {"message": "x"}}, space, subresource="status"
    )
    await agent.delete(kinds.PODS, "proxy", space, grace=0)
    stray = {"nodeName": "admiralty-gone", "containers": CONTAINERS}
    await client.create(kinds.PODS, {"metadata": {"name": "stray"}, "spec": stray}, space)
    await agent.delete(kinds.PODS, "stray", space, grace=0)

    kind, sent = (
        kinds.POD_CHAPERONS,
        {"metadata": {"name": "d"}, "spec": {"containers": CONTAINERS}},
    )
    chaperon = await agent.create(kind, sent, space)
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": "d"}
    marks = {"name": "d", "labels": {keys.PARENT_UID: "u"}}
    owned = {**marks, "ownerReferences": [{**owner, "uid": objects.uid(chaperon)}]}
    await agent.create(kinds.PODS, {"metadata": owned, "spec": {"containers": CONTAINERS}}, space)
    await agent.patch(kinds.PODS, "d", {"metadata": {"ownerReferences": []}}, space)
    await agent.patch(
        kinds.PODS, "d", {"metadata": {"ownerReferences": owned["ownerReferences"]}}, space
    )
    await agent.patch(kinds.PODS, "d", {"metadata": {"labels": {keys.PARENT_UID: None}}}, space)
    await agent.delete(kinds.PODS, "d", space, grace=0)


async def test_secrets_that_are_not_marked_stay_and_no_token_is_made_by_one(
    token: AgentToken, client: Client, namespace: str
) -> None:
    agent = token.client
    await client.create(
        kinds.ROLE_BINDINGS,
        binding(
            kinds.ROLE_BINDINGS,
            "vnode-issued-secrets",
            {"kind": "ServiceAccount", "name": "vnode", "namespace": "vnode"},
        ),
        namespace,
    )
    user = "system:serviceaccount:vnode:vnode"
    await until_may(client, user, f"delete /secrets {namespace}")
    await client.create(kinds.SECRETS, {"metadata": {"name": "theirs"}}, namespace)
    data = {"data": {"config": "eA=="}}
    issued = {"labels": {keys.ISSUED: "u"}}
    for method, body in (
        ("DELETE", None),
        ("PATCH", data),
        ("PATCH", {"metadata": issued}),
        ("PATCH", {"metadata": {"annotations": {keys.RENEW_TOKEN: "24h"}}}),
    ):
        await token.refusal(method, kinds.SECRETS, body, namespace, "theirs")

    of_account = {"kubernetes.io/service-account.name": "vnode"}
    minted = {"name": "m", "annotations": of_account}
    type_ = {"type": "kubernetes.io/service-account-token"}
    await token.refusal("POST", kinds.SECRETS, {"metadata": minted, **type_}, "vnode")
    why = await token.refusal(
        "POST", kinds.SECRETS, {"metadata": {**minted, **issued}, **type_}, namespace
    )
    assert "of the types Opaque and kubernetes.io/tls only" in why

    await agent.create(kinds.SECRETS, {"metadata": {"name": "i", **issued}}, namespace)
    await agent.patch(kinds.SECRETS, "i", data, namespace)
    await agent.delete(kinds.SECRETS, "i", namespace)
    renewed = {"name": "r", "annotations": {keys.RENEW_TOKEN: "24h"}}
    await client.create(kinds.SECRETS, {"metadata": renewed}, "vnode")
    await agent.patch(kinds.SECRETS, "r", data, "vnode")
    await client.delete(kinds.SECRETS, "r", "vnode")
    own = authority.secret_of(
        "vnode", "vnode-candidate-scheduler", {"tls.crt": b"", "tls.key": b""}
    )
    await agent.apply(kinds.SECRETS, own)
    await client.delete(kinds.SECRETS, "vnode-candidate-scheduler", "vnode")


async def test_of_services_and_ingresses_marks_are_written_and_nothing_else(
    token: AgentToken, client: Client, namespace: str
) -> None:
    spec = {"type": "LoadBalancer", "selector": {"app": "a"}, "ports": [{"port": 80}]}
    await client.create(
        kinds.SERVICES,
        {"metadata": {"name": "s", "finalizers": ["x.dev/y"]}, "spec": spec},
        namespace,
    )
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    await client.create(
        kinds.INGRESSES, {"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}}, namespace
    )
    agent = token.client
    for body in (
        {"spec": {"selector": {"app": "evil"}}},
        {"spec": {"externalIPs": ["192.0.2.1"]}},
        {"metadata": {"annotations": {"example.com/x": "y"}}},
        {"metadata": {"annotations": {keys.ORIGINAL_SELECTOR: "app=evil"}}},
        {"metadata": {"labels": {"x": "y"}}},
        {"metadata": {"finalizers": []}},
        {"metadata": {"finalizers": ["x.dev/y", "x.dev/z"]}},
    ):
        await token.refusal("PATCH", kinds.SERVICES, body, namespace, "s")

    elsewhere = {"service": {"name": "evil", "port": {"number": 80}}}
    rerouting = {"spec": {"defaultBackend": elsewhere}}
    await token.refusal("PATCH", kinds.INGRESSES, rerouting, namespace, "i")

    for kind, name in ((kinds.SERVICES, "s"), (kinds.INGRESSES, "i")):
        obj = await client.get(kind, name, namespace)
        copy = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
        is_service = kind is kinds.SERVICES
        written = write_back_patches.addresses(
            obj, {"n": copy}, lambda _node: True, is_service=is_service
        )
        await agent.patch(kind, name, written, namespace, subresource="status")
        obj = await client.get(kind, name, namespace)
        gone = write_back_patches.addresses(obj, {}, lambda _node: False, is_service=is_service)
        assert gone
        await agent.patch(kind, name, gone, namespace, subresource="status")
        await agent.patch(kind, name, write_back_patches.global_marks(obj), namespace)

    rerouted = {
        "metadata": {
            "labels": {keys.HAS_FINALIZER: "true"},
            "annotations": {keys.ORIGINAL_SELECTOR: "app=a"},
            "finalizers": ["x.dev/y", keys.PREFIX + "here"],
        },
        "spec": {"selector": {"app": None, keys.PREFIX + "cluster": "c"}},
    }
    await client.patch(kinds.SERVICES, "s", rerouted, namespace)
    obj = await client.get(kinds.SERVICES, "s", namespace)
    await agent.patch(kinds.SERVICES, "s", write_back_patches.restoration(obj), namespace)
    obj = await client.get(kinds.SERVICES, "s", namespace)
    assert objects.spec(obj)["selector"] == {"app": "a"}
    assert objects.finalizers(obj) == ["x.dev/y"]
    await client.patch(kinds.SERVICES, "s", {"metadata": {"finalizers": []}}, namespace)


async def test_a_target_is_written_only_if_a_set_has_made_it(
    token: AgentToken, client: Client, namespace: str
) -> None:
    name = f"sets-{namespace}"
    await bind(client, name, "vnode-target-sets")
    try:
        user = "system:serviceaccount:vnode:vnode"
        await until_may(client, user, f"delete {kinds.MULTICLUSTER}/targets {namespace}")
        body = {"metadata": {"name": "theirs"}, "spec": {"self": True}}
        await client.create(kinds.TARGETS, body, namespace)
        await token.refusal("DELETE", kinds.TARGETS, None, namespace, "theirs")
        change = {"metadata": {"labels": {keys.TARGET_SET: "s"}}}
        await token.refusal("PATCH", kinds.TARGETS, change, namespace, "theirs")
        await token.refusal("POST", kinds.TARGETS, {**body, "metadata": {"name": "x"}}, namespace)
        made = {
            "metadata": {"name": "made", "labels": {keys.TARGET_SET: "s"}},
            "spec": body["spec"],
        }
        agent = token.client
        await agent.create(kinds.TARGETS, made, namespace)
        await agent.patch(kinds.TARGETS, "made", {"metadata": {"finalizers": []}}, namespace)
        await agent.delete(kinds.TARGETS, "made", namespace)
        status = {"status": {"conditions": []}}
        await agent.patch(kinds.TARGETS, "theirs", status, namespace, subresource="status")
        await client.delete(kinds.TARGETS, "theirs", namespace)
    finally:
        await client.delete(kinds.CLUSTER_ROLE_BINDINGS, name)


async def test_certificates_of_clients_are_not_asked_for(token: AgentToken, client: Client) -> None:
    address = "192.0.2.1"
    request, _key = keypairs.signing_request("system:node:x", "system:nodes", [address])
    served = csr.build(address, "kubernetes.io/kubelet-serving", request, "i")
    spec = {
        **objects.spec(served),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    why = await token.refusal("POST", kinds.CSRS, {"metadata": {"name": "c"}, "spec": spec})
    assert "certificates of servers only" in why
    made = await token.client.create(kinds.CSRS, served)
    await client.delete(kinds.CSRS, objects.name(made))


async def test_nobody_else_is_held_by_the_policies(
    token: AgentToken, client: Client, namespace: str
) -> None:
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, namespace)
    await client.create(kinds.NODES, {"metadata": {"name": namespace}})
    await client.delete(kinds.NODES, namespace)


async def test_the_policies_go_with_the_namespace_of_the_agent(
    fleet: Fleet, client: Client
) -> None:
    file = fleet.kubeconfig(SOURCE)
    assert vnode("install", "--kubeconfig", file, "--namespace", "others").code == 0
    try:
        policy = await client.get(kinds.VALIDATING_POLICIES, "vnode-agent-nodes")
        [condition] = objects.spec(policy)["matchConditions"]
        assert "system:serviceaccount:others:vnode" in condition["expression"]
    finally:
        assert vnode("install", "--kubeconfig", file, "--namespace", "vnode").code == 0
        await client.delete(kinds.NAMESPACES, "others")
