"""What the rendered chart lets the agent do, and where."""

from __future__ import annotations

import pytest

from tests.chart.helm import one, template
from tests.chart.matrix import MATRIX, NAMESPACE
from vnode.api import objects
from vnode.api.objects import Objects
from vnode.cli import scoped_rights


def test_without_the_source_controller_nobody_may_make_role_bindings() -> None:
    objs = template({"sourceController": {"enabled": False}})
    bound = {obj["roleRef"]["name"] for obj in objs if obj["kind"].endswith("RoleBinding")}
    roles = [
        obj
        for obj in objs
        if obj["kind"] in ("ClusterRole", "Role") and obj["metadata"]["name"] in bound
    ]
    resources = {r for role in roles for rule in role["rules"] for r in rule.get("resources", ())}
    assert "pods" in resources
    assert not resources & {"rolebindings", "clusterrolebindings", "clusterroles"}


@pytest.mark.parametrize("name", [name for name in MATRIX if "named namespaces" in name])
def test_an_agent_that_is_held_to_namespaces_has_no_right_to_what_is_in_others(
    rendered: dict[str, Objects], name: str
) -> None:
    roles = {(obj["kind"], objects.key(obj)): obj for obj in rendered[name] if "rules" in obj}
    places: dict[str, set[str]] = {}
    for binding in rendered[name]:
        if any(subject["name"] == "vnode" for subject in binding.get("subjects", ())):
            place = objects.namespace(binding)
            role = (binding["roleRef"]["kind"], objects.join_key(place, binding["roleRef"]["name"]))
            if binding["roleRef"]["kind"] == "ClusterRole":
                role = ("ClusterRole", binding["roleRef"]["name"])

            for rule in roles.get(role, {"rules": ()})["rules"]:
                for resource in rule.get("resources", ()):
                    places.setdefault(resource, set()).add(place)

    named = set(MATRIX[name]["namespaces"])
    assert places["pods"] == named
    assert places["configmaps"] == named
    assert places["secrets"] == {*named, NAMESPACE}
    assert places["leases"] == {NAMESPACE, "kube-node-lease"}
    assert places["events"] == {*named, "default"}
    cluster_wide = {resource for resource, where in places.items() if "" in where}
    named_ones = {"roles", "rolebindings"}  # those of the agent itself, for their finalizers
    known = {*scoped_rights.CLUSTER_SCOPED, *named_ones}
    assert {resource.partition("/")[0] for resource in cluster_wide} <= known
    assert {"nodes", "namespaces", "clustertargets", "subjectaccessreviews"} <= cluster_wide


def test_an_agent_that_is_held_to_namespaces_sees_no_pod_of_others(
    rendered: dict[str, Objects],
) -> None:
    configuration = one(rendered["named namespaces"], "MutatingWebhookConfiguration")
    for hook in configuration["webhooks"]:
        [named] = [
            each["values"]
            for each in hook["namespaceSelector"]["matchExpressions"]
            if (each["key"], each["operator"]) == ("kubernetes.io/metadata.name", "In")
        ]
        assert named == ["default", "kube-public"]


def test_a_cluster_that_is_no_target_has_no_account_of_a_scheduler(
    rendered: dict[str, Objects],
) -> None:
    names = [objects.name(obj) for obj in rendered["source only"]]
    assert not [name for name in names if "candidate-scheduler" in name]


def test_rights_to_issue_tokens_are_given_where_that_is_turned_on(
    rendered: dict[str, Objects],
) -> None:
    def bound(name: str) -> set[tuple[str, str]]:
        return {
            (obj["roleRef"]["name"], obj["metadata"].get("namespace", ""))
            for obj in rendered[name]
            if obj["kind"].endswith("RoleBinding") and "issu" in obj["roleRef"]["name"]
        }

    assert bound("defaults") == set()
    assert bound("issuing") == {("vnode-issuing", ""), ("vnode-issued-secrets", "default")}
    assert bound("named namespaces and all that is optional") == {
        ("vnode-issuing", ""),
        ("vnode-issuing", "default"),
        ("vnode-issued-secrets", "default"),
    }


def test_rights_about_decisions_are_given_where_that_is_turned_on(
    rendered: dict[str, Objects],
) -> None:
    def bound(name: str) -> set[str]:
        roles = {o["roleRef"]["name"] for o in rendered[name] if o["kind"] == "ClusterRoleBinding"}
        return {role for role in roles if "decisions" in role}

    assert bound("defaults") == set()
    assert bound("decisions") == {"vnode-decisions", "vnode-published-decisions"}


def test_rights_to_make_targets_are_given_where_that_is_turned_on(
    rendered: dict[str, Objects],
) -> None:
    def is_bound(name: str) -> bool:
        roles = [each.get("roleRef", {}).get("name") for each in rendered[name]]
        return "vnode-target-sets" in roles

    assert not is_bound("defaults")
    assert is_bound("target sets")


def test_rights_to_answer_for_kueue_are_given_where_that_is_turned_on(
    rendered: dict[str, Objects],
) -> None:
    def is_bound(name: str) -> bool:
        roles = [each.get("roleRef", {}).get("name") for each in rendered[name]]
        return {"vnode-kueue", "vnode-multikueue"} <= set(roles)

    assert not is_bound("defaults")
    assert is_bound("kueue")


def test_rights_about_scores_are_given_where_that_is_turned_on(
    rendered: dict[str, Objects],
) -> None:
    def bound(name: str) -> set[str]:
        roles = {o["roleRef"]["name"] for o in rendered[name] if o["kind"] == "ClusterRoleBinding"}
        return {role for role in roles if "scores" in role}

    assert bound("defaults") == set()
    assert bound("scores") == {"vnode-scores", "vnode-published-scores"}


def test_rights_to_read_managed_clusters_are_given_where_that_is_turned_on(
    rendered: dict[str, Objects],
) -> None:
    def is_bound(name: str) -> bool:
        roles = [each.get("roleRef", {}).get("name") for each in rendered[name]]
        return "vnode-managed-clusters" in roles

    assert not is_bound("defaults")
    assert is_bound("managed clusters")
