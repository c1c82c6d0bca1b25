"""The admission patch: what the contract says, nothing lost, and the same when applied twice."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import admiralty_webhook
from tests.permitted import MANIFESTS
from tests.unit.webhook.mutated_pods import BASE, FINALIZER, pod, proxied
from vnode.api import documents, keys
from vnode.api.errors import ConfigError
from vnode.api.saved_manifest import SavedManifests
from vnode.webhook import election, mutate


def test_a_proxy_is_what_the_contract_says() -> None:
    result = proxied(pod({keys.ELECT: ""}, schedulerName="default-scheduler", priority=7))
    assert result["metadata"]["labels"] == {keys.HAS_FINALIZER: "true"}
    assert result["metadata"]["finalizers"] == [FINALIZER]
    assert result["spec"] == {
        "containers": [{"name": "c", "image": "i"}],
        "nodeSelector": {"virtual-kubelet.io/provider": "admiralty"},
        "tolerations": BASE,
        "schedulerName": "admiralty-proxy",
        "priority": 7,
    }


def test_a_copy_of_a_bound_pod_does_not_say_why_that_one_is_where_it_is() -> None:
    original = pod({keys.ELECT: "", keys.PLACED: "planned here: 1 of 1", "a": "b"})
    annotations = proxied(original)["metadata"]["annotations"]
    assert keys.PLACED not in annotations
    assert annotations["a"] == "b"


def test_the_original_is_saved_as_json() -> None:
    original = pod({keys.ELECT: ""}, nodeSelector={"a": "b"}, affinity={"nodeAffinity": {}})
    original["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    saved = json.loads(proxied(original)["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST])
    assert saved["spec"] == original["spec"]
    assert saved["metadata"]["creationTimestamp"] is None
    assert saved["status"] == {}
    assert "managedFields" not in saved["metadata"]


def test_constraints_of_the_annotation_choose_the_virtual_node() -> None:
    text = """
    nodeSelector: {region: eu, virtual-kubelet.io/provider: mine}
    tolerations: [{key: gpu, operator: Exists}]
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
    containers: [{name: ignored}]
    """
    result = proxied(pod({keys.PROXY_CONSTRAINTS: text}, affinity={"podAffinity": {}}))["spec"]
    assert result["nodeSelector"] == {"region": "eu", "virtual-kubelet.io/provider": "mine"}
    assert result["tolerations"] == [*BASE, {"key": "gpu", "operator": "Exists"}]
    assert result["topologySpreadConstraints"][0]["topologyKey"] == "zone"
    assert "affinity" not in result


def test_constraints_of_the_spec_choose_the_virtual_node_if_asked() -> None:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"new": 1}}}
    result = proxied(
        pod({keys.USE_SPEC_CONSTRAINTS: ""}, nodeSelector={"a": "b"}, affinity=affinity)
    )["spec"]
    assert result["nodeSelector"] == {"virtual-kubelet.io/provider": "admiralty", "a": "b"}
    assert result["affinity"] == affinity


def test_constraints_that_only_virtual_nodes_meet_choose_one_unasked() -> None:
    spread = {"maxSkew": 1, "topologyKey": keys.TARGET_NAME, "whenUnsatisfiable": "DoNotSchedule"}
    named = {"matchExpressions": [{"key": keys.TARGET_NAME, "operator": "Exists"}]}
    required = {"nodeSelectorTerms": [named]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    options: dict[str, Any] = {
        "nodeSelector": {keys.TARGET_NAME: "c2", "disk": "ssd"},
        "affinity": affinity,
        "topologySpreadConstraints": [spread, {**spread, "topologyKey": "zone"}],
    }
    result = proxied(pod(**options))["spec"]
    assert result["nodeSelector"] == {keys.PROVIDER_LABEL: keys.PROVIDER, keys.TARGET_NAME: "c2"}
    assert result["affinity"] == affinity
    assert result["topologySpreadConstraints"] == [spread]
    result = proxied(pod({keys.PROXY_CONSTRAINTS: "nodeSelector: {a: b}"}, **options))["spec"]
    assert result["nodeSelector"] == {
        keys.PROVIDER_LABEL: keys.PROVIDER,
        keys.TARGET_NAME: "c2",
        "a": "b",
    }
    assert "affinity" not in result


def test_how_long_a_proxy_outlives_its_target_is_kept() -> None:
    lasting = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 30,
    }
    original = pod({keys.ELECT: ""}, tolerations=[{"key": "gpu"}, lasting])
    expected = {
        **lasting,
        "key": "node.kubernetes.io/not-ready",
    }  # as its agent shows a lost target
    assert proxied(original)["spec"]["tolerations"] == [*BASE, expected]


def test_finalizers_of_others_stay_and_stale_ones_go() -> None:
    original = pod({keys.ELECT: ""})
    original["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking", keys.PREFIX + "old"]
    result = proxied(original, (FINALIZER, keys.PREFIX + "c3"))
    assert result["metadata"]["finalizers"] == [
        "batch.kubernetes.io/job-tracking",
        FINALIZER,
        keys.PREFIX + "c3",
    ]


def test_a_pod_without_a_name_annotations_or_labels_is_mutated() -> None:
    bare = {"metadata": {"generateName": "web-", "annotations": None}, "spec": {}}
    assert proxied(bare)["metadata"]["labels"] == {keys.HAS_FINALIZER: "true"}


def test_a_manifest_of_admiralty_in_yaml_is_the_source() -> None:
    text = "kind: Pod\nmetadata:\n  creationTimestamp: null\nspec:\n  nodeSelector: {x: y}\n"
    annotations = {keys.SOURCE_POD_MANIFEST: text, keys.USE_SPEC_CONSTRAINTS: ""}
    result = proxied(pod(annotations, nodeSelector={"not": "this"}))
    assert result["spec"]["nodeSelector"]["x"] == "y"
    assert "not" not in result["spec"]["nodeSelector"]
    assert result["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST] == text


def test_a_manifest_that_no_agent_signed_is_replaced_by_the_pod_itself() -> None:
    strict = SavedManifests(lambda: b"key")
    forged = '{"metadata": {}, "spec": {"nodeSelector": {"x": "y"}, "hostPID": true}}'
    given = pod({keys.SOURCE_POD_MANIFEST: forged, keys.MANIFEST_SIGNATURE: "AAAA"})
    patch = mutate.proxy_patch(given, "default", (), strict)
    annotations = jsonpatch.apply_patch(given, patch)["metadata"]["annotations"]
    assert json.loads(annotations[keys.SOURCE_POD_MANIFEST])["spec"] == given["spec"]
    assert forged not in str(annotations)
    made = {"metadata": {**given["metadata"], "annotations": annotations}}
    assert strict.believed(made, "default") is not None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (keys.PROXY_CONSTRAINTS, "nodeSelectr: {}", "nodeSelectr"),
        (keys.PROXY_CONSTRAINTS, "tolerations: [{keyy: x}]", "keyy"),
        (keys.PROXY_CONSTRAINTS, "nodeSelector: {a: 1}", "str"),
        (keys.PROXY_CONSTRAINTS, "affinity: {nodeAffinity: {required: 1}}", "required"),
        (keys.PROXY_CONSTRAINTS, "a: b: c", "line 1"),
        (keys.PROXY_CONSTRAINTS, "[]", "mapping"),
        (keys.PROXY_CONSTRAINTS, "a: &a [1]\nb: *a", "aliases"),
        (keys.PROXY_CONSTRAINTS, "[" * 100_000, "nested"),
        (keys.NO_PREFIX_LABEL_REGEXP, "(", "regular expression"),
        (keys.NO_PREFIX_LABEL_REGEXP, r"\pL{250}", "repeat fewer times"),
        (keys.NO_PREFIX_LABEL_REGEXP, "(?=a)", "look-around"),
        (keys.NO_PREFIX_LABEL_REGEXP, "a" * 513, "512"),
        (keys.SOURCE_POD_MANIFEST, "hello", "holds no pod"),
        (keys.SOURCE_POD_MANIFEST, "{metadata: {}, spec: {affinity: 5}}", "holds no pod"),
        (keys.SOURCE_POD_MANIFEST, "? [1]\n: 2", "YAML"),
        (keys.PROXY_CONSTRAINTS, "{" + "a," * 20_000 + "}", "2000 elements"),
        (keys.SOURCE_POD_MANIFEST, "{" + "a," * 20_000 + "}", "10000 elements"),
        (keys.ELECT, "x" * 262_000, "ConfigMap"),
    ],
)
def test_a_bad_annotation_is_named_with_its_cure(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mutate.proxy_patch(pod({key: value}), "default", (), MANIFESTS)

    named = keys.SOURCE_POD_MANIFEST if key == keys.ELECT else key
    assert str(caught.value).startswith(f"annotation {named}")
    assert message in str(caught.value)


@pytest.mark.parametrize("key", [keys.SOURCE_POD_MANIFEST, keys.PROXY_CONSTRAINTS])
def test_the_size_of_all_annotations_is_checked_first(key: str, monkeypatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(documents, "parse", parsed.append)
    with pytest.raises(ConfigError, match="262144 are allowed"):
        mutate.proxy_patch(
            pod({key: "x" * 131_000, "other": "x" * 131_200}), "default", (), MANIFESTS
        )

    assert parsed == []


@pytest.mark.parametrize("text", ["", "null", "{}", "nodeSelector: null", "affinity: {}"])
def test_constraints_that_constrain_nothing_are_fine(text: str) -> None:
    assert proxied(pod({keys.PROXY_CONSTRAINTS: text}))["spec"]["tolerations"] == BASE


@pytest.mark.parametrize("value", ["^example\\.com/.*", "app=.*", "[a-z]+=[a-z]+", "(?i)x|y"])
def test_ordinary_expressions_are_accepted(value: str) -> None:
    mutate.proxy_patch(pod({keys.NO_PREFIX_LABEL_REGEXP: value}), "default", (), MANIFESTS)


def owned(kind: str, annotations: dict[str, str]) -> dict[str, Any]:
    obj = pod(annotations)
    obj["metadata"]["ownerReferences"] = [{"kind": kind, "name": "x", "uid": "u"}]
    return obj


def test_who_is_never_a_proxy() -> None:
    elect = {keys.ELECT: ""}
    assert election.is_exempt(pod({**elect, keys.NO_ELECT: ""}))
    assert election.is_exempt(pod(elect, nodeName="n1"))
    assert election.is_exempt(owned("DaemonSet", elect))
    assert election.is_exempt(owned("PodChaperon", {}))
    assert not election.is_exempt(owned("PodChaperon", elect))
    assert not election.is_exempt(owned("PodChaperon", {keys.FORWARD: ""}))
    assert election.is_exempt(owned("PodChaperon", {keys.FORWARD: "", keys.NO_ELECT: ""}))
    assert not election.is_exempt(owned("ReplicaSet", {}))


def test_only_pods_that_are_no_proxies_and_stay_as_they_are_are_left_alone():
    elect = {keys.ELECT: ""}
    for kind in ("DaemonSet", "Node"):
        assert election.is_left_alone(owned(kind, elect))

    assert election.is_left_alone(pod(elect, nodeName="n1"))
    assert not election.is_left_alone(pod({}, nodeName=""))
    assert not election.is_left_alone(pod({keys.NO_ELECT: ""}))
    assert election.is_left_alone(owned("PodChaperon", {}))
    assert not election.is_left_alone(owned("PodChaperon", {keys.FORWARD: ""}))
    for spec in (
        {"tolerations": [{"operator": "Exists"}]},
        {"nodeSelector": {"kubernetes.io/hostname": "admiralty-x"}},
        {"affinity": {"nodeAffinity": {}}},
    ):
        delegate = owned("PodChaperon", {})
        delegate["spec"] |= spec
        assert not election.is_left_alone(delegate)
        assert election.is_exempt(delegate)


_word = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _word,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_word, inner, max_size=3),
    max_leaves=8,
)
_toleration = st.fixed_dictionaries(
    {}, optional={"key": _word | st.just("node.kubernetes.io/not-ready"), "effect": _word}
)
_container = st.fixed_dictionaries({"name": _word}, optional={"new": _json})
_affinity = st.fixed_dictionaries(
    {}, optional={"new": _json, "nodeAffinity": st.none() | st.just({"new": 1})}
)
_pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "annotations": st.none()
                | st.dictionaries(_word | st.just(keys.USE_SPEC_CONSTRAINTS), _word, max_size=3),
                "labels": st.none() | st.dictionaries(_word, _word, max_size=3),
                "finalizers": st.none() | st.lists(_word | st.just(keys.PREFIX + "a"), max_size=3),
                "new/field~": _json,
            },
        ),
        "spec": st.fixed_dictionaries(
            {"brandNew": _json, "containers": st.lists(_container, max_size=2)},
            optional={
                "tolerations": st.lists(_toleration, max_size=3),
                "nodeSelector": st.none() | st.dictionaries(_word, _word, max_size=2),
                "affinity": st.none() | _affinity,
                "schedulerName": _word,
                "terminationGracePeriodSeconds": st.integers(0, 90),
            },
        ),
    },
    optional={"unknown": _json},
)


@given(_pods, st.lists(_word.map(lambda word: keys.PREFIX + word), max_size=3))
def test_twice_is_once_and_what_is_not_named_survives(
    obj: dict[str, Any], finalizers: list[str]
) -> None:
    once = proxied(obj, tuple(finalizers))
    assert mutate.proxy_patch(once, "default", finalizers, MANIFESTS) == []
    assert once["spec"]["brandNew"] == obj["spec"]["brandNew"]
    assert once["spec"]["containers"] == obj["spec"]["containers"]
    assert once.get("unknown") == obj.get("unknown")
    assert once["metadata"].get("new/field~") == obj["metadata"].get("new/field~")
    for part in ("labels", "annotations"):
        assert (obj["metadata"].get(part) or {}).items() <= once["metadata"][part].items()


def test_only_a_delegate_is_elected_by_its_wish_to_travel_on() -> None:
    traveller = pod({keys.FORWARD: ""})
    assert not election.elects_itself(traveller)
    traveller["metadata"]["ownerReferences"] = [{"kind": "PodChaperon"}]
    assert election.elects_itself(traveller)


def _forge(made: dict[str, Any]) -> None:
    made["metadata"]["annotations"][keys.MANIFEST_SIGNATURE] = "AAAA"


def _strip(made: dict[str, Any]) -> None:
    del made["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST]


@pytest.mark.parametrize("change", [lambda _made: None, _forge, _strip])
def test_what_another_webhook_has_made_of_a_pod_is_not_saved_as_the_pod_itself(change) -> None:
    strict = SavedManifests(lambda: b"key")
    made = admiralty_webhook.admitted(pod({keys.ELECT: ""}, nodeSelector={"nope": "x"}))
    change(made)
    before = made["metadata"]["annotations"]
    patch = mutate.proxy_patch(made, "default", (FINALIZER,), strict)
    result = jsonpatch.apply_patch(made, patch)
    assert result["metadata"]["annotations"] == before
    assert result["metadata"]["finalizers"] == [FINALIZER]
    assert strict.refusal(result, "default")
