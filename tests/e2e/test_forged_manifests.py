"""What the source's admission has seen is what runs: forged manifests, and namespaces that take
no part."""

from __future__ import annotations

import json

import pytest

from tests import admiralty_webhook, kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, shared
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["home", "shared"]

EVIL: Object = {
    "hostNetwork": True,
    "hostPID": True,
    "nodeSelector": {"chosen-by": "a-forger"},
    "tolerations": [{"operator": "Exists"}],
    "containers": [
        {"name": "main", "image": "evil", "securityContext": {"privileged": True}},
        {"name": "second", "image": "evil"},
    ],
    "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
}


def forged(name: str) -> dict[str, str]:
    manifest = {"metadata": {"name": name}, "spec": EVIL}
    return {keys.SOURCE_POD_MANIFEST: json.dumps(manifest), keys.MANIFEST_SIGNATURE: "AAAA"}


@pytest.fixture
async def restricted(fleet: Fleet, source: Client, shared: str) -> str:
    """Return a namespace with a Target; the source lets no pod of the namespace use its host."""
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    await source.patch(kinds.NAMESPACES, shared, {"metadata": {"labels": labels}})
    done = own.connect(fleet, shared, "c2", "--cluster-name", "c1")
    assert done.code == 0, done.err
    await own.assert_connects(source, shared)
    return shared


async def delegate_of(source: Client, target: Client, name: str, namespace: str) -> Object:
    pod = await kit.until_one(
        source, kinds.PODS, name, namespace, lambda pod: kit.phase(pod) == "Running"
    )
    return await target.get(kinds.PODS, names.chaperon(name, objects.uid(pod)), namespace)


def assert_honest(delegate: Object) -> None:
    spec = objects.spec(delegate)
    assert [entry["image"] for entry in spec["containers"]] == ["busybox"]
    assert "securityContext" not in spec["containers"][0]
    assert not {"hostNetwork", "hostPID"} & spec.keys()
    assert not any("hostPath" in volume for volume in spec.get("volumes") or ())
    assert "chosen-by" not in (spec.get("nodeSelector") or {})
    assert {"operator": "Exists"} not in spec["tolerations"]


async def until_held(source: Client, name: str, namespace: str) -> None:
    await kit.until_one(
        source,
        kinds.PODS,
        name,
        namespace,
        lambda pod: (
            "scheduling constraints are not known" in str(objects.condition(pod, "PodScheduled"))
        ),
    )


async def test_a_pod_whose_manifest_a_user_changes_later_goes_nowhere(
    source: Client, c2: Client, restricted: str
) -> None:
    gated = kit.pod("later", schedulingGates=[{"name": "example.com/wait"}])
    await source.create(kinds.PODS, gated, restricted)
    body = {"metadata": {"annotations": forged("later")}, "spec": {"schedulingGates": None}}
    await source.patch(kinds.PODS, "later", body, restricted)
    await until_held(source, "later", restricted)
    assert await c2.list(kinds.POD_CHAPERONS, restricted) == []


async def test_a_pod_in_the_form_of_admiraltys_webhook_goes_nowhere(
    fleet: Fleet, source: Client, c2: Client, restricted: str
) -> None:
    """Its own constraints are in an annotation that anybody can write."""
    own = kit.pod("by-hand", annotations={keys.ELECT: ""}, nodeSelector={"nope": "x"})
    finalizers = [names.finalizer(restricted, "bad")]
    await source.create(kinds.PODS, admiralty_webhook.admitted(own, finalizers), restricted)
    await until_held(source, "by-hand", restricted)
    assert await c2.list(kinds.POD_CHAPERONS, restricted) == []
    told = kit.run([*fleet.kubectl_command("c1"), "describe", "pod", "by-hand", "-n", restricted])
    assert "run vnode migrate if Admiralty has admitted the pod" in told
    found = vnode("doctor", "--kubeconfig", fleet.kubeconfig("c1"))
    assert f"pod/{restricted}/by-hand" in found.out


@pytest.mark.parametrize("elected", [True, False], ids=["elected", "by-scheduler"])
async def test_a_manifest_that_a_user_creates_a_pod_with_is_not_what_runs(
    source: Client, c2: Client, restricted: str, elected: bool
) -> None:
    if elected:
        pod = kit.pod("given", annotations={keys.ELECT: "", **forged("given")})
    else:
        pod = kit.pod(
            "given",
            annotations=forged("given"),
            schedulerName=keys.PROXY_SCHEDULER,
            tolerations=[{"key": keys.PROVIDER_LABEL, "operator": "Exists"}],
        )

    await source.create(kinds.PODS, pod, restricted)
    assert_honest(await delegate_of(source, c2, "given", restricted))


async def test_a_namespace_without_the_label_takes_no_part(
    source: Client, c2: Client, restricted: str
) -> None:
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    await source.patch(kinds.NAMESPACES, restricted, {"metadata": {"labels": {label: None}}})
    by_scheduler = kit.pod("a", annotations=forged("a"), schedulerName=keys.PROXY_SCHEDULER)
    by_node = kit.pod("b", annotations={}, nodeName=names.virtual_node(restricted, "bad"))
    for pod in (by_scheduler, by_node):
        await source.create(kinds.PODS, pod, restricted)

    text = f"namespace {restricted} does not have the label multicluster-scheduler=enabled"
    await kit.until_one(
        source,
        kinds.PODS,
        "a",
        restricted,
        lambda pod: text in str(objects.condition(pod, "PodScheduled")),
    )
    await kit.until_event(source, restricted, "reason=DelegateRefused", text)
    assert await c2.list(kinds.POD_CHAPERONS, restricted) == []
    await source.patch(kinds.NAMESPACES, restricted, {"metadata": {"labels": {label: value}}})
    await delegate_of(source, c2, "b", restricted)
