"""Pods that are no proxies stay off virtual nodes, unless they name them."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, names, selectors
from vnode.api.errors import ConfigError
from vnode.webhook import own_pods

HOSTNAME = "kubernetes.io/hostname"
NODE = names.virtual_node("default", "gpu")
ANY = {"operator": "Exists"}
OURS = {"key": keys.PROVIDER_LABEL, "operator": "Exists"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

VIRTUAL = {
    keys.PROVIDER_LABEL: keys.PROVIDER,
    keys.NODE_NAME: NODE,
    keys.TARGET_NAME: "gpu",
    "type": "virtual-kubelet",
}
REAL = {HOSTNAME: "real", "disk": "ssd"}


def a_pod(*tolerations, terms=None, preferred=None, **spec) -> dict[str, Any]:
    pod: dict[str, Any] = {"metadata": {"name": "p"}, "spec": dict(spec)}
    if tolerations:
        pod["spec"]["tolerations"] = list(tolerations)

    affinity = {}
    if terms is not None:
        affinity[REQUIRED] = {"nodeSelectorTerms": terms}

    if preferred is not None:
        affinity[PREFERRED] = preferred

    if affinity:
        pod["spec"]["affinity"] = {"nodeAffinity": affinity}

    return pod


def patched(pod, *, may_go=False) -> dict[str, Any]:
    result = jsonpatch.apply_patch(pod, own_pods.patch(pod, may_go=may_go))
    assert own_pods.patch(result, may_go=may_go) == []
    return result


def allows(pod, labels, name) -> bool:
    """Tell whether kube-scheduler's node affinity lets the pod go to a node."""
    spec = pod["spec"]
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False

    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    if not required:
        return True

    return selectors.matches_node(selectors.from_node_selector(required), labels, name)


def goes_to(pod) -> set[str]:
    nodes = {"virtual": (VIRTUAL, NODE), "real": (REAL, "real")}
    return {which for which, node in nodes.items() if allows(pod, *node)}


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(ANY),
        a_pod({"operator": "Exists", "effect": "NoSchedule"}),
        a_pod({"operator": "Exists", "key": ""}),
        a_pod({"key": "gpu", "operator": "Exists"}, ANY),
        a_pod(ANY, terms=[{"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}]),
        a_pod(
            ANY,
            terms=[
                {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]},
            ],
        ),
    ],
)
@pytest.mark.parametrize("may_go", [True, False])
def test_a_pod_that_tolerates_everything_stays_on_machines(pod, may_go):
    assert "virtual" in goes_to(pod)
    assert goes_to(patched(pod, may_go=may_go)) == {"real"}


def test_a_term_that_matches_no_node_goes_on_matching_none():
    pod = a_pod(ANY, terms=[{}])
    assert patched(pod) == pod


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod({"key": "gpu", "operator": "Exists"}),
        a_pod({"operator": "Exists", "effect": "NoExecute"}),
        a_pod(OURS),
        a_pod(ANY, OURS),
        a_pod(ANY, nodeSelector={keys.TARGET_NAME: "gpu"}),
        a_pod(ANY, nodeSelector={"type": "virtual-kubelet"}),
        a_pod(
            ANY,
            terms=[{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}],
        ),
        a_pod(
            ANY,
            terms=[
                {
                    "matchExpressions": [
                        {"key": "type", "operator": "In", "values": ["virtual-kubelet"]}
                    ]
                }
            ],
        ),
        a_pod(ANY, nodeName="real"),
    ],
)
def test_a_pod_that_is_meant_for_a_virtual_node_or_cannot_go_there_stays_as_it_is(pod):
    assert own_pods.patch(pod, may_go=False) == []


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_pods_of_certain_nodes_stay_as_they_are(kind):
    pod = a_pod(ANY)
    pod["metadata"]["ownerReferences"] = [{"kind": kind}]
    assert own_pods.patch(pod, may_go=True) == []


def by_hostname(operator, *values):
    return {"key": HOSTNAME, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("pod", "where"),
    [
        (a_pod(OURS, nodeSelector={HOSTNAME: NODE}), {"virtual"}),
        (a_pod(ANY, nodeSelector={HOSTNAME: NODE}), {"virtual"}),
        (a_pod(OURS, nodeSelector={HOSTNAME: "real"}), {"real"}),
        (a_pod(OURS, terms=[{"matchExpressions": [by_hostname("In", NODE)]}]), {"virtual"}),
        (
            a_pod(OURS, terms=[{"matchExpressions": [by_hostname("In", NODE, "real")]}]),
            {"virtual", "real"},
        ),
        (a_pod(OURS, terms=[{"matchExpressions": [by_hostname("NotIn", NODE)]}]), {"real"}),
        (a_pod(OURS, terms=[{"matchExpressions": [by_hostname("NotIn", NODE, "real")]}]), set()),
        (
            a_pod(
                OURS,
                terms=[
                    {
                        "matchExpressions": [
                            {"key": "disk", "operator": "Exists"},
                            by_hostname("In", "real", NODE),
                        ]
                    }
                ],
            ),
            {"real"},
        ),
    ],
)
def test_a_virtual_node_can_be_named_by_its_hostname(pod, where):
    assert goes_to(patched(pod, may_go=True)) == where


def test_a_wish_for_a_virtual_node_by_its_hostname_stays_a_wish():
    wish = {"weight": 5, "preference": {"matchExpressions": [by_hostname("In", NODE)]}}
    result = patched(a_pod(OURS, preferred=[wish]), may_go=True)
    [made] = result["spec"]["affinity"]["nodeAffinity"][PREFERRED]
    assert made["weight"] == 5
    assert made["preference"]["matchExpressions"][0]["key"] == keys.NODE_NAME


def test_where_pods_may_not_go_to_targets_hostnames_stay_as_they_are():
    pod = a_pod(OURS, nodeSelector={HOSTNAME: NODE})
    assert own_pods.patch(pod, may_go=False) == []


_NAMES = st.sampled_from([NODE, "real", "other"])
_EXPRESSIONS = st.one_of(
    st.builds(by_hostname, st.sampled_from(["In", "NotIn"]), _NAMES),
    st.builds(by_hostname, st.sampled_from(["In", "NotIn"]), _NAMES, _NAMES),
    st.just({"key": "disk", "operator": "Exists"}),
)


@given(st.lists(st.lists(_EXPRESSIONS, min_size=1, max_size=3), min_size=1, max_size=3))
def test_whatever_terms_say_of_hostnames_they_say_of_the_same_nodes(terms):
    pod = a_pod(OURS, terms=[{"matchExpressions": each} for each in terms])
    with_hostname = {"virtual": ({**VIRTUAL, HOSTNAME: NODE}, NODE), "real": (REAL, "real")}
    before = {which for which, node in with_hostname.items() if allows(pod, *node)}
    assert goes_to(patched(pod, may_go=True)) == before


def either(times) -> dict[str, Any]:
    """Return a term that names a virtual node beside another so many times."""
    names_both = {"key": HOSTNAME, "operator": "In", "values": [NODE, "real"]}
    return {"matchExpressions": [names_both] * times}


@pytest.mark.parametrize(
    "lists",
    [
        {"terms": [either(50)]},
        {"terms": [either(5)] * 200},
        {"preferred": [{"weight": 1, "preference": either(50)}]},
    ],
)
def test_terms_that_would_become_too_many_are_refused(lists):
    """Each expression of a term doubles what stands in its place."""
    with pytest.raises(ConfigError, match="names virtual nodes beside others too often"):
        own_pods.patch(a_pod(**lists), may_go=True)

    few = patched(a_pod(terms=[either(3), either(1)]), may_go=True)
    assert len(few["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]) == 10
