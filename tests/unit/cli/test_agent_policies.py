"""The admission policies that hold the agent to what is marked as vnode's, before they meet an API
server."""

from __future__ import annotations

import pytest

from vnode.api import keys, kinds, names, objects
from vnode.cli import manifests
from vnode.runtime import manifest_key
from vnode.runtime.certs import authority, issued
from vnode.targets import source_rbac

AUTHORS = "vnode-authors"
"""The only policy about what users write."""
ALL = {
    objects.name(obj): objects.spec(obj)
    for obj in manifests.policies("agents")
    if manifests.kind_of(obj) is kinds.VALIDATING_POLICIES
}
POLICIES = {name: spec for name, spec in ALL.items() if name != AUTHORS}
BINDINGS = {
    objects.name(obj): objects.spec(obj)
    for obj in manifests.policies("agents")
    if manifests.kind_of(obj) is kinds.VALIDATING_POLICY_BINDINGS
}


def texts(name):
    """Return all expressions of a policy, as one text."""
    spec = POLICIES[name]
    parts = [*(spec.get("variables") or ()), *spec["validations"]]
    return "\n".join(part["expression"] for part in parts)


@pytest.mark.parametrize("name", POLICIES)
def test_each_policy_denies_and_is_about_the_agents_account_only(name):
    spec = POLICIES[name]
    assert BINDINGS[name] == {"policyName": name, "validationActions": ["Deny"]}
    assert spec["failurePolicy"] == "Fail"
    [condition] = spec["matchConditions"]
    account = "system:serviceaccount:agents:vnode"
    assert condition["expression"] == f'request.userInfo.username == "{account}"'


@pytest.mark.parametrize("name", POLICIES)
def test_each_refusal_says_who_and_what_and_is_no_reason_to_try_something_else(name):
    """`Invalid`, the default, has the agent delete a role binding and make it again."""
    for validation in POLICIES[name]["validations"]:
        assert validation["reason"] == "Forbidden"
        assert "agent of vnode" in validation["message"]


def test_no_policy_is_without_a_binding():
    assert ALL.keys() == BINDINGS.keys()


def test_the_author_of_a_request_is_held_to_who_creates_it_whoever_that_is():
    spec = ALL[AUTHORS]
    assert BINDINGS[AUTHORS] == {"policyName": AUTHORS, "validationActions": ["Deny"]}
    assert spec["failurePolicy"] == "Fail"
    assert "matchConditions" not in spec
    [rule] = spec["matchConstraints"]["resourceRules"]
    assert rule["resources"] == [kinds.AUTH_TOKEN_REQUESTS.plural]
    for validation in spec["validations"]:
        assert validation["reason"] == "Forbidden"


@pytest.mark.parametrize(
    ("policy", "marks"),
    [
        ("vnode-agent-nodes", [keys.PROVIDER_LABEL, keys.PROVIDER]),
        (
            "vnode-agent-role-bindings",
            [source_rbac.MADE_FOR_SOURCE, source_rbac.SOURCE_ROLE, source_rbac.VIEWER_ROLE],
        ),
        (
            "vnode-agent-pods",
            [keys.PROXY_SCHEDULER, keys.PARENT_UID, kinds.POD_CHAPERONS.kind, kinds.MULTICLUSTER],
        ),
        (
            "vnode-agent-secrets",
            [
                authority.SECRET,
                issued.CLIENT,
                manifest_key.SECRET,
                keys.ISSUED,
                keys.RENEW_TOKEN,
            ],
        ),
        (
            "vnode-agent-services",
            [keys.ADDRESSES, *keys.CILIUM_GLOBAL, keys.ORIGINAL_SELECTOR, keys.HAS_FINALIZER],
        ),
        (
            "vnode-agent-made-objects",
            [keys.TARGET_SET, keys.PUBLISHED_BY, keys.PUBLISHED_SCORES, keys.MULTIKUEUE],
        ),
        ("vnode-agent-answers", [keys.PLACEMENT_CHECK]),
        ("vnode-agent-service-accounts", [kinds.SOURCES.kind, kinds.CLUSTER_SOURCES.kind]),
    ],
)
def test_the_marks_that_a_policy_looks_for_are_those_that_vnode_writes(policy, marks):
    for mark in marks:
        assert mark in texts(policy)


@pytest.mark.parametrize(
    "policy", ["vnode-agent-nodes", "vnode-agent-node-leases", "vnode-agent-pods"]
)
def test_policies_know_virtual_nodes_by_their_names(policy):
    assert 'startsWith("admiralty-")' in texts(policy)
    assert names.may_be_virtual_node("admiralty-gpu")


OTHERS = (
    "vnode-candidate-scheduler",
    "vnode-admin",
    "vnode-edit",
    "vnode-override-editor",
    "admiralty-source",
    "admiralty-cluster-summary-viewer",
    "vnode-source-namespaces",
    "vnode-source-network-policies",
    "vnode-source-service-accounts",
    "vnode-issuing-target",
)
"""Roles of users, sources and the scheduler, which are not for the agent in its own cluster."""


def test_what_the_agent_may_write_in_the_whole_cluster_is_held_by_a_policy_or_is_vnodes_own():
    """A right to write what others have, without a policy, is named here with the reason.

    That goes for what an administrator may bind to it, too.
    """
    held = {
        resource
        for spec in POLICIES.values()
        for rule in spec["matchConstraints"]["resourceRules"]
        for resource in rule["resources"]
    }
    free = {
        "pods/binding": "a policy does not see the pod",
        "pods/eviction": "a policy does not see the pod",
        "events": "they are about anything",
        "podgroups/status": "it tells what the agent decides, and nobody acts on it but its owner",
        "mutatingwebhookconfigurations": "no policy is asked about those",
        "tokenreviews": "a question",
        "subjectaccessreviews": "a question",
        "clusterroles": "the verb bind, of three roles",
        "pods/exec": "streams, where the cluster is its own target",
        "pods/attach": "likewise",
        "pods/portforward": "likewise",
        "serviceaccounts/token": "bound by an administrator, for the accounts concerned",
        "certificatesigningrequests/approval": "bound by an administrator, for one signer",
        "signers": "likewise",
    }
    ours = (kinds.MULTICLUSTER, kinds.VNODE)
    for role in manifests.rbac("agents"):
        if role["kind"] != "ClusterRole" or objects.name(role) in OTHERS:
            continue

        for rule in role["rules"]:
            writes = set(rule["verbs"]) - {"get", "list", "watch"}
            if writes and not set(rule["apiGroups"]) <= set(ours):
                assert set(rule["resources"]) <= held | free.keys(), rule


def test_what_an_administrator_binds_to_the_agent_writes_marked_objects_only():
    held = {
        resource
        for rule in POLICIES["vnode-agent-made-objects"]["matchConstraints"]["resourceRules"]
        for resource in rule["resources"]
    }
    roles = ("vnode-published-scores", "vnode-multikueue", "vnode-published-decisions")
    for role in manifests.rbac("agents"):
        if objects.name(role) not in roles:
            continue

        for rule in role["rules"]:
            if set(rule["verbs"]) - {"get", "list", "watch"}:
                assert set(rule["resources"]) <= held, rule


@pytest.mark.parametrize(
    "policy", ["vnode-agent-webhooks", "vnode-agent-specs", "vnode-agent-secrets"]
)
def test_nothing_of_others_gets_an_owner_that_has_it_collected(policy):
    same = "object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences"

    assert same in texts(policy)
