"""Events about delegates, as components of a target write them."""

from __future__ import annotations

from typing import Any

from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.objects import Object

PULL = "Back-off pulling image"
UNHEALTHY = "Readiness probe failed: HTTP probe failed with statuscode: 503"


def store_event(
    server: APIServer,
    pod: Object,
    reason: str,
    message: str = "",
    *,
    warning: bool = False,
    name: str = "",
    **fields: Any,
) -> None:
    """Store an Event of a kubelet."""
    now = server.writer.now()
    event = {
        "metadata": {
            "name": name or f"{objects.name(pod)}.{server.writer.new_uid()}",
            "namespace": objects.namespace(pod),
        },
        "involvedObject": objects.reference(pod, "Pod", "v1"),
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message,
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        **fields,
    }
    server.add(kinds.EVENTS, event)


def schedule(server: APIServer, pod: Object) -> None:
    """Store an Event of kube-scheduler, which uses the newer API."""
    message = f"Successfully assigned {objects.key(pod)} to n1"
    modern: dict[str, Any] = {
        "count": 0,
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": server.writer.now().replace("Z", ".123456Z"),
        "source": {},
        "reportingComponent": "admiralty-candidate",
        "reportingInstance": "admiralty-candidate-c2",
    }
    store_event(server, pod, "Scheduled", message, **modern)


def start(server: APIServer, pod: Object) -> None:
    """Store what is told of a pod that starts as it should."""
    schedule(server, pod)
    store_event(server, pod, "Pulled", 'Container image "busybox" already present on machine')
    store_event(server, pod, "Created", "Container created")
    store_event(server, pod, "Started", "Container started")
