"""AdmissionReviews over HTTP: well-formed ones are answered, others get a 400, none a 500."""

from __future__ import annotations

import base64
import contextlib
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from tests.permitted import MANIFESTS
from vnode.api import keys, selectors, webhook_paths
from vnode.api.errors import Unreachable
from vnode.placement.policies.matching import PolicyIndex
from vnode.planning.failover import Failover
from vnode.planning.policy import Mode, Policy
from vnode.webhook import server

ANY = Policy("placementpolicy/all", "plain", selectors.Selector(), mode=Mode.ANY)


class PolicyCollection(PolicyIndex):
    """Policies in force."""

    def __init__(self, *policies: Policy) -> None:
        super().__init__(policies)

    def __bool__(self) -> bool:
        return True


async def annotations_of(namespace: str) -> Mapping[str, str] | None:
    if namespace == "broken":
        raise Unreachable("no answer")

    return {"elected": {keys.ELECT: ""}, "plain": {}}.get(namespace)


def webhook() -> server.Webhook:
    return server.Webhook(
        annotations_of, lambda namespace: [f"{keys.PREFIX}{namespace}-c2"], MANIFESTS
    )


def review(
    annotations: dict[str, str], namespace: str = "plain", version: str = "v1"
) -> dict[str, Any]:
    return {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "operation": "CREATE",
            "namespace": namespace,
            "object": {"metadata": {"generateName": "a-", "annotations": annotations}, "spec": {}},
        },
    }


async def answer(request: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(await webhook().review(json.dumps(request).encode()))
    assert reply["apiVersion"] == request["apiVersion"]
    assert reply["response"]["uid"] == "u-1"
    response: dict[str, Any] = reply["response"]
    return response


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_an_elected_pod_gets_a_patch(version: str) -> None:
    request = review({keys.ELECT: ""}, version=version)
    response = await answer(request)
    assert response["patchType"] == "JSONPatch"
    patched = jsonpatch.apply_patch(
        request["request"]["object"], json.loads(base64.b64decode(response["patch"]))
    )
    assert patched["metadata"]["finalizers"] == [f"{keys.PREFIX}plain-c2"]


async def test_a_pod_fails_over_if_the_policy_of_its_namespace_says_so() -> None:
    for failover, expected in ((Failover(), True), (None, False)):
        policies = PolicyCollection(replace(ANY, failover=failover))
        asked = server.Webhook(annotations_of, lambda _: ["x/c2"], MANIFESTS, policies)
        for namespace, elected in (("plain", True), ("elsewhere", False)):
            request = review({keys.ELECT: ""}, namespace)
            body = await asked.review(json.dumps(request).encode())
            patch = base64.b64decode(json.loads(body)["response"]["patch"]).decode()
            assert ("vnode.dev~1failover" in patch) is (expected and elected)


async def test_a_namespace_elects_its_pods_but_for_those_that_opt_out() -> None:
    assert "patch" in await answer(review({}, "elected"))
    assert await answer(review({keys.NO_ELECT: ""}, "elected")) == {"uid": "u-1", "allowed": True}
    assert "patch" not in await answer(review({}, "plain"))
    assert "patch" not in await answer(review({}, "gone"))


async def test_outside_of_the_namespaces_that_the_agent_covers_every_pod_is_an_ordinary_one() -> (
    None
):
    held = server.Webhook(
        annotations_of, lambda _: ["x/c2"], MANIFESTS, covers=lambda name: name == "plain"
    )
    for namespace, elected in (("plain", True), ("elected", False)):
        request = review({keys.ELECT: ""}, namespace)
        response = json.loads(await held.review(json.dumps(request).encode()))["response"]
        assert response["allowed"]
        assert ("patch" in response) is elected


@pytest.mark.parametrize(
    ("annotations", "namespace", "warning"),
    [
        ({f"{keys.PREFIX}elected": ""}, "plain", f"not elected: it has {keys.PREFIX}elected"),
        ({keys.ELECT: "false"}, "plain", f"annotation {keys.ELECT}: its value 'false' is not"),
        ({keys.NO_ELECT: "no"}, "elected", f"annotation {keys.NO_ELECT}: its value 'no' is not"),
    ],
)
async def test_what_looks_like_a_mistake_is_admitted_with_a_warning(
    annotations: dict[str, str], namespace: str, warning: str
) -> None:
    response = await answer(review(annotations, namespace))
    assert response["allowed"] is True
    [warned] = response["warnings"]
    assert warning in warned


async def test_a_pod_whose_namespace_elects_it_is_not_warned_of_what_it_lacks() -> None:
    assert "warnings" not in await answer(review({f"{keys.PREFIX}elected": ""}, "elected"))


async def test_labels_that_a_target_cannot_both_have_are_warned_of_where_a_pod_is_elected() -> None:
    request = review({keys.ELECT: ""})
    request["request"]["object"]["metadata"]["labels"] = {"x/name": "a", "name": "b"}
    [warned] = (await answer(request))["warnings"]
    assert warned.startswith("labels name and x/name are both multicluster.admiralty.io/name")
    del request["request"]["object"]["metadata"]["annotations"]
    assert "warnings" not in await answer(request)


async def test_a_rejection_carries_its_text() -> None:
    response = await answer(review({keys.ELECT: "", keys.NO_PREFIX_LABEL_REGEXP: "("}))
    assert response["allowed"] is False
    assert response["status"]["code"] == 400
    assert keys.NO_PREFIX_LABEL_REGEXP in response["status"]["message"]


async def test_an_unknown_namespace_state_is_not_guessed() -> None:
    response = await answer(review({}, "broken"))
    assert response["allowed"] is False
    assert response["status"]["code"] == 503


MANY = {
    "objects": b",".join([b"{}"] * server.VALUES),
    "labels": b",".join(b'"%d"' % i for i in range(server.VALUES)),
}


@pytest.mark.parametrize("inside", MANY)
@pytest.mark.parametrize("field", [b"object", b"oldObject", b"dryRun"])
async def test_a_body_of_many_values_is_not_decoded(
    inside: str, field: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to be known to send one, and decoding 8 MiB of them takes a second."""
    monkeypatch.setattr(server, "_decoder", None)
    body = b'{"request":{"uid":"u","%s":[%s]}}' % (field, MANY[inside])
    with pytest.raises(server.MalformedReview, match="more than 50000 values"):
        await webhook().review(body)


async def test_a_large_pod_of_long_texts_is_answered() -> None:
    text = json.dumps([{"a": "b"}] * 100_000)
    assert (await answer(review({"text": text})))["allowed"]


async def test_a_user_who_creates_what_is_refused_fills_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusing, bad = webhook(), review({keys.ELECT: "", keys.PROXY_CONSTRAINTS: "[]"})
    for _ in range(200):
        body = json.loads(await refusing.review(json.dumps(bad).encode()))
        assert not body["response"]["allowed"]

    assert 0 < len(caplog.records) < 50


async def test_over_http_bad_bodies_are_400_and_huge_ones_413() -> None:
    async with TestClient(TestServer(webhook().app())) as client:
        good = await client.post(webhook_paths.PODS, json=review({keys.ELECT: ""}))
        assert good.status == 200
        for body in (b"", b"{}", b"[" * 100_000, b"\xff", b'{"request":{"uid":"u","object":[]}}'):
            assert (await client.post(webhook_paths.PODS, data=body)).status == 400

        many = io.BytesIO(b" " * (server.BODY_LIMIT + 1))
        huge = await client.post(webhook_paths.PODS, data=many)
        assert huge.status == 413


_names = st.sampled_from(
    [
        "metadata",
        "spec",
        "annotations",
        "labels",
        "tolerations",
        "key",
        "ownerReferences",
        "kind",
        "finalizers",
        "nodeSelector",
        "affinity",
        "nodeName",
        keys.ELECT,
        keys.USE_SPEC_CONSTRAINTS,
        keys.PROXY_CONSTRAINTS,
        keys.SOURCE_POD_MANIFEST,
        keys.NO_PREFIX_LABEL_REGEXP,
    ]
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=20,
)
_hostile = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"annotations": st.dictionaries(_names, st.text(max_size=20)), "x": _json}
        )
        | _json,
        "spec": st.dictionaries(_names, _json, max_size=4) | _json,
    },
)


@given(_hostile | _json)
async def test_no_pod_breaks_the_webhook(obj: Any) -> None:
    request = {"request": {"uid": "u-1", "namespace": "elected", "object": obj}}
    with contextlib.suppress(server.MalformedReview):
        await webhook().review(json.dumps(request).encode())


@given(st.binary(max_size=200))
async def test_no_bytes_break_the_webhook(body: bytes) -> None:
    with pytest.raises(server.MalformedReview):
        await webhook().review(body)


async def test_a_pod_nested_a_thousand_deep_is_answered() -> None:
    deep = '{"a":' * 900 + "1" + "}" * 900
    annotations = json.dumps({keys.USE_SPEC_CONSTRAINTS: "", keys.ELECT: ""})
    body = (
        f'{{"request":{{"uid":"u","object":{{"metadata":{{"annotations":{annotations}}},'
        f'"spec":{{"affinity":{deep}}}}}}}}}'
    )
    with contextlib.suppress(server.MalformedReview):
        await webhook().review(body.encode())


async def test_an_expression_on_labels_for_too_many_constraints_is_refused_with_its_cure() -> None:
    request = review({keys.ELECT: "", keys.NO_PREFIX_LABEL_REGEXP: "a=.*"})
    request["request"]["object"]["spec"] = {"affinity": {f"k{n}": 0 for n in range(1500)}}
    response = await answer(request)
    assert not response["allowed"]
    assert "over 1000 values" in response["status"]["message"]
