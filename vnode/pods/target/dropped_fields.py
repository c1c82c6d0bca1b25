"""Finds fields of a delegate that its API server would drop, without which it would run otherwise.

A source may be of a newer Kubernetes than its target. An API server leaves out what it does not
know, or what a feature gate has disabled, and says nothing: a pod would run without its devices,
or without the volume that has its model. No version tells which features are enabled. So a pod
that has such a field is created by a dry run first, and the answer shows what would be left of it.
What an API server was seen to keep, it is not asked about again.
"""

from __future__ import annotations

from typing import Any, Final

from vnode.api import kinds
from vnode.api.errors import ApiError
from vnode.api.objects import Object
from vnode.kube.client import Client

_OF_PODS: Final = (
    "hostnameOverride",
    "resourceClaims",
    "resources",
    "volumes.emptyDir.mode",
    "volumes.image",
    "volumes.projected.sources.clusterTrustBundle",
    "volumes.projected.sources.podCertificate",
)
_OF_CONTAINERS: Final = (
    "env.valueFrom.fileKeyRef",
    "lifecycle.stopSignal",
    "livenessProbe.grpc.mode",
    "livenessProbe.httpGet.protocol",
    "readinessProbe.grpc.mode",
    "readinessProbe.httpGet.protocol",
    "restartPolicyRules",
    "startupProbe.grpc.mode",
    "startupProbe.httpGet.protocol",
    "volumeMounts.bindMountOptions",
)
FIELDS: Final = (
    *_OF_PODS,
    *(f"containers.{field}" for field in _OF_CONTAINERS),
    *(f"initContainers.{field}" for field in _OF_CONTAINERS),
)
"""Fields of a PodSpec that some supported version lacks, or has disabled by default (1.33 to 1.37).

Others that are lost were taken out by an admission plugin of the target, which may do so.
"""

_NO_DRY_RUN: Final = "does not support dry run"

_Path = tuple[str, ...]
_PATHS: Final[dict[str, _Path]] = {field: tuple(field.split(".")) for field in FIELDS}


class DroppedFields:
    """Asks an API server which fields of pods it would drop."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kept: set[str] = set()

    async def find(self, pod: Object, namespace: str) -> str:
        """Return what the API server would drop of a new pod, as a reason; "" for nothing.

        Raise ApiError if it refuses the pod.
        """
        sent = {
            field: count for field, count in used(pod["spec"]).items() if field not in self._kept
        }
        if not sent:
            return ""

        path, query = kinds.PODS.path(namespace), {"dryRun": "All"}
        try:
            answer = await self._client.request("POST", path, query=query, body=pod)
        except ApiError as error:
            if _NO_DRY_RUN in error.message:
                return ""  # a webhook of this cluster is in the way

            raise

        left = used(answer["spec"])
        lost = [field for field, count in sent.items() if left.get(field, 0) < count]
        self._kept.update(sent.keys() - set(lost))
        return reason(lost) if lost else ""


def used(spec: Object) -> dict[str, int]:
    """Return which of the fields a pod has, and how often."""
    counts = ((field, _count(spec, path)) for field, path in _PATHS.items() if path[0] in spec)
    return {field: count for field, count in counts if count}


def _count(value: Any, path: _Path) -> int:
    if isinstance(value, list):
        return sum(_count(item, path) for item in value)

    if not path:
        return 1 if value else 0

    return _count(value.get(path[0]), path[1:]) if isinstance(value, dict) else 0


def reason(lost: list[str]) -> str:
    """Return why a pod is refused, and what can be done, for its user in the source."""
    fields = ", ".join(f"spec.{field}" for field in lost)
    return (
        f"the target's API server would drop {fields}: its version of Kubernetes lacks that, or "
        "has it disabled; enable it there, or keep the pod to other targets"
    )
