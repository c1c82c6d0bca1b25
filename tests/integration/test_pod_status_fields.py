"""Each field of a pod's status that this API server knows comes home: set, changed and removed.

The fields are those of its own OpenAPI document, so that the next version of Kubernetes adds what
it brings. What counts is what the API server makes of a patch, not what the patch says: the same as
of a replacement. (It leaves out fields whose feature gate is off.)
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods.source import feedback

PODS: Final = "/openapi/v3/api/v1"
TRANSLATED: Final = {"observedGeneration"}  # tests/unit/pods/test_observed_generation.py
# Fields that an API server takes together only.
TOGETHER: Final = {"hostIPs": "hostIP", "podIPs": "podIP"}


def container_status(name: str, n: int) -> Object:
    return {
        "name": name,
        "image": f"busybox:{n}",
        "imageID": f"sha256:{n}",
        "ready": n == 1,
        "restartCount": n,
        "state": {"running": {"startedAt": f"2026-01-0{n}T00:00:00Z"}},
        "lastState": {},
        "allocatedResources": {"cpu": f"{n}", f"example.com/r{n}": "1"},
        "resources": {"requests": {"cpu": f"{n}"}, "limits": {f"example.com/r{n}": "1"}},
    }


# Values that keep the rules of an API server, by field; all others follow from the schema.
RULED: Final[dict[str, Any]] = {
    "allocatedResources": lambda n: {"cpu": f"{n}", ["memory", "hugepages-2Mi"][n - 1]: "2Mi"},
    "conditions": lambda n: [{"type": f"example.com/{n}", "status": "True"}],
    "containerStatuses": lambda n: [container_status("main", n)],
    "ephemeralContainerStatuses": lambda n: [container_status("debug", n)],
    "hostIP": lambda n: f"10.0.0.{n}",
    "hostIPs": lambda n: [{"ip": f"10.0.0.{n}"}],
    "initContainerStatuses": lambda n: [container_status("init", n)],
    "phase": lambda n: ["Pending", "Running"][n - 1],
    "podIP": lambda n: f"10.1.0.{n}",
    "podIPs": lambda n: [{"ip": f"10.1.0.{n}"}, *([{"ip": "fd00::1"}] if n == 1 else [])],
}


def sample(schema: Object, schemas: Object, n: int) -> Any:
    """Build a value of the schema; 1 and 2 differ, and have keys that the other lacks."""
    for entry in schema.get("allOf") or [schema]:
        if reference := entry.get("$ref"):
            name = reference.rpartition("/")[2]
            return f"{n}" if name.endswith(".Quantity") else sample(schemas[name], schemas, n)

    match schema:
        case {"format": "date-time"}:
            return f"2026-01-0{n}T00:00:00Z"
        case {"enum": allowed}:
            return allowed[n - 1]
        case {"type": "integer"}:
            return n
        case {"type": "boolean"}:
            return True
        case {"items": inner}:
            return [sample(inner, schemas, i) for i in range(1, n + 1)]
        case {"properties": fields}:
            return {name: sample(field, schemas, n) for name, field in fields.items()}
        case {"additionalProperties": inner}:
            return {key: sample(inner, schemas, n) for key in ("both", f"only-{n}")}
        case _:
            return f"value-{n}"


@pytest.fixture(scope="module")
def schemas(fleet: Fleet) -> Object:
    """Return the schemas of the API server's own OpenAPI document."""
    document = json.loads(fleet.kubectl("c1", "get", "--raw", PODS))
    found: Object = document["components"]["schemas"]
    return found


def values(field: str, schemas: Object, n: int) -> Object:
    """Return the fields of a status for this one."""
    properties = schemas["io.k8s.api.core.v1.PodStatus"]["properties"]
    names = [field, *([TOGETHER[field]] if field in TOGETHER else [])]
    return {
        name: RULED[name](n) if name in RULED else sample(properties[name], schemas, n)
        for name in names
    }


def pod(name: str, namespace: str) -> Object:
    resources = {"limits": {"example.com/r1": "1"}}
    main: Object = {"name": "main", "image": "busybox", "resources": resources}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "nodeName": "admiralty-c2",
            "containers": [main],
            "initContainers": [{"name": "init", "image": "busybox", "restartPolicy": "Always"}],
        },
    }


async def debugged_pod(client: Client, name: str, namespace: str) -> Object:
    """Create a pod with an ephemeral container."""
    await client.create(kinds.PODS, pod(name, namespace))
    body = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
    return await client.patch(
        kinds.PODS, name, body, namespace, subresource="ephemeralcontainers", strategic=True
    )


def test_all_lists_that_are_merged_are_known(schemas: Object) -> None:
    fields = schemas["io.k8s.api.core.v1.PodStatus"]["properties"].items()
    merged = {k for k, v in fields if "merge" in v.get("x-kubernetes-patch-strategy", "")}
    assert merged - feedback.STAYS_BEHIND == feedback.MERGED_LISTS | {"conditions"}


async def test_each_field_is_set_changed_and_removed(
    client: Client, pod_namespace: str, schemas: Object
) -> None:
    fields = schemas["io.k8s.api.core.v1.PodStatus"]["properties"].keys()
    wrong = []
    for field in sorted(fields - feedback.STAYS_BEHIND - TRANSLATED - set(TOGETHER.values())):
        patched = await debugged_pod(client, "patched", pod_namespace)
        replaced = await debugged_pod(client, "replaced", pod_namespace)
        for step in (values(field, schemas, 1), values(field, schemas, 2), {}):
            candidate: Object = {"metadata": {}, "spec": {}, "status": {"phase": "Pending", **step}}
            patched = await client.patch(
                kinds.PODS,
                "patched",
                feedback.status_patch(patched, candidate),
                pod_namespace,
                subresource="status",
                strategic=True,
            )
            cleared = dict.fromkeys([field, TOGETHER.get(field, field)])
            wanted = {**objects.status(replaced), **cleared, "phase": "Pending", **step}
            replaced = await client.replace(
                kinds.PODS, {**replaced, "status": wanted}, subresource="status"
            )
            for name in {field} | step.keys():
                found, expected = (objects.status(each).get(name) for each in (patched, replaced))
                if found != expected:
                    wrong.append((name, step, found, expected))

        for name in ("patched", "replaced"):
            await client.delete(kinds.PODS, name, pod_namespace, grace=0)

    assert not wrong, json.dumps(wrong, indent=1)
