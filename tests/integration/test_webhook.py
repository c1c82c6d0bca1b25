"""The webhook behind a real API server: what users see when they create pods."""

from __future__ import annotations

import json

import pytest

from tests import kit
from tests.integration.served_webhook import FINALIZERS
from vnode.api import errors, keys, kinds, objects
from vnode.kube.client import Client


async def test_pods_become_proxies_as_their_annotations_say(
    webhook_client: Client, webhook_namespace: str
) -> None:
    await an_elected_pod_is_a_proxy(webhook_client, webhook_namespace)
    await others_are_untouched(webhook_client, webhook_namespace)
    await a_rejection_reaches_the_user(webhook_client, webhook_namespace)
    await a_namespace_elects_and_a_pod_opts_out(webhook_client, webhook_namespace)


async def an_elected_pod_is_a_proxy(client: Client, namespace: str) -> None:
    lasting = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 20,
    }
    wanted = kit.pod("elected", nodeSelector={"disk": "ssd"}, tolerations=[lasting])
    pod = await client.create(kinds.PODS, wanted, namespace)
    spec = objects.spec(pod)
    assert spec["schedulerName"] == "admiralty-proxy"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["nodeSelector"] == {"virtual-kubelet.io/provider": "admiralty"}
    by_key = {toleration["key"]: toleration for toleration in spec["tolerations"]}
    assert by_key["virtual-kubelet.io/provider"]["value"] == "admiralty"
    assert by_key["node.kubernetes.io/network-unavailable"]["operator"] == "Exists"
    assert "tolerationSeconds" not in by_key["node.kubernetes.io/unreachable"]
    assert by_key["node.kubernetes.io/not-ready"]["tolerationSeconds"] == 20
    assert objects.finalizers(pod) == FINALIZERS
    assert objects.labels(pod)[keys.HAS_FINALIZER] == "true"
    saved = json.loads(objects.annotations(pod)[keys.SOURCE_POD_MANIFEST])
    assert saved["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert saved["spec"]["terminationGracePeriodSeconds"] == 30
    assert "managedFields" not in saved["metadata"]


async def others_are_untouched(client: Client, namespace: str) -> None:
    pod = await client.create(kinds.PODS, kit.pod("plain", annotations={}), namespace)
    assert objects.spec(pod)["schedulerName"] == "default-scheduler"
    assert not objects.finalizers(pod)


async def a_rejection_reaches_the_user(client: Client, namespace: str) -> None:
    annotations = {keys.ELECT: "", keys.PROXY_CONSTRAINTS: "nodeSelectr: {}"}
    with pytest.raises(errors.Invalid) as caught:
        await client.create(kinds.PODS, kit.pod("bad", annotations=annotations), namespace)

    assert keys.PROXY_CONSTRAINTS in caught.value.message
    assert "nodeSelectr" in caught.value.message
    assert "write a fragment of a PodSpec" in caught.value.message


async def a_namespace_elects_and_a_pod_opts_out(client: Client, namespace: str) -> None:
    await client.patch(kinds.NAMESPACES, namespace, {"metadata": {"annotations": {keys.ELECT: ""}}})
    pod = await client.create(kinds.PODS, kit.pod("by-namespace", annotations={}), namespace)
    assert objects.spec(pod)["schedulerName"] == "admiralty-proxy"
    annotations = {keys.NO_ELECT: ""}
    pod = await client.create(kinds.PODS, kit.pod("out", annotations=annotations), namespace)
    assert objects.spec(pod)["schedulerName"] == "default-scheduler"
