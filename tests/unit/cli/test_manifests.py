"""The manifests that ship with vnode, before they meet an API server."""

from __future__ import annotations

import pytest

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError
from vnode.cli import manifests
from vnode.kube import leases
from vnode.nodes import candidate_scheduler
from vnode.runtime.leader import AGENT_LEASE
from vnode.targets import source_rbac

KINDS = [
    kinds.TARGETS,
    kinds.CLUSTER_TARGETS,
    kinds.SOURCES,
    kinds.CLUSTER_SOURCES,
    kinds.POD_CHAPERONS,
    kinds.CLUSTER_SUMMARIES,
    kinds.OVERRIDE_POLICIES,
    kinds.CLUSTER_OVERRIDE_POLICIES,
    kinds.PLACEMENT_POLICIES,
    kinds.CLUSTER_PLACEMENT_POLICIES,
    kinds.REBALANCES,
    kinds.AUTH_TOKEN_REQUESTS,
    kinds.TARGET_SETS,
    kinds.CLUSTER_TARGET_SETS,
    kinds.CLUSTER_SCORES,
]


def described(schema, path=""):
    """Yield the path of each property that has no description."""
    for name, child in (schema.get("properties") or {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue

        if "description" not in child:
            yield f"{path}.{name}"

        yield from described(child, f"{path}.{name}")
        yield from described(child.get("items") or {}, f"{path}.{name}[]")


def test_each_kind_of_the_code_has_its_definition():
    by_name = {objects.name(crd): objects.spec(crd) for crd in manifests.crds()}
    assert by_name.keys() == {kind.resource for kind in KINDS}
    for kind in KINDS:
        spec = by_name[kind.resource]
        assert spec["group"] == kind.group
        assert spec["names"]["kind"] == kind.kind
        assert spec["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
        assert [version["name"] for version in spec["versions"]] == [kind.version]


def test_columns_of_type_date_are_of_moments_that_are_past():
    """kubectl prints how long ago they were, and `<invalid>` for what is to come."""
    for crd in manifests.crds():
        [version] = objects.spec(crd)["versions"]
        for column in version["additionalPrinterColumns"]:
            if column["type"] == "date":
                assert column["jsonPath"] == ".metadata.creationTimestamp"


def test_the_message_beside_ready_is_its_own():
    """Tools show all columns: a message of another condition would not say why it is False."""
    for crd in manifests.crds():
        [version] = objects.spec(crd)["versions"]
        columns = {one["name"]: one["jsonPath"] for one in version["additionalPrinterColumns"]}
        if "Ready" in columns:
            assert columns["Message"] == '.status.conditions[?(@.type=="Ready")].message'


def test_every_field_of_the_schemas_is_described():
    for crd in manifests.crds():
        [version] = objects.spec(crd)["versions"]
        schema = version["schema"]["openAPIV3Schema"]
        assert "description" in schema
        assert list(described(schema)) == []


def test_another_namespace_moves_all_that_is_ours_and_nothing_else():
    places = set()
    for obj in manifests.rbac("other"):
        places.add(objects.namespace(obj))
        places.update(subject["namespace"] for subject in obj.get("subjects", ()))

    assert places == {"other", "kube-system", "kube-node-lease", ""}
    assert objects.name(manifests.namespace("other")) == "other"


def test_all_that_is_bound_comes_before_what_binds_it():
    objs = manifests.everything("vnode", manifests.webhook("vnode"))
    kinds_in_order = [obj["kind"] for obj in objs]
    assert kinds_in_order[0] == "Namespace"
    assert kinds_in_order[-1] == "MutatingWebhookConfiguration"
    known = set()
    for obj in objs:
        if role := obj.get("roleRef"):
            upstream = role["name"].startswith(("system:", "extension-"))
            assert upstream or (role["kind"], role["name"]) in known

        known.add((obj["kind"], objects.name(obj)))


def test_rights_for_self_targets_are_bound_only_if_they_are_asked_for():
    hook = manifests.webhook("other")
    without, bound = (
        {
            objects.name(obj): obj
            for obj in manifests.everything("other", hook, allow_self_targets=x)
        }
        for x in (False, True)
    )
    assert bound.keys() - without.keys() == {manifests.SELF_TARGETS}
    binding = bound[manifests.SELF_TARGETS]
    assert binding["subjects"][0]["namespace"] == "other"
    [role] = [
        obj for obj in manifests.rbac("other") if obj["metadata"]["name"] == "vnode-self-target"
    ]
    assert binding["roleRef"]["name"] == objects.name(role)
    roles = [obj["roleRef"]["name"] for obj in without.values() if "roleRef" in obj]
    assert objects.name(role) not in roles
    unwanted = [
        {objects.name(obj) for obj in manifests.unwanted(allow_self_targets=x)}
        for x in (False, True)
    ]
    assert unwanted == [
        {manifests.FORMER_BINDING, manifests.SELF_TARGETS},
        {manifests.FORMER_BINDING},
    ]


def test_the_roles_that_sources_are_bound_to_are_there_and_may_be_bound():
    roles = {
        objects.name(obj): obj for obj in manifests.rbac("vnode") if obj["kind"] == "ClusterRole"
    }
    rules = roles["vnode-source-controller"]["rules"]
    [bind] = [rule for rule in rules if "bind" in rule["verbs"]]
    names = {source_rbac.SOURCE_ROLE, source_rbac.VIEWER_ROLE, source_rbac.CLUSTER_ROLE}
    assert set(bind["resourceNames"]) == names
    assert names <= roles.keys()


def test_no_right_is_a_wildcard():
    for obj in manifests.rbac("vnode"):
        for rule in obj.get("rules", ()):
            assert all("*" not in words for words in rule.values())


def test_sources_may_not_touch_pods_themselves():
    [role] = [o for o in manifests.rbac("vnode") if objects.name(o) == source_rbac.SOURCE_ROLE]
    verbs = {v for rule in role["rules"] if "pods" in rule["resources"] for v in rule["verbs"]}
    assert verbs == {"get", "list"}


def test_the_webhook_calls_the_service_or_a_url_and_has_no_bundle():
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    made = manifests.webhook("other", reinvocation="IfNeeded", timeout=5)
    hook, own, _authors = made["webhooks"]
    assert hook["clientConfig"] == {
        "service": {"name": "vnode", "namespace": "other", "port": 443, "path": "/mutate--v1-pod"}
    }
    assert hook["namespaceSelector"]["matchLabels"] == {label: value}
    for each in (hook, own):
        but = each["namespaceSelector"]["matchExpressions"][0]
        assert (but["operator"], but["values"]) == ("NotIn", ["other"])

    assert (hook["reinvocationPolicy"], hook["timeoutSeconds"]) == ("IfNeeded", 5)
    for url in ("https://192.0.2.1:9443", "https://192.0.2.1:9443/mutate--v1-pod"):
        hook, own, authors = manifests.webhook("other", url)["webhooks"]
        assert own["clientConfig"] == {"url": "https://192.0.2.1:9443/keep-own-pods"}
        assert authors["clientConfig"] == {"url": "https://192.0.2.1:9443/record-author"}
        assert hook["clientConfig"] == {"url": "https://192.0.2.1:9443/mutate--v1-pod"}


def test_each_pod_is_shown_to_one_webhook_and_only_those_that_opted_in_depend_on_it():
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    hook, own, _authors = manifests.webhook("other")["webhooks"]
    assert (hook["failurePolicy"], own["failurePolicy"]) == ("Fail", "Ignore")
    excluded = own["namespaceSelector"]["matchExpressions"][1]
    assert excluded == {"key": label, "operator": "NotIn", "values": [value]}


def test_a_webhook_url_without_tls_is_refused():
    with pytest.raises(ConfigError, match="must start with https://"):
        manifests.webhook("vnode", "http://192.0.2.1:9443")


def test_no_account_of_ours_may_write_leases_everywhere():
    """Those in kube-system would decide who leads kube-scheduler and kube-controller-manager."""
    for role in manifests.rbac("vnode"):
        if role["kind"] == "ClusterRole":
            assert not any("leases" in rule.get("resources", ()) for rule in role["rules"])


def test_the_leases_of_agents_are_those_that_they_may_use():
    roles = {objects.name(obj): obj for obj in manifests.rbac("vnode") if obj["kind"] == "Role"}
    assert objects.namespace(roles["vnode-node-leases"]) == leases.NODE_NAMESPACE
    named = [rule["resourceNames"] for rule in roles["vnode"]["rules"] if "resourceNames" in rule]
    assert named == [[AGENT_LEASE], [candidate_scheduler.LEASE]]
    verbs = {name: rule["verbs"] for rule in roles["vnode"]["rules"] for name in _named(rule)}
    assert verbs[candidate_scheduler.LEASE] == ["get"]


def test_the_lease_of_the_candidate_scheduler_is_the_one_it_may_use():
    roles = [obj for obj in manifests.rbac("vnode") if obj["kind"] == "Role"]
    own = [role for role in roles if objects.name(role) == candidate_scheduler.LEASE]
    assert candidate_scheduler.LEASE in {
        name for role in own for rule in role["rules"] for name in _named(rule)
    }


def _named(rule):
    return rule.get("resourceNames", ())
