"""What Kubernetes judges of the affinity of an elected pod is left on its proxy, and harms none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.webhook.mutated_pods import pod, proxied
from vnode.api import keys, pod_shape, pod_terms
from vnode.api.constraint_size import POD_TERMS
from vnode.webhook import judged_terms

REQUIRED, PREFERRED = pod_terms.REQUIRED, pod_terms.PREFERRED
CROSSING = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "db"}},
    "namespaces": ["team-b"],
}
JUDGED = {"topologyKey": "kubernetes.io/hostname", "namespaces": ["team-b"]}
PREFERENCE = {"weight": 1, "podAffinityTerm": JUDGED}


def affinity_of(affinity: dict[str, Any] | None, **annotations: str) -> Any:
    original = pod({keys.ELECT: "", **annotations}, affinity=affinity)
    return proxied(original)["spec"].get("affinity")


@pytest.mark.parametrize("which", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("when", [REQUIRED, PREFERRED])
def test_a_term_about_other_namespaces_is_seen_and_selects_no_pod(which: str, when: str) -> None:
    own = CROSSING if when == REQUIRED else {"weight": 50, "podAffinityTerm": CROSSING}
    seen = affinity_of({which: {when: [own, own]}})
    must = which == "podAntiAffinity" and when == REQUIRED
    assert seen == {which: {REQUIRED: [JUDGED]} if must else {PREFERRED: [PREFERENCE]}}


def test_a_selector_of_all_namespaces_crosses_them_too() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
    seen = affinity_of({"podAffinity": {REQUIRED: [term]}})
    judged = {"topologyKey": "zone", "namespaceSelector": {}}
    assert seen["podAffinity"][PREFERRED] == [{"weight": 1, "podAffinityTerm": judged}]


def test_required_anti_affinity_over_more_than_a_node_is_seen() -> None:
    wide = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    assert affinity_of({"podAntiAffinity": {REQUIRED: [wide]}}) == {
        "podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}
    }
    preferred = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": wide}]}}
    assert affinity_of(preferred) is None
    assert (
        affinity_of({"podAntiAffinity": {REQUIRED: [{**wide, **JUDGED, "namespaces": []}]}}) is None
    )


def test_other_affinity_is_the_delegates_alone() -> None:
    assert affinity_of(None) is None
    assert affinity_of({"podAffinity": {REQUIRED: [{**CROSSING, "namespaces": None}]}}) is None


def test_what_chooses_virtual_nodes_stands_beside_it() -> None:
    constraints = (
        '{"affinity": {"podAffinity": {"' + PREFERRED + '": [{"weight": 5, "podAffinityTerm": '
        '{"topologyKey": "a", "labelSelector": {}}}]}}}'
    )
    seen = affinity_of(
        {"podAffinity": {REQUIRED: [CROSSING]}}, **{keys.PROXY_CONSTRAINTS: constraints}
    )
    own = {"weight": 5, "podAffinityTerm": {"topologyKey": "a", "labelSelector": {}}}
    assert seen == {"podAffinity": {PREFERRED: [own, PREFERENCE]}}
    whole = {"podAffinity": {REQUIRED: [CROSSING]}}
    assert affinity_of(whole, **{keys.USE_SPEC_CONSTRAINTS: ""}) == whole


def test_a_pod_that_is_admitted_again_keeps_the_same() -> None:
    original = pod({keys.ELECT: ""}, affinity={"podAntiAffinity": {REQUIRED: [CROSSING]}})
    once = proxied(original)
    assert proxied(once)["spec"] == once["spec"]


_texts = st.sampled_from(["", "a", "kubernetes.io/hostname"])
_terms = st.fixed_dictionaries(
    {"topologyKey": _texts},
    optional={
        "namespaces": st.none() | st.lists(_texts, max_size=2),
        "namespaceSelector": st.none() | st.just({}) | st.just({"matchLabels": {"a": "b"}}),
        "labelSelector": st.none() | st.just({}) | st.just({"matchLabels": {"a": "b"}}),
    },
)
_wishes = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": _terms})
_affinities = st.dictionaries(
    st.sampled_from(["podAffinity", "podAntiAffinity"]),
    st.none()
    | st.fixed_dictionaries(
        {}, optional={REQUIRED: st.lists(_terms, max_size=40), PREFERRED: st.lists(_wishes)}
    ),
)


@given(_affinities)
def test_what_is_left_changes_no_place(affinity: dict[str, Any]) -> None:
    left = judged_terms.with_judged(None, affinity)
    proxy = {"metadata": {"namespace": "ns"}, "spec": {"affinity": left}}
    assert pod_shape.is_pod(proxy)
    for which in ("podAffinity", "podAntiAffinity"):
        assert not pod_terms.required(proxy, which)
        assert not pod_terms.preferred(proxy, which)
        for listed in ((left or {}).get(which) or {}).values():
            assert 0 < len(listed) <= POD_TERMS
