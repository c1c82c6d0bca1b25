"""Turns a pod that is being created into its proxy pod: an admission decision as a JSON patch.

Pure, and on the raw JSON of the request, so that pod fields newer than this code pass through. The
pod as its user wrote it is saved in an annotation, and signed, so that its delegate can have its
own constraints again; the rest is changed to choose a virtual node. It does what Admiralty's
webhook does, and adds the finalizers of ClusterTargets, and keeps the tolerations that say how long
a proxy outlives its node (docs/admiralty-contract.md, section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from vnode.api import (
    keys,
    objects,
    patterns,
    pod_shape,
    virtual_constraints,
)
from vnode.api.errors import ConfigError
from vnode.api.objects import TOTAL_ANNOTATION_SIZE, Object
from vnode.api.saved_manifest import SavedManifests
from vnode.planning.failover import Failover
from vnode.webhook import constraints, election, judged_terms, tolerations
from vnode.webhook.patch import Patch

_SAVED: Final = (keys.SOURCE_POD_MANIFEST, keys.MANIFEST_SIGNATURE)
_SIGNATURE_BYTES: Final = 44  # of SHA-256 in base64


class _AdmittedOwner(msgspec.Struct):
    kind: str = ""


class _AdmittedMetadata(msgspec.Struct, rename="camel"):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[_AdmittedOwner] | None = None


class _AdmittedToleration(msgspec.Struct):
    key: str | None = None


class _AdmittedSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    tolerations: list[_AdmittedToleration] | None = None
    node_selector: dict[str, str] | None = None


class _AdmittedPod(msgspec.Struct):
    metadata: _AdmittedMetadata
    spec: _AdmittedSpec


def is_pod(obj: Any) -> bool:
    """Tell whether the parts that this module reads have the types that the API gives them."""
    try:
        msgspec.convert(obj, _AdmittedPod)
    except msgspec.ValidationError:
        return False

    return pod_shape.is_pod(obj)


def proxy_patch(
    pod: Object,
    namespace: str,
    finalizers: Sequence[str],
    manifests: SavedManifests,
    *,
    failover: Failover | None = None,
) -> list[Object]:
    """Return the JSON patch that makes an elected pod a proxy; empty if it is one already.

    `finalizers` are those of all targets that pods of its namespace may use. A manifest that is
    saved already stays if `manifests` believes it, or if nobody knows what the pod was before, so
    that it runs nowhere; else the pod itself is saved. With `failover` of its placement policy
    Kubernetes evicts the pod from no lost node, unless its user has said when, and the pod may have
    to wait for the state of one that it replaces. Raises ConfigError if an annotation is not
    acceptable: its text tells the user which one, why, and the cure.

    The size of all annotations is checked first: some are parsed as YAML, and whoever sends the pod
    need not be an API server, which would refuse them too, but only after the webhook.
    """
    annotations = objects.annotations(pod)
    if (size := _size(annotations)) > TOTAL_ANNOTATION_SIZE:
        raise ConfigError(
            f"the annotations take {size} bytes, and {TOTAL_ANNOTATION_SIZE} are allowed: move "
            f"large ones into a ConfigMap"
        )

    source = manifests.source_pod(pod, namespace)
    if keys.NO_PREFIX_LABEL_REGEXP in annotations:
        _checked(keys.NO_PREFIX_LABEL_REGEXP, patterns.compile_safe, annotations)

    patch = Patch(pod)
    _save(patch, pod, namespace, manifests)
    patch.remove("metadata", "annotations", keys.PLACED)  # of the pod that this one is a copy of
    patch.set("true", "metadata", "labels", keys.HAS_FINALIZER)
    _set_or_remove(patch, _finalizers(pod, finalizers), "metadata", "finalizers")
    wanted = _node_constraints(pod, source)
    is_ours = keys.FAILOVER in annotations  # it, or the pod that it is a copy of, was here before
    if (failover or is_ours) and not tolerations.say_when(wanted["tolerations"], known=is_ours):
        patch.set("", "metadata", "annotations", keys.FAILOVER)
        wanted["tolerations"] = tolerations.without_end(wanted["tolerations"])
    else:
        patch.remove("metadata", "annotations", keys.FAILOVER)

    for field, value in wanted.items():
        _set_or_remove(patch, value, "spec", field)

    patch.set(keys.PROXY_SCHEDULER, "spec", "schedulerName")
    patch.remove("metadata", "annotations", keys.PRESERVED_FROM)
    gates, gate = objects.spec(pod).get("schedulingGates") or [], {"name": keys.AWAITS_STATE}
    is_replaced = "ReplicaSet" in election.owners(pod)
    if failover and failover.preserve and is_replaced and gate not in gates:
        patch.set([*gates, gate], "spec", "schedulingGates")

    return patch.operations


def _save(patch: Patch, pod: Object, namespace: str, manifests: SavedManifests) -> None:
    """Save and sign the pod, unless it is saved already, or nobody knows what it was before."""
    if manifests.believed(pod, namespace) is not None or manifests.refusal(pod, namespace):
        return

    text = _manifest(pod)
    signature = manifests.signature(pod, namespace, text)
    patch.set(text, "metadata", "annotations", keys.SOURCE_POD_MANIFEST)
    patch.set(signature, "metadata", "annotations", keys.MANIFEST_SIGNATURE)


def _set_or_remove(patch: Patch, value: Any, *path: str) -> None:
    if value:
        patch.set(value, *path)
    else:
        patch.remove(*path)


def _node_constraints(pod: Object, source: Object) -> Object:
    """Return the four scheduling constraints of the proxy; an empty one is to be absent.

    Without an annotation that says which they are, they are those of the pod that no real node
    could meet. What Kubernetes judges of the pod's own affinity is left beside them. A
    `nodeSelector` for virtual nodes that somebody else, such as a quota controller, adds to the pod
    is respected beside the annotation.
    """
    annotations = objects.annotations(pod)
    wanted = own = virtual_constraints.of_spec(objects.spec(source))
    if keys.PROXY_CONSTRAINTS in annotations:
        wanted = _checked(keys.PROXY_CONSTRAINTS, constraints.parse, annotations)
    elif keys.USE_SPEC_CONSTRAINTS in annotations:
        wanted = constraints.of_spec(objects.spec(source))

    selectors = (own.get("nodeSelector", {}), wanted.get("nodeSelector", {}))
    return {
        "nodeSelector": {keys.PROVIDER_LABEL: keys.PROVIDER, **selectors[0], **selectors[1]},
        "tolerations": tolerations.of_proxy(pod, wanted.get("tolerations", [])),
        "affinity": judged_terms.with_judged(
            wanted.get("affinity"), objects.spec(source).get("affinity")
        ),
        "topologySpreadConstraints": wanted.get("topologySpreadConstraints"),
    }


def _finalizers(pod: Object, ours: Sequence[str]) -> list[str]:
    others = [name for name in objects.finalizers(pod) if not name.startswith(keys.PREFIX)]
    return others + list(dict.fromkeys(ours))


def _manifest(pod: Object) -> str:
    """Return the pod to be saved: JSON, which every reader of YAML reads."""
    metadata = {k: v for k, v in objects.metadata(pod).items() if k != "managedFields"}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {k: v for k, v in annotations.items() if k not in _SAVED}

    text = msgspec.json.encode(
        {
            **pod,
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "creationTimestamp": None},
            "status": {},
        }
    ).decode()
    signature = " " * _SIGNATURE_BYTES
    saved = {keys.SOURCE_POD_MANIFEST: text, keys.MANIFEST_SIGNATURE: signature}
    size = _size({**objects.annotations(pod), **saved})
    if size > TOTAL_ANNOTATION_SIZE:
        raise ConfigError(
            f"annotation {keys.SOURCE_POD_MANIFEST}: the pod is too large to be saved in it: with "
            f"it the annotations take {size} bytes, and {TOTAL_ANNOTATION_SIZE} are allowed; move "
            f"large annotations, environment or commands into a ConfigMap"
        )

    return text


def _size(annotations: Mapping[str, str]) -> int:
    return sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items())


_CURES: Final = {
    keys.PROXY_CONSTRAINTS: (
        "write a fragment of a PodSpec in YAML, with nodeSelector, tolerations, affinity or "
        "topologySpreadConstraints"
    ),
    keys.NO_PREFIX_LABEL_REGEXP: 'write an RE2 expression for "key=value" of the labels to keep',
}


def _checked(key: str, read: Callable[[str], Any], annotations: dict[str, str]) -> Any:
    """Read an annotation; an error names it and the cure."""
    try:
        return read(annotations[key])
    except ConfigError as error:
        raise ConfigError(f"annotation {key}: {error}; {_CURES[key]}") from error
