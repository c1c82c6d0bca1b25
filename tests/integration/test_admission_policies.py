"""What administrators of a source forbid holds for elected pods, which the webhook changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import yaml

from tests import kit
from vnode.api import errors, kinds, objects, pod_terms
from vnode.api.objects import Object
from vnode.kube.client import Client

REQUIRED, PREFERRED = pod_terms.REQUIRED, pod_terms.PREFERRED
CROSSING: Final = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "db"}},
    "namespaces": ["default"],
}


def affine(name: str, which: str, when: str, **term: Any) -> Object:
    """Return an elected pod with a term about pods of another namespace."""
    entry = {**CROSSING, **term}
    wish = entry if when == REQUIRED else {"weight": 7, "podAffinityTerm": entry}
    return kit.pod(name, affinity={which: {when: [wish]}})


async def test_a_quota_of_pod_affinity_across_namespaces_counts_elected_pods(
    webhook_client: Client, webhook_namespace: str
) -> None:
    client, namespace = webhook_client, webhook_namespace
    forms = [(w, x) for w in ("podAffinity", "podAntiAffinity") for x in (REQUIRED, PREFERRED)]
    scope = {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
    hard = {"pods": str(len(forms) + 1)}
    quota = {
        "metadata": {"name": "crossing"},
        "spec": {"hard": hard, "scopeSelector": {"matchExpressions": [scope]}},
        "status": {"hard": hard, "used": {"pods": "0"}},
    }
    await client.create(kinds.RESOURCE_QUOTAS, quota, namespace)
    await kit.until_one(
        client,
        kinds.RESOURCE_QUOTAS,
        "crossing",
        namespace,
        lambda q: objects.status(q).get("hard") == hard,
    )
    for number, (which, when) in enumerate(forms):
        made = await client.create(kinds.PODS, affine(f"p{number}", which, when), namespace)
        (listed,) = objects.spec(made)["affinity"][which].values()
        (term,) = (entry.get("podAffinityTerm") or entry for entry in listed)
        assert term == {k: v for k, v in CROSSING.items() if k != "labelSelector"}

    everywhere = affine("p", "podAffinity", REQUIRED, namespaces=None, namespaceSelector={})
    await client.create(kinds.PODS, everywhere, namespace)
    with pytest.raises(errors.Denied) as caught:
        await client.create(kinds.PODS, affine("more", "podAffinity", REQUIRED), namespace)

    assert "exceeded quota: crossing, requested: pods=1" in caught.value.message
    within = affine("within", "podAffinity", REQUIRED, namespaces=None)
    made = await client.create(kinds.PODS, within, namespace)
    assert "affinity" not in objects.spec(made)


async def test_a_policy_reads_what_the_user_wrote(
    webhook_client: Client, webhook_namespace: str
) -> None:
    client, namespace = webhook_client, webhook_namespace
    text = (kit.ROOT / "docs" / "security.md").read_text()
    _, _, rest = text.partition("```yaml\n# no-gold-nodes.yaml\n")
    policy, binding = yaml.safe_load_all(rest.partition("```")[0])
    selected = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding["spec"]["matchResources"] = {"namespaceSelector": selected}
    await client.create(kinds.VALIDATING_POLICIES, policy)
    await client.create(kinds.VALIDATING_POLICY_BINDINGS, binding)
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gold"]}]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    try:
        for body in (
            kit.pod("gold", nodeSelector={"pool": "gold"}),
            kit.pod("gold", affinity=affinity),
            kit.pod("gold", annotations={}, nodeSelector={"pool": "gold"}),
        ):
            message = await until_denied(client, body, namespace)
            assert message.endswith("nodes of the pool gold are not for this namespace")

        silver = kit.pod("silver", nodeSelector={"pool": "silver"})
        silver["metadata"]["annotations"]["note"] = '"pool":"gold"'
        await client.create(kinds.PODS, silver, namespace)
    finally:
        await client.delete(kinds.VALIDATING_POLICY_BINDINGS, objects.name(binding))
        await client.delete(kinds.VALIDATING_POLICIES, objects.name(policy))


# What libraries of policies forbid, by its name: how they say it, and a pod that it is about.
STAYS: Final[dict[str, tuple[str, Object]]] = {
    "host-path": (
        "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))",
        {"volumes": [{"name": "host", "hostPath": {"path": "/etc"}}]},
    ),
    "host-namespaces": (
        "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false)",
        {"hostPID": True},
    ),
    "critical": (
        "object.spec.?priorityClassName.orValue('') != 'system-node-critical'",
        {"priorityClassName": "system-node-critical"},
    ),
}
WRITTEN: Final = "variables.written"
MOVES: Final[dict[str, tuple[str, Object]]] = {
    "node-selection": (
        f"""(object.spec.?schedulerName.orValue('') == 'admiralty-proxy' ||
            (!has(object.spec.nodeSelector) && !has(object.spec.?affinity.nodeAffinity))) &&
            !{WRITTEN}.contains('"nodeSelector":{{') && !{WRITTEN}.contains('"nodeAffinity":{{')""",
        {"nodeSelector": {"disk": "ssd"}},
    ),
    "control-plane": (
        f"""object.spec.?tolerations.orValue([]).all(t,
              t.?key.orValue('') != 'node-role.kubernetes.io/control-plane') &&
            !{WRITTEN}.contains('"key":"node-role.kubernetes.io/control-plane"')""",
        {"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]},
    ),
}


@pytest.mark.parametrize("name", [*STAYS, *MOVES])
async def test_what_libraries_of_policies_forbid_is_forbidden_to_elected_pods(
    webhook_client: Client, webhook_namespace: str, name: str
) -> None:
    client, namespace = webhook_client, webhook_namespace
    expression, forbidden = (STAYS | MOVES)[name]
    async with enforced(client, namespace, name, expression):
        for body in (
            kit.pod("forbidden", **forbidden),
            kit.pod("forbidden", annotations={}, **forbidden),
        ):
            assert name in await until_denied(client, body, namespace)

        await client.create(kinds.PODS, kit.pod("allowed"), namespace)


async def test_a_policy_against_any_node_selector_refuses_each_elected_pod(
    webhook_client: Client, webhook_namespace: str
) -> None:
    client, namespace = webhook_client, webhook_namespace
    async with enforced(client, namespace, "any", "!has(object.spec.nodeSelector)"):
        assert "any" in await until_denied(client, kit.pod("plain"), namespace)
        await client.create(kinds.PODS, kit.pod("plain", annotations={}), namespace)


@asynccontextmanager
async def enforced(
    client: Client, namespace: str, name: str, expression: str
) -> AsyncIterator[None]:
    """Have pods of a namespace held to a policy of that name within the block."""
    written = "object.metadata.?annotations[?'multicluster.admiralty.io/sourcepod-manifest']"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [{"name": "written", "expression": f"{written}.orValue('')"}],
        "validations": [{"expression": expression, "message": f"{name} is forbidden"}],
    }
    selected = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": selected},
    }
    metadata = {"name": name}
    await client.create(kinds.VALIDATING_POLICIES, {"metadata": metadata, "spec": spec})
    await client.create(kinds.VALIDATING_POLICY_BINDINGS, {"metadata": metadata, "spec": binding})
    try:
        yield
    finally:
        await client.delete(kinds.VALIDATING_POLICY_BINDINGS, name)
        await client.delete(kinds.VALIDATING_POLICIES, name)


async def until_denied(client: Client, body: Object, namespace: str) -> str:
    """Try until a policy refuses a pod, and return its message: policies hold with a delay."""
    while True:
        try:
            query = {"dryRun": "All"}
            full = {**body, "apiVersion": "v1", "kind": "Pod"}
            await client.request("POST", kinds.PODS.path(namespace), query=query, body=full)
        except (errors.Denied, errors.Invalid) as error:
            return error.message

        await asyncio.sleep(0.1)
