"""What holds for the pods, nodes and subresources of every API server; see `contract`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.contract import (
    CHAPERONS,
    chaperon,
    condition_types,
    pod,
)
from vnode.api import kinds, objects
from vnode.api.errors import Conflict, Invalid, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client


async def test_a_new_pod_has_defaults_and_a_status_of_the_servers(
    client: Client, pod_namespace: str
) -> None:
    made = await client.create(kinds.PODS, {**pod(pod_namespace), "status": {"phase": "Running"}})
    spec = objects.spec(made)
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["restartPolicy"] == "Always"
    assert spec["serviceAccountName"] == "default"
    assert objects.status(made)["phase"] == "Pending"
    assert objects.metadata(made)["generation"] == 1


async def test_the_status_of_a_custom_resource_has_its_own_door(
    client: Client, pod_namespace: str
) -> None:
    body = {**chaperon(pod_namespace), "status": {"phase": "Running"}}
    made = await client.create(CHAPERONS, body)
    assert "status" not in made
    both = {"metadata": {"labels": {"x": "1"}}, "spec": {"nodeName": "n"}}
    failed = {**both, "status": {"phase": "Failed"}}
    after = await client.patch(CHAPERONS, "c", failed, pod_namespace, subresource="status")
    assert objects.status(after)["phase"] == "Failed"
    assert after["spec"] == made["spec"]
    assert objects.labels(after) == {}
    assert objects.metadata(after)["generation"] == 1
    after = await client.patch(
        CHAPERONS, "c", {**both, "status": {"phase": "Running"}}, pod_namespace
    )
    assert objects.status(after)["phase"] == "Failed"
    assert objects.labels(after) == {"x": "1"}
    assert objects.metadata(after)["generation"] == 2


async def test_a_patch_of_the_status_of_a_pod_can_be_of_one_uid_but_not_that_of_a_custom_resource(
    client: Client, pod_namespace: str
) -> None:
    """Name the version where the status of a namesake must not be written: of what is sent for
    the status of a custom resource, the API server reads no other metadata.
    """

    async def patch(kind: Kind, **metadata: str) -> Object:
        body = {"metadata": metadata, "status": {"phase": "Running"}}
        return await client.patch(kind, "p", body, pod_namespace, subresource="status")

    for kind in (kinds.PODS, CHAPERONS):
        await client.create(kind, pod(pod_namespace))
        with pytest.raises(Conflict):
            await patch(kind, resourceVersion="1")

    with pytest.raises(Conflict):
        await patch(kinds.PODS, uid="another")

    after = await patch(CHAPERONS, uid="another")
    assert objects.uid(after) not in ("", "another")
    assert objects.status(after)["phase"] == "Running"


async def test_the_spec_of_a_pod_can_hardly_change(client: Client, pod_namespace: str) -> None:
    await client.create(kinds.PODS, pod(pod_namespace))
    with pytest.raises(Invalid):
        await client.patch(kinds.PODS, "p", {"spec": {"hostNetwork": True}}, pod_namespace)

    body = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    after = await client.patch(kinds.PODS, "p", body, pod_namespace, strategic=True)
    assert objects.spec(after)["containers"][0]["image"] == "other"
    assert objects.metadata(after)["generation"] == 2


async def test_a_pod_gets_ephemeral_containers_through_their_subresource(
    client: Client, pod_namespace: str
) -> None:
    await client.create(kinds.PODS, pod(pod_namespace))
    body = {"spec": {"ephemeralContainers": [{"name": "shell", "image": "busybox"}]}}
    with pytest.raises(Invalid):
        await client.patch(kinds.PODS, "p", body, pod_namespace, strategic=True)

    after = await client.patch(
        kinds.PODS, "p", body, pod_namespace, subresource="ephemeralcontainers", strategic=True
    )
    (entry,) = objects.spec(after)["ephemeralContainers"]
    assert entry["name"] == "shell"
    assert objects.metadata(after)["generation"] == 2


async def test_a_pod_is_resized_through_its_subresource(client: Client, pod_namespace: str) -> None:
    requests = {"requests": {"cpu": "1"}}
    body = pod(pod_namespace)
    body["spec"]["containers"][0]["resources"] = requests
    await client.create(kinds.PODS, body)
    change = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    with pytest.raises(Invalid):
        await client.patch(kinds.PODS, "p", change, pod_namespace, strategic=True)

    after = await client.patch(
        kinds.PODS, "p", change, pod_namespace, subresource="resize", strategic=True
    )
    assert objects.spec(after)["containers"][0]["resources"]["requests"] == {"cpu": "2"}
    assert objects.metadata(after)["generation"] == 2


def binding(name: str, node: str = "n", **metadata: Any) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": target,
    }


async def test_a_pod_is_bound_once(client: Client, pod_namespace: str) -> None:
    async def bind(body: Object) -> Object:
        return await client.create(kinds.PODS, body, pod_namespace, name="p", subresource="binding")

    with pytest.raises(NotFound):
        await bind(binding("p"))

    await client.create(kinds.PODS, pod(pod_namespace))
    with pytest.raises(Conflict):
        await bind(binding("p", uid="another"))

    zone = {"topology.kubernetes.io/zone": "z"}
    await bind(binding("p", annotations={"x": "1"}, labels=zone))
    after = await client.get(kinds.PODS, "p", pod_namespace)
    assert objects.spec(after)["nodeName"] == "n"
    assert objects.annotations(after) == {"x": "1"}
    assert zone.items() <= objects.labels(after).items()
    assert (objects.condition(after, "PodScheduled") or {})["status"] == "True"
    assert objects.metadata(after)["generation"] == 1
    with pytest.raises(Conflict):
        await bind(binding("p", "other"))


async def test_a_binding_is_for_the_version_of_the_pod_that_it_names(
    client: Client, pod_namespace: str
) -> None:
    before = await client.create(kinds.PODS, pod(pod_namespace))
    change: objects.Object = {"metadata": {"labels": {"changed": "yes"}}}
    after = await client.patch(kinds.PODS, "p", change, pod_namespace)
    for version in (objects.resource_version(before), objects.resource_version(after)):
        body = binding("p", uid=objects.uid(before), resourceVersion=version)
        request = client.create(kinds.PODS, body, pod_namespace, name="p", subresource="binding")
        if version == objects.resource_version(after):
            await request
        else:
            with pytest.raises(Conflict):
                await request

    assert objects.node_name(await client.get(kinds.PODS, "p", pod_namespace)) == "n"


async def test_a_pod_with_gates_or_at_its_end_is_not_bound(
    client: Client, pod_namespace: str
) -> None:
    gated = pod(pod_namespace, "gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    await client.create(kinds.PODS, gated)
    await client.create(kinds.PODS, pod(pod_namespace, "ending", finalizers=["a.b/c"]))
    await client.delete(kinds.PODS, "ending", pod_namespace)
    for name in ("gated", "ending"):
        with pytest.raises(Conflict):
            await client.create(
                kinds.PODS, binding(name), pod_namespace, name=name, subresource="binding"
            )

    await client.patch(kinds.PODS, "gated", {"spec": {"schedulingGates": None}}, pod_namespace)
    await client.create(
        kinds.PODS, binding("gated"), pod_namespace, name="gated", subresource="binding"
    )
    none = {"metadata": {"finalizers": None}}
    await client.patch(kinds.PODS, "ending", none, pod_namespace)


async def test_labels_of_a_node_can_be_written_with_its_status(
    client: Client, pod_namespace: str
) -> None:
    name = f"n-{pod_namespace}"
    body = {"metadata": {"name": name}, "status": {"capacity": {"cpu": "1"}}}
    made = await client.create(kinds.NODES, body)
    assert objects.status(made)["capacity"] == {"cpu": "1"}
    change: dict[str, Object] = {
        "metadata": {"name": name, "labels": {"x": "1"}},
        "spec": {"unschedulable": True},
        "status": {"capacity": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    after = await client.apply(kinds.NODES, change, subresource="status")
    assert objects.status(after)["capacity"] == {"cpu": "2"}
    assert objects.labels(after).get("x") == "1"
    assert "unschedulable" not in objects.spec(after)
    labels = {"metadata": {"name": name, "labels": {"y": "2"}}}
    await client.apply(kinds.NODES, labels)
    del change["metadata"]["labels"]
    change["status"]["conditions"] = [{"type": "Other", "status": "True"}]
    after = await client.apply(kinds.NODES, change, subresource="status")
    assert condition_types(after) == {"Other"}
    assert "x" not in objects.labels(after)
    assert objects.labels(after)["y"] == "2"
    await client.delete(kinds.NODES, name)


async def test_a_token_is_made_for_a_service_account(client: Client, pod_namespace: str) -> None:
    body = {"spec": {"expirationSeconds": 600, "audiences": ["a"]}}
    answer = await client.create(
        kinds.SERVICE_ACCOUNTS, body, pod_namespace, name="default", subresource="token"
    )
    assert objects.status(answer)["token"]
    assert objects.parse_timestamp(objects.status(answer)["expirationTimestamp"])
    short = {"spec": {"expirationSeconds": 599}}
    for error, name, asked in ((NotFound, "absent", body), (Invalid, "default", short)):
        with pytest.raises(error):
            await client.create(
                kinds.SERVICE_ACCOUNTS, asked, pod_namespace, name=name, subresource="token"
            )


async def test_a_token_is_bound_to_a_pod_of_its_account(client: Client, pod_namespace: str) -> None:
    made = await client.create(kinds.PODS, pod(pod_namespace))

    async def token(**bound: str) -> Object:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", **bound}
        body = {"spec": {"boundObjectRef": reference, "expirationSeconds": 600}}
        return await client.create(
            kinds.SERVICE_ACCOUNTS, body, pod_namespace, name=account, subresource="token"
        )

    account = "default"
    assert objects.status(await token(uid=objects.uid(made)))["token"]
    for error, bound in ((NotFound, {"name": "absent"}), (Conflict, {"uid": "another"})):
        with pytest.raises(error):
            await token(**bound)

    account = "other"
    body = {"metadata": {"name": account, "namespace": pod_namespace}}
    await client.create(kinds.SERVICE_ACCOUNTS, body)
    with pytest.raises(Invalid):
        await token()

    held = await client.create(kinds.SECRETS, {"metadata": {"name": "s"}}, pod_namespace)
    of_secret = {"kind": "Secret", "name": "s"}
    assert objects.status(await token(**of_secret, uid=objects.uid(held)))["token"]
    for error, bound in ((NotFound, {"name": "absent"}), (Conflict, {"uid": "another"})):
        with pytest.raises(error):
            await token(**{**of_secret, **bound})


async def test_a_review_tells_whose_token_it_is(client: Client, pod_namespace: str) -> None:
    async def review(token: str) -> Object:
        return objects.status(await client.create(kinds.TOKEN_REVIEWS, {"spec": {"token": token}}))

    spec = {"spec": {"expirationSeconds": 600}}
    answer = await client.create(
        kinds.SERVICE_ACCOUNTS, spec, pod_namespace, name="default", subresource="token"
    )
    found = await review(objects.status(answer)["token"])
    user = f"system:serviceaccount:{pod_namespace}:default"
    assert (found["authenticated"], found["user"]["username"]) == (True, user)
    assert not (await review("nonsense")).get("authenticated")
    with pytest.raises(Invalid):
        await review("")
