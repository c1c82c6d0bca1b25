from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
from vnode.api.errors import ConfigError
from vnode.api.target_key import TargetKey
from vnode.targets import model
from vnode.targets.model import SecretReference


def make_target(namespace="team", name="c2", **spec):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"metadata": metadata, "spec": spec}


def test_a_target_names_a_secret_in_its_own_namespace():
    spec = model.parse(make_target(kubeconfigSecret={"name": "s", "namespace": "another"}))
    assert spec.key == TargetKey("team", "c2")
    assert spec.secret == SecretReference("team", "s", "config", "")
    assert spec.secret.object_key == "team/s"


def test_a_cluster_target_says_where_its_secret_is():
    secret = {"name": "s", "namespace": "ops", "key": "k", "context": "x"}
    spec = model.parse(make_target("", kubeconfigSecret=secret))
    assert spec.key == TargetKey("", "c2")
    assert spec.secret == SecretReference("ops", "s", "k", "x")


def test_a_cluster_can_be_its_own_target():
    assert model.parse(make_target(self=True)).secret is None


@pytest.mark.parametrize(
    ("target", "cure"),
    [
        (make_target(self=True, kubeconfigSecret={"name": "s"}), "remove one"),
        (make_target(), "set kubeconfigSecret.name"),
        (make_target(name="x" * 64, self=True), "64 characters, .* at most 63: create one with a"),
        (make_target("", "x" * 64, self=True), "create one with a shorter name"),
        (make_target(self=False), "self: true"),
        (make_target(kubeconfigSecret={"key": "k"}), "spec.kubeconfigSecret.name is empty"),
        (make_target("", kubeconfigSecret={"name": "s"}), "must say where its Secret is"),
        (make_target(kubeconfigSecret={"name": "a,b=c"}), "cannot be a name"),
        (make_target("", kubeconfigSecret={"name": "s", "namespace": "../x"}), "be a namespace"),
        (make_target(self=True, excludedLabelsRegexp="("), "spec.excludedLabelsRegexp"),
        (make_target(self=True, excludedLabelsRegexp="a{1001}"), "excludedLabelsRegexp"),
        (make_target(self=True, excludedLabelsRegexp="a" * 2000), "longer than"),
    ],
)
def test_what_is_wrong_is_said_with_its_cure(target, cure):
    with pytest.raises(ConfigError, match=cure):
        model.parse(target)


def test_labels_are_excluded_by_key_and_value():
    excluded = model.parse(make_target(self=True, excludedLabelsRegexp="^disk=|=gone$"))
    assert excluded.labels_excluded is not None
    pairs = ("disk=fast", "a=gone", "a=b", "my-disk=")
    shown = [pair for pair in pairs if not excluded.labels_excluded(pair)]
    assert shown == ["a=b", "my-disk="]
    assert model.parse(make_target(self=True)).labels_excluded is None


@given(st.text(max_size=40))
def test_any_expression_works_or_is_refused(text):
    try:
        excluded = model.parse(make_target(self=True, excludedLabelsRegexp=text)).labels_excluded
    except ConfigError:
        return

    assert excluded is None or excluded("key=value") in (True, False)


@pytest.mark.parametrize(
    ("text", "api"),
    [
        ("target", None),
        ("source=10.0.0.1:6443", ("10.0.0.1", "6443")),
        ("source=api.example.com:443", ("api.example.com", "443")),
        ("source=[fd00::1]:6443", ("fd00::1", "6443")),
    ],
)
def test_a_target_says_whose_tokens_its_pods_have(text, api):
    target = make_target(kubeconfigSecret={"name": "s"})
    target["metadata"]["annotations"] = {keys.TOKENS: text}
    assert model.parse(target).options.source_api == api


@pytest.mark.parametrize(
    "text",
    ["source", "source=", "source=host", "source=a:0", "source=a:70000", "x", "source=a b:1"],
)
def test_tokens_of_the_source_need_its_address(text):
    target = make_target(kubeconfigSecret={"name": "s"})
    target["metadata"]["annotations"] = {keys.TOKENS: text}
    with pytest.raises(ConfigError, match="source=HOST:PORT"):
        model.parse(target)


def test_a_cluster_that_is_its_own_target_has_its_own_tokens():
    target = make_target(self=True)
    target["metadata"]["annotations"] = {keys.TOKENS: "source=a:1"}
    with pytest.raises(ConfigError, match="remove annotation"):
        model.parse(target)


@pytest.mark.parametrize(
    ("key", "option"),
    [
        (keys.CREATE_NAMESPACES, "create_namespaces"),
        (keys.CREATE_SERVICE_ACCOUNTS, "create_service_accounts"),
    ],
)
def test_what_a_target_has_made_is_said_by_true_or_false(key, option):
    target = make_target(kubeconfigSecret={"name": "s"})
    assert getattr(model.parse(target).options, option) is False
    for text, value in (("true", True), ("false", False)):
        target["metadata"]["annotations"] = {key: text}
        assert getattr(model.parse(target).options, option) is value

    target["metadata"]["annotations"] = {key: "yes"}
    with pytest.raises(ConfigError, match=f'annotation {key} must be "true" or "false"'):
        model.parse(target)


def test_a_target_may_map_priority_classes():
    target = make_target(kubeconfigSecret={"name": "s"})
    assert model.parse(target).options.priority_classes == {}
    target["metadata"]["annotations"] = {keys.PRIORITY_CLASSES: "urgent=high, batch=, =low,"}
    mapped = {"urgent": "high", "batch": "", "": "low"}
    assert model.parse(target).options.priority_classes == mapped
    target["metadata"]["annotations"] = {keys.PRIORITY_CLASSES: "urgent=high=higher"}
    with pytest.raises(ConfigError, match="'urgent=high=higher' is not a pair"):
        model.parse(target)


def test_a_target_says_which_labels_its_node_has_in_any_case():
    text = "topology.kubernetes.io/zone, kubernetes.io/hostname,,*"
    target = make_target(self=True)
    target["metadata"]["annotations"] = {keys.SHOWN_LABELS: text}
    shown = {"topology.kubernetes.io/zone", "kubernetes.io/hostname", "*"}
    assert model.parse(target).options.shown_labels == shown
    assert model.parse(make_target(self=True)).options.shown_labels == frozenset()


def test_a_target_says_in_which_domains_its_labels_are_believed():
    target = make_target(self=True)
    target["metadata"]["annotations"] = {keys.LABEL_DOMAINS: "nvidia.com, example.com/rack,disk,"}
    found = model.parse(target).options.label_domains
    assert found == {"nvidia.com", "example.com/rack", "disk"}
    target["metadata"]["annotations"] = {keys.LABEL_DOMAINS: "*"}
    with pytest.raises(ConfigError, match=r"'\*' is no key of a label: write .* or domains"):
        model.parse(target)


def test_a_target_says_which_resources_its_nodes_have_without_listing_them():
    target = make_target(self=True)
    target["metadata"]["annotations"] = {
        keys.UNLISTED_RESOURCES: "nvidia.com/gpumem, nvidia.com/gpucores,"
    }
    found = model.parse(target).options.unlisted_resources
    assert found == {"nvidia.com/gpumem", "nvidia.com/gpucores"}


@pytest.mark.parametrize("text", ["cpu", "a b/c", "kubernetes.io/x", "example.com/"])
def test_what_is_no_extended_resource_is_named_with_the_cure(text):
    target = make_target(self=True)
    target["metadata"]["annotations"] = {keys.UNLISTED_RESOURCES: f"example.com/gpu,{text}"}
    with pytest.raises(ConfigError, match="is no extended resource: write names like"):
        model.parse(target)


@pytest.mark.parametrize("text", ["a b", "zone=a", "/zone", "x" * 64])
def test_what_is_no_key_of_a_label_is_named_with_the_cure(text):
    target = make_target(self=True)
    target["metadata"]["annotations"] = {keys.SHOWN_LABELS: f"zone,{text}"}
    with pytest.raises(ConfigError, match="is no key of a label: write keys with commas"):
        model.parse(target)


def test_a_target_names_node_pools_that_may_grow_and_is_used_without_those_that_are_wrong():
    target = make_target(self=True)
    target["metadata"]["annotations"] = {keys.NODE_POOLS: "- {allocatable: {cpu: 4}, max: 2}"}
    [pool] = model.parse(target).options.node_pools
    assert (pool.max, pool.allocatable) == (2, {"cpu": 4000})
    target["metadata"]["annotations"] = {keys.NODE_POOLS: "- {max: 2}"}
    assert model.parse(target).options.node_pools == ()
