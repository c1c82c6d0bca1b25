"""Constraints on virtual nodes choose a target, and none of them reaches a delegate."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, selectors, virtual_constraints
from vnode.api.virtual_constraints import of_spec, virtual_node, without

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
C2, C3 = virtual_node("default", "c2"), virtual_node("default", "c3")
PROVIDER = {"key": keys.PROVIDER_LABEL, "operator": "In", "values": [keys.PROVIDER]}
GPU = {"key": "gpu", "operator": "Exists"}


def on(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def wants(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def all_of(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def terms(spec: dict[str, Any]) -> Any:
    return spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


_virtual = st.sampled_from(
    [
        PROVIDER,
        on(keys.PROVIDER_LABEL, "Exists"),
        on(keys.TARGET_NAME, "In", "c2"),
        on(keys.TARGET_NAME, "In", "c2", "c3"),
        on(keys.TARGET_NAME, "NotIn", "c2"),
        on(keys.TARGET_NAMESPACE, "Exists"),
        on(keys.CLUSTER_TARGET_NAME, "DoesNotExist"),
        on(keys.CLUSTER_TARGET_NAME, "In", "c2"),
    ]
)
_real = st.sampled_from(
    [on("gpu", "In", "a"), on("gpu", "NotIn", "a"), GPU, on("gpu", "DoesNotExist")]
)
_field = st.sampled_from(
    [on("metadata.name", "In", C2.name), on("metadata.name", "NotIn", C3.name)]
)
_term = st.builds(
    lambda virtual, real, fields: {
        part: value
        for part, value in (("matchExpressions", virtual + real), ("matchFields", fields))
        if value
    },
    st.lists(_virtual, max_size=2),
    st.lists(_real, max_size=1),
    st.lists(_field, max_size=1),
)
_REAL_NODES: list[dict[str, str]] = [{}, {"gpu": "a"}, {"gpu": "b"}]


def matches(spec: dict[str, Any], labels: dict[str, str], name: str) -> bool:
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    compiled = selectors.from_node_selector(required)
    return required is None or selectors.matches_node(compiled, labels, name)


@given(st.lists(_term, min_size=1, max_size=4))
def test_a_delegate_goes_where_the_pod_could_go_if_both_nodes_were_one(given_terms):
    spec = wants(*given_terms)
    before, choice = copy.deepcopy(spec), of_spec(spec)
    for node in (C2, C3):
        left = without(spec, node)
        both = {
            index: matches(spec, {**node.labels, **real}, node.name)
            for index, real in enumerate(_REAL_NODES)
        }
        assert not any(word in json.dumps(left) for word in (keys.PREFIX, "provider", "admiralty"))
        assert not all(map(any, given_terms)) or any(both.values()) == matches(
            choice, dict(node.labels), node.name
        )
        if any(both.values()):
            there = {i: matches(left, real, "real") for i, real in enumerate(_REAL_NODES)}
            assert there == both

    assert spec == before


def test_a_spec_without_any_is_the_very_same():
    spec = {
        "nodeSelector": {"disk": "ssd", "virtual-kubelet.io/provider": "azure"},
        "tolerations": [{"operator": "Exists"}, {"key": keys.PROVIDER_LABEL, "value": "azure"}],
        **wants(all_of(GPU, on(keys.PROVIDER_LABEL, "NotIn", keys.PROVIDER)), {}),
        "topologySpreadConstraints": [{"topologyKey": "kubernetes.io/hostname"}],
    }
    assert without(spec, C2) is spec
    assert of_spec(spec) == {}


def test_what_a_quota_controller_adds_for_virtual_nodes_stays_behind():
    toleration = {"key": keys.PROVIDER_LABEL, "operator": "Exists", "effect": "NoSchedule"}
    flavor = {keys.PROVIDER_LABEL: keys.PROVIDER, keys.TARGET_NAME: "c2"}
    spec = {"nodeSelector": flavor, "tolerations": [toleration], "containers": []}
    assert of_spec(spec) == {"nodeSelector": flavor}
    assert without(spec, C2) == {"containers": []}
    mixed = {**spec, "nodeSelector": {**flavor, "gpu": "a"}, "tolerations": [toleration, {}]}
    kept = {"nodeSelector": {"gpu": "a"}, "tolerations": [{}], "containers": []}
    assert without(mixed, C2) == kept


def test_a_term_of_another_target_is_no_way_for_this_one():
    spec = wants(all_of(on(keys.TARGET_NAME, "In", "c2")), all_of(GPU))
    assert without(spec, C2) == {}
    assert terms(without(spec, C3)) == [all_of(GPU)]


def test_a_pod_that_is_where_no_term_is_for_keeps_what_is_said_of_real_nodes():
    spec = wants(all_of(on(keys.TARGET_NAME, "In", "c2"), GPU))
    assert terms(without(spec, C3)) == [all_of(GPU)]
    assert without(wants(all_of(on(keys.TARGET_NAME, "In", "c2"))), C3) == {}


def test_labels_that_somebody_gave_virtual_nodes_were_for_the_source_to_look_at():
    gold = on("vnode.dev/tier", "In", "gold")
    assert without(wants(all_of(gold)), C2) == {}
    assert of_spec(wants(all_of(gold, GPU))) == wants(all_of(gold))


@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "metadata.name"])
@pytest.mark.parametrize(
    ("operator", "values", "left"),
    [
        ("In", [C2.name], True),
        ("In", [C2.name, "real"], True),
        ("In", [C3.name, "real"], ["real"]),
        ("NotIn", [C3.name], True),
        ("NotIn", [C3.name, "real"], ["real"]),
    ],
)
def test_names_of_nodes_are_of_virtual_ones_or_of_real_ones(key, operator, values, left):
    part = "matchFields" if key == "metadata.name" else "matchExpressions"
    spec = without(wants({part: [on(key, operator, *values)]}), C2)
    assert spec == ({} if left is True else wants({part: [on(key, operator, *left)]}))


def test_preferences_of_virtual_nodes_go_and_others_stay():
    def prefers(*expressions: dict[str, Any]) -> dict[str, Any]:
        return {"weight": 1, "preference": all_of(*expressions)}

    target = on(keys.TARGET_NAME, "In", "c2")
    entries = [prefers(target), prefers(target, GPU), prefers(GPU)]
    spec = {"affinity": {"nodeAffinity": {PREFERRED: entries}}}
    kept = {"affinity": {"nodeAffinity": {PREFERRED: [prefers(GPU), prefers(GPU)]}}}
    assert without(spec, C2) == kept
    assert without(spec, C3)["affinity"]["nodeAffinity"][PREFERRED] == [prefers(GPU)]
    chosen = [prefers(target), prefers(target)]
    assert of_spec(spec) == {"affinity": {"nodeAffinity": {PREFERRED: chosen}}}


@pytest.mark.parametrize("field", ["podAffinity", "podAntiAffinity"])
def test_pod_affinity_and_spread_over_targets_choose_one_and_stay_behind(field):
    targets, zones = ({"topologyKey": key} for key in (keys.TARGET_NAME, "zone"))
    weighed = [{"weight": 1, "podAffinityTerm": term} for term in (targets, zones)]
    spec = {
        "affinity": {field: {REQUIRED: [targets, zones], PREFERRED: weighed}},
        "topologySpreadConstraints": [targets, zones],
    }
    assert without(spec, C2) == {
        "affinity": {field: {REQUIRED: [zones], PREFERRED: weighed[1:]}},
        "topologySpreadConstraints": [zones],
    }
    assert of_spec(spec) == {
        "affinity": {field: {REQUIRED: [targets], PREFERRED: weighed[:1]}},
        "topologySpreadConstraints": [targets],
    }
    alone = {"affinity": {field: {REQUIRED: [targets]}}, "topologySpreadConstraints": [targets]}
    assert without(alone, C2) == {}


def test_the_node_of_a_cluster_target_is_known_by_its_own_labels():
    node = virtual_node("", "c2")
    assert node.labels == {keys.PROVIDER_LABEL: keys.PROVIDER, keys.CLUSTER_TARGET_NAME: "c2"}
    named = (all_of(on(key, "In", "c2")) for key in (keys.CLUSTER_TARGET_NAME, keys.TARGET_NAME))
    for term, gone in itertools.zip_longest(named, (True, False)):
        assert (without(wants(term, all_of(GPU)), node) == {}) is gone


def test_identity_labels_are_what_virtual_nodes_have():
    assert virtual_constraints.identity_labels("default", "c2") == C2.labels
