"""From a Source to bindings, without a cluster."""

from __future__ import annotations

import copy

import pytest

from vnode.api import kinds, objects
from vnode.api.errors import ApiError, ConfigError, Denied, NotFound
from vnode.targets import source_rbac, sources


def source(spec, namespace="team-a", name="cluster1"):
    """Return a Source, or a ClusterSource if the namespace is ""."""
    where = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, "uid": "u1", **where}, "spec": spec}


BOTH = source_rbac.parse(source({"serviceAccountName": "sa", "userName": "eve"}))
WIDE = source_rbac.parse(source({"serviceAccount": {"name": "sa", "namespace": "n"}}, ""))


def test_a_source_is_bound_in_its_namespace_and_to_the_summary():
    (local_kind, local), (wide_kind, wide) = source_rbac.bindings(BOTH)
    assert (local_kind, wide_kind) == (kinds.ROLE_BINDINGS, kinds.CLUSTER_ROLE_BINDINGS)
    assert objects.key(local) == "team-a/admiralty-source-cluster1"
    assert objects.key(wide) == "admiralty-source-team-a-cluster1-cluster-summary-viewer-0c63aba1e9"
    assert local["roleRef"]["name"] == "admiralty-source"
    assert wide["roleRef"]["name"] == "admiralty-cluster-summary-viewer"
    assert [subject["kind"] for subject in local["subjects"]] == ["ServiceAccount", "User"]


def test_a_namespaced_source_owns_no_cluster_scoped_binding():
    (_, local), (_, wide) = source_rbac.bindings(BOTH)
    assert objects.controller_uid(local) == "u1"
    assert "ownerReferences" not in wide["metadata"]
    assert list(source_rbac.binding_source(wide)) == ["team-a/cluster1"]


def test_a_cluster_source_is_bound_everywhere_and_owns_its_bindings():
    bindings = source_rbac.bindings(WIDE)
    assert [kind for kind, _ in bindings] == [kinds.CLUSTER_ROLE_BINDINGS] * 2
    assert [objects.name(binding) for _, binding in bindings] == [
        "admiralty-cluster-source-cluster1",
        "admiralty-cluster-source-cluster1-cluster-summary-viewer",
    ]
    assert all(objects.controller_uid(binding) == "u1" for _, binding in bindings)


def test_the_account_of_a_cluster_source_is_where_it_says():
    account = source_rbac.service_account(WIDE)
    assert objects.key(account) == "n/sa"
    assert list(source_rbac.account_namespace(source({}, ""))) == []


@pytest.mark.parametrize("spec", [None, {}, {"userName": ""}, {"serviceAccountName": ""}])
def test_a_source_that_names_nobody_grants_nothing(spec):
    grant = source_rbac.parse(source(spec))
    assert source_rbac.bindings(grant) == []
    assert sources.outcome(grant)[0] == "NoSubject"


@pytest.mark.parametrize("namespace", ["team-a", ""])
def test_who_shows_no_credentials_is_given_nothing(namespace):
    """Who administers a namespace would open what is the cluster's: its summary, and streams."""
    grant = source_rbac.parse(source({"userName": "system:anonymous"}, namespace))
    assert source_rbac.bindings(grant) == []
    assert "system:anonymous is" in sources.outcome(grant)[1]


def test_an_account_without_a_namespace_is_told_the_field():
    broken = source({"serviceAccount": {"name": "sa"}}, "")
    with pytest.raises(ConfigError, match=r"spec\.serviceAccount\.namespace"):
        source_rbac.parse(broken)

    assert list(source_rbac.account_namespace(broken)) == []


def test_what_others_add_to_a_binding_is_no_drift_but_every_change_of_ours_is():
    _, wanted = source_rbac.bindings(BOTH)[0]
    present = copy.deepcopy(wanted)
    present["metadata"]["labels"]["theirs"] = "x"
    assert source_rbac.is_as_wanted(present, wanted)
    for change in (
        {"subjects": wanted["subjects"][:1]},
        {"roleRef": {**wanted["roleRef"], "name": "view"}},
        {"metadata": {**present["metadata"], "ownerReferences": []}},
        {"metadata": {**present["metadata"], "labels": {}}},
    ):
        assert not source_rbac.is_as_wanted({**present, **change}, wanted)


@pytest.mark.parametrize(
    ("error", "reason", "cure"),
    [
        (NotFound(404, "NotFound", 'namespaces "n" not found'), "NamespaceNotFound", "create it"),
        (Denied(403, "Forbidden", "no"), "Forbidden", "vnode install"),
        (ApiError(418, "", "teapot"), "Failing", "teapot"),
    ],
)
def test_what_stands_in_the_way_is_explained(error, reason, cure):
    found, message = sources.explain(error, WIDE)
    assert found == reason
    assert cure in message


SELECTING = source_rbac.parse(
    source(
        {"userName": "eve", "namespaceSelector": {"matchLabels": {"pool": "gpu"}}},
        "",
    )
)


def namespace(name, *, ending=False, **labels):
    """Return a namespace with these labels."""
    end = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if ending else {}
    return {"metadata": {"name": name, "labels": labels, **end}}


def test_a_cluster_source_that_selects_is_bound_to_little_everywhere_and_to_the_rest_there():
    found = [
        (kind.kind, objects.key(binding), binding["roleRef"]["name"])
        for kind, binding in source_rbac.bindings(SELECTING, ["a", "b"])
    ]
    wide = "admiralty-cluster-source-cluster1"
    assert found == [
        ("ClusterRoleBinding", wide, "vnode-cluster-source"),
        (
            "ClusterRoleBinding",
            f"{wide}-cluster-summary-viewer",
            "admiralty-cluster-summary-viewer",
        ),
        ("RoleBinding", f"a/{wide}", "admiralty-source"),
        ("RoleBinding", f"b/{wide}", "admiralty-source"),
    ]


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (namespace("a", pool="gpu"), True),
        (namespace("a", pool="cpu"), False),
        (namespace("a"), False),
        (namespace("a", ending=True, pool="gpu"), False),
        (namespace("kube-system", pool="gpu"), False),
        (namespace("kube-public", pool="gpu"), False),
        (namespace("kube-node-lease", pool="gpu"), False),
        (namespace("agents", pool="gpu"), False),
    ],
)
def test_a_selector_never_gives_away_the_namespaces_of_kubernetes_and_of_the_agents(found, holds):
    assert SELECTING.holds_in(found, "agents") is holds
    everything = source_rbac.parse(source({"userName": "eve", "namespaceSelector": {}}, ""))
    is_protected = objects.name(found) != "a" or objects.is_terminating(found)
    assert everything.holds_in(found, "agents") is not is_protected
    assert not WIDE.holds_in(found, "agents")
    assert not BOTH.holds_in(found, "agents")


def test_a_selector_is_of_cluster_sources_only_and_must_be_one():
    assert source_rbac.parse(source({"userName": "eve", "namespaceSelector": {}})).selector is None
    for broken in ({"matchLabel": {}}, {"matchExpressions": [{"key": "a", "operator": "Gt"}]}):
        with pytest.raises(ConfigError, match=r"^spec\.namespaceSelector"):
            source_rbac.parse(source({"userName": "eve", "namespaceSelector": broken}, ""))


def test_where_a_selecting_source_holds_is_told():
    assert sources.outcome(SELECTING, ["a"]) == (
        "Bound",
        "user eve may run pods in 1 namespace: a",
    )
    many = [f"n{number}" for number in range(12)]
    assert sources.outcome(SELECTING, many)[1].endswith(
        "in 12 namespaces: " + ", ".join(many[:10]) + ", ..."
    )
    reason, message = sources.outcome(SELECTING, [])
    assert reason == "NoNamespace"
    assert "label one" in message
