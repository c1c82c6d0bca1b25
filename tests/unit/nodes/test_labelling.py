"""Which labels a virtual Node has, and which of its target's it must not show to Kubernetes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, names, node_labels, objects, shapes
from vnode.api.target_key import TargetKey
from vnode.nodes import labelling, virtual
from vnode.nodes.coexistence import ROLE

TARGET = TargetKey("team", "c2")
NAME = TARGET.node_name
HOSTNAME = "kubernetes.io/hostname"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
PLACES = {
    ZONE: "z1",
    REGION: "r1",
    "failure-domain.beta.kubernetes.io/zone": "z1",
    "failure-domain.beta.kubernetes.io/region": "r1",
    "topology.ebs.csi.aws.com/zone": "z1",
    "topology.example.com/rack": "7",
    "karpenter.sh/nodepool": "default",
}
OTHERS = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "gpu": "a100"}


def made_of(described, **options):
    """Return the Node that is applied with these labels of its target."""
    labels, hidden = labelling.split(TARGET, described, **options)
    return virtual.description(TARGET, labels, 10250, node_labels.record(hidden))


def test_a_target_cannot_change_what_its_node_is():
    shared = {
        keys.PROVIDER_LABEL: "other",
        keys.TARGET_NAME: "other",
        keys.OWN_PREFIX + "x": "1",
        "region": "r1",
        "type": "big",
    }
    node = made_of(labelling.of_target(shared, None))
    shown = objects.labels(node)
    assert shown[keys.PROVIDER_LABEL] == keys.PROVIDER
    assert shown[keys.TARGET_NAME] == "c2"
    assert shown["region"] == "r1"
    assert shown["type"] == "virtual-kubelet"
    assert keys.OWN_PREFIX + "x" not in node_labels.of_node(node)


def test_lost_targets_do_not_count_as_a_disruption_of_the_source():
    for node in (made_of({}), virtual.registration(TARGET)):
        assert "node.kubernetes.io/exclude-disruption" in objects.labels(node)


def test_excluded_labels_stay_hidden():
    shown = labelling.of_target({"a": "1", "b": "2"}, lambda text: text == "a=1")
    assert shown == {"b": "2"}


def test_labels_that_isolate_nodes_are_not_the_targets_to_choose():
    shared = {
        "node-restriction.kubernetes.io/pci": "yes",
        "team.node-restriction.kubernetes.io/pci": "yes",
        "restriction.example.com/fine": "yes",
    }
    shown = labelling.of_target(shared, None)
    assert shown.keys() == {"restriction.example.com/fine"}


_FACTS = {
    "kubernetes.io/os": "windows",
    "kubernetes.io/arch": "arm64",
    "beta.kubernetes.io/os": "windows",
    "beta.kubernetes.io/arch": "arm64",
    "node.kubernetes.io/instance-type": "m5.large",
    "beta.kubernetes.io/instance-type": "m5.large",
    "node.kubernetes.io/windows-build": "10.0.20348",
    "feature.node.kubernetes.io/cpu-model.vendor_id": "Intel",
    "topology.gke.io/zone": "z",
    "nvidia.com/gpu.product": "A100",
    "cloud.google.com/gke-accelerator": "nvidia-l4",
    "karpenter.sh/capacity-type": "spot",
    "disktype": "ssd",
    "empty": "",
}
_OF_OTHERS = {
    keys.OCM_CLUSTER_NAME: "w2",
    "feature.open-cluster-management.io/addon-x": "available",
    "node-role.kubernetes.io/control-plane": "",
    "node-role.kubernetes.io/master": "",
    "kubernetes.io/role": "master",
    "kubernetes.io/cluster-service": "true",
    "example.kubernetes.io/anything": "x",
    "example.k8s.io/anything": "x",
    "node.kubernetes.io/exclude-from-external-load-balancers": "false",
    "node.kubernetes.io/exclude-from-anything": "x",
    "alpha.service-controller.kubernetes.io/exclude-balancer": "false",
    "svccontroller.k3s.cattle.io/enablelb": "true",
    "k8s.ovn.org/egress-assignable": "",
}


@pytest.mark.parametrize("key", [*_FACTS, ZONE, REGION, "failure-domain.beta.kubernetes.io/zone"])
def test_pods_choose_a_target_by_what_its_machines_are(key):
    value = _FACTS.get(key, "a")
    assert node_labels.of_node(made_of(labelling.of_target({key: value}, None)))[key] == value


@pytest.mark.parametrize("key", _OF_OTHERS)
def test_a_target_does_not_say_what_its_node_is_for(key):
    found = labelling.of_target({**_OF_OTHERS, "gpu": "a100"}, None)
    assert found == {"gpu": "a100"}
    assert node_labels.of_node(made_of(found)).get(key) == objects.labels(made_of({})).get(key)


def test_an_inventory_says_which_cluster_a_node_is():
    shared, profile = {keys.OCM_CLUSTER_NAME: "w2"}, {keys.OCM_CLUSTER_NAME: "w3"}
    assert labelling.of_target(shared, None, profile) == profile


def test_labels_of_vnode_win_over_those_of_an_inventory_too():
    own = objects.labels(made_of({}))
    assert objects.labels(made_of(dict.fromkeys(own, "other"))) == own


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kubernetes.io/os", "solaris"),
        ("kubernetes.io/arch", ""),
        ("a b", "x"),
        ("x/y/z", "x"),
        ("", "x"),
        ("k" * 64, "x"),
        ("bad-value", "a b"),
        ("long-value", "x" * 64),
        ("not-ascii", "ä"),
    ],
)
def test_a_bad_label_hides_no_other(key, value):
    assert labelling.of_target({key: value, "gpu": "a100"}, None) == {"gpu": "a100"}


def test_a_target_may_be_believed_in_some_domains_only():
    domains = {"nvidia.com", "disktype", "topology.kubernetes.io", keys.OCM_CLUSTER_NAME}
    shared = {**_FACTS, **_OF_OTHERS, ZONE: "z"}
    found = labelling.of_target(shared, None, {"of-inventory": "x"}, domains=domains)
    assert found.keys() == {
        *("nvidia.com/gpu.product", "disktype", ZONE, "of-inventory"),
        *("kubernetes.io/os", "kubernetes.io/arch"),
    }


def test_a_node_has_no_more_labels_than_fit():
    shown = labelling.of_target({f"label-{n}": "x" for n in range(10_000)}, None)
    assert len(shown) == shapes.MOST_LABELS


def test_no_more_labels_are_matched_than_a_node_can_have():
    matched: list[str] = []

    def excludes(label: str) -> bool:
        matched.append(label)
        return True

    labelling.of_target({f"label-{n}": "x" for n in range(10_000)}, excludes)
    assert len(matched) == shapes.MOST_LABELS


def test_a_virtual_node_is_no_place_over_which_pods_are_spread():
    node = made_of({**PLACES, **OTHERS, "rack": "7"}, spread_over={"rack", "other"})
    assert not {*PLACES, "rack", HOSTNAME} & objects.labels(node).keys()
    assert OTHERS.items() <= objects.labels(node).items()


def test_vnode_itself_knows_all_labels_of_the_target():
    node = made_of({**PLACES, **OTHERS, "rack": "7"}, spread_over={"rack"})
    known = {**PLACES, **OTHERS, "rack": "7", HOSTNAME: NAME}
    assert known.items() <= node_labels.of_node(node).items()


def test_a_target_may_have_its_node_show_a_label_all_the_same():
    node = made_of({**PLACES, "rack": "7"}, shown={ZONE, HOSTNAME, "rack"}, spread_over={"rack"})
    labels = objects.labels(node)
    assert (labels[ZONE], labels[HOSTNAME], labels["rack"]) == ("z1", NAME, "7")
    assert REGION not in labels


def test_a_target_may_have_its_node_show_all_labels():
    node = made_of(PLACES, shown={node_labels.ALL}, spread_over={ZONE})
    assert {**PLACES, HOSTNAME: NAME}.items() <= objects.labels(node).items()
    assert keys.HIDDEN_LABELS not in objects.annotations(node)


def test_what_vnode_itself_says_of_a_node_is_shown_whatever_pods_are_spread_over():
    keys_of_ours = objects.labels(made_of({})).keys()
    assert objects.labels(made_of({}, spread_over=keys_of_ours)).keys() == keys_of_ours


def test_the_hostname_is_the_nodes_own_name_whatever_a_target_says():
    described = labelling.of_target({HOSTNAME: "the-only-real-node"}, None)
    assert node_labels.of_node(made_of(described))[HOSTNAME] == NAME
    shown = made_of(described, shown={HOSTNAME})
    assert objects.labels(shown)[HOSTNAME] == NAME


def test_a_node_can_be_named_by_a_label_if_its_name_can_be_one():
    assert objects.labels(made_of({}))[keys.NODE_NAME] == NAME
    long = TargetKey("", "x" * 100)
    assert keys.NODE_NAME not in objects.labels(virtual.registration(long))


def test_the_node_of_an_older_agent_loses_the_hostname_that_it_was_created_with():
    old = {"metadata": {"name": NAME, "labels": {HOSTNAME: NAME, "mine": "x"}}}
    assert labelling.left_over(old, {}, None) == {HOSTNAME: None}
    assert labelling.left_over(old, {HOSTNAME: NAME}, None) == {}
    theirs = {"metadata": {"name": NAME, "labels": {HOSTNAME: "chosen"}}}
    assert labelling.left_over(theirs, {}, None) == {}


def test_a_role_that_somebody_gave_to_the_node_stays_unless_it_is_excluded():
    node = {"metadata": {"name": NAME, "labels": {ROLE: ""}}}
    assert labelling.left_over(node, {}, None) == {}
    assert labelling.left_over(node, {}, lambda text: text == f"{ROLE}=") == {ROLE: None}


@pytest.mark.parametrize("text", [None, "", "x", "[]", '{"a": 1}', "[" * 100_000, 7])
def test_an_annotation_that_somebody_spoilt_hides_nothing(text):
    node = {"metadata": {"name": NAME, "annotations": {keys.HIDDEN_LABELS: text}}}
    assert node_labels.of_node(node) == {HOSTNAME: NAME}


_KEYS = st.sampled_from([*PLACES, *OTHERS, "rack", "type", keys.TARGET_NAME, ROLE])


@given(st.dictionaries(_KEYS, st.sampled_from("ab")), st.sets(_KEYS), st.sets(_KEYS), st.booleans())
def test_no_label_of_a_target_is_lost_between_the_node_and_its_annotation(
    described, shown, spread_over, has_role
):
    role = {ROLE: ""} if has_role else {}
    node = made_of(described, role=role, shown=shown, spread_over=spread_over)
    known = node_labels.of_node(node)
    ours = {keys.TARGET_NAME, "type", *role}
    assert {k: known[k] for k in described if k not in ours} == {
        k: v for k, v in described.items() if k not in ours
    }
    for key in objects.labels(node).keys() & (spread_over | PLACES.keys()) - ours:
        assert key in shown


def a_pod(*constraints, tolerations=(), **spec):
    return {
        "spec": {
            "topologySpreadConstraints": list(constraints),
            "tolerations": list(tolerations),
            **spec,
        }
    }


HARD = {"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        (a_pod(HARD), {"rack"}),
        (a_pod({**HARD, "nodeTaintsPolicy": "Ignore"}), {"rack"}),
        (a_pod({**HARD, "nodeTaintsPolicy": "Honor"}), set()),
        (a_pod({**HARD, "whenUnsatisfiable": "ScheduleAnyway"}), set()),
        (a_pod(HARD, schedulerName=keys.PROXY_SCHEDULER), set()),
        (a_pod(HARD, tolerations=[{"key": "gpu", "operator": "Exists"}]), {"rack"}),
        (a_pod(HARD, tolerations=[{"key": keys.PROVIDER_LABEL, "operator": "Exists"}]), set()),
        ({"spec": {}}, set()),
    ],
)
def test_keys_count_over_which_pods_have_to_be_spread_that_no_virtual_node_is_for(pod, found):
    assert node_labels.spread_keys(pod) == found


def test_a_label_that_a_selector_can_name_is_in_a_form_that_the_api_takes():
    for key, value in objects.labels(made_of({})).items():
        assert names.QUALIFIED_NAME.fullmatch(key)
        assert value == "" or names.LABEL_VALUE.fullmatch(value)
