"""Which saved manifests are believed, and what of them decides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
from vnode.api.errors import ConfigError
from vnode.api.saved_manifest import FIELDS, SavedManifests

MANIFESTS = SavedManifests(lambda: b"k" * 32)
EVIL = {
    "hostNetwork": True,
    "hostPID": True,
    "containers": [{"name": "main", "image": "evil", "securityContext": {"privileged": True}}],
    "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
}


def saved(spec: dict[str, Any]) -> str:
    return json.dumps({"metadata": {"name": "web"}, "spec": spec})


def proxy(text: str, signature: str | None = None, **metadata: Any) -> dict[str, Any]:
    annotations = {keys.SOURCE_POD_MANIFEST: text}
    if signature is not None:
        annotations[keys.MANIFEST_SIGNATURE] = signature

    return {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "u",
            "annotations": annotations,
            **metadata,
        },
        "spec": {
            "containers": [{"name": "main", "image": "nginx"}],
            "nodeSelector": {keys.PROVIDER_LABEL: keys.PROVIDER},
            "schedulerName": keys.PROXY_SCHEDULER,
        },
    }


def signed(text: str, **metadata: Any) -> dict[str, Any]:
    pod = proxy(text, **metadata)
    signature = MANIFESTS.signature(pod, "shop", text)
    return proxy(text, signature, **metadata)


def test_the_webhooks_own_manifest_decides_constraints_and_nothing_else() -> None:
    text = saved({**EVIL, "nodeSelector": {"disk": "ssd"}, "terminationGracePeriodSeconds": 7})
    assert MANIFESTS.source_pod(signed(text))["spec"] == {
        "containers": [{"name": "main", "image": "nginx"}],
        "nodeSelector": {"disk": "ssd"},
        "terminationGracePeriodSeconds": 7,
    }


@pytest.mark.parametrize("signature", [None, "", "AAAA", "é", "x" * 44])
def test_a_manifest_that_somebody_else_wrote_decides_nothing(signature: str | None) -> None:
    pod = proxy(saved({**EVIL, "tolerations": [{"operator": "Exists"}]}), signature)
    assert MANIFESTS.source_pod(pod) == pod


def test_a_signature_is_for_one_text_in_one_namespace_under_one_name() -> None:
    text = saved({"nodeSelector": {"disk": "ssd"}})
    pod = signed(text)
    assert MANIFESTS.believed(pod, "shop") == text
    assert MANIFESTS.believed(pod, "other") is None
    assert MANIFESTS.believed({**pod, "metadata": {**pod["metadata"], "name": "b"}}, "shop") is None
    annotations = {**pod["metadata"]["annotations"], keys.SOURCE_POD_MANIFEST: text + " "}
    other = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
    assert MANIFESTS.believed(other, "shop") is None
    assert SavedManifests(lambda: b"other key").believed(pod, "shop") is None


def test_a_pod_whose_name_is_generated_is_known_by_what_it_is_generated_from() -> None:
    text = saved({"nodeSelector": {"disk": "ssd"}})
    unnamed = proxy(text, generateName="web-")
    del unnamed["metadata"]["name"]
    signature = MANIFESTS.signature(unnamed, "shop", text)
    created = proxy(text, signature, generateName="web-", name="web-x7k2p")
    assert MANIFESTS.believed(created, "shop") == text


def test_unsigned_manifests_are_believed_if_they_are_trusted_but_none_with_a_false_signature() -> (
    None
):
    trusting = SavedManifests(lambda: b"k" * 32, trust_unsigned=True)
    text = "metadata: {}\nspec:\n  nodeSelector: {disk: ssd}\n"
    assert trusting.source_pod(proxy(text))["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert trusting.believed(proxy(text, "AAAA"), "shop") is None


@pytest.mark.parametrize("text", ["", "[]", "a: [", "metadata: {}", "\x00", '{"spec": 5}'])
def test_one_that_is_no_pod_is_an_error_that_names_the_annotation(text: str) -> None:
    with pytest.raises(ConfigError, match="sourcepod-manifest"):
        MANIFESTS.source_pod(signed(text))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
_specs = st.dictionaries(
    st.sampled_from([*FIELDS, *EVIL, "nodeName", "serviceAccountName"]), _json, max_size=6
)


@given(_specs, st.booleans())
def test_no_manifest_changes_what_admission_has_judged(spec: dict[str, Any], by_us: bool) -> None:
    pod = (signed if by_us else proxy)(saved(spec))
    try:
        source = MANIFESTS.source_pod(pod)
    except ConfigError:
        return

    def judged(obj: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in obj["spec"].items() if k not in FIELDS}

    assert judged(source) == judged(pod)
    if not by_us:
        assert source == pod
