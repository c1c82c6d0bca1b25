"""Signs the manifest that the webhook saves in an annotation of a proxy, and says what is believed.

Whoever may change a pod may write its annotations, and what the source has admitted is the live
pod. So a delegate is built from the live spec. Of the saved manifest are taken only the fields in
which the two differ by the webhook's own doing, since on the proxy they choose a virtual node; and
these only if the signature is the agents' own, made for a pod of that namespace and name
(docs/decisions/0037).

A pod in which a webhook has replaced them, and whose manifest is not believed, has constraints that
nobody knows: it may run nowhere (docs/decisions/0081).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Final

import msgspec

from vnode.api import documents, keys, objects, pod_shape
from vnode.api.errors import ConfigError
from vnode.api.objects import Object

FIELDS: Final = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
    "schedulerName",
    "terminationGracePeriodSeconds",  # Admiralty's webhook sets it to 0
)
"""The fields of a spec that the saved manifest decides; the webhook has replaced them."""

UNKNOWN: Final = "the pod's own scheduling constraints are not known"
"""How each refusal begins."""

_AGAIN: Final = "delete the pod and create it again"
_UNSIGNED: Final = (
    f"{UNKNOWN}: vnode has not signed its annotation {keys.SOURCE_POD_MANIFEST}; run vnode migrate "
    f"if Admiralty has admitted the pod, else {_AGAIN}"
)
_FALSE: Final = (
    f"{UNKNOWN}: the signature of its annotation {keys.SOURCE_POD_MANIFEST} is for another text or "
    f"another pod, or by a key that was replaced; {_AGAIN}"
)
_REMOVED: Final = (
    f"{UNKNOWN}: it is a proxy pod without the annotation {keys.SOURCE_POD_MANIFEST}; {_AGAIN}"
)
_WEBHOOKS_TOLERATION: Final = {
    "key": "node.kubernetes.io/network-unavailable",
    "operator": "Exists",
}
"""Only the webhooks, Admiralty's and ours, give pods this one, without an effect."""


class _SavedMetadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _SavedSpec(msgspec.Struct, rename="camel"):
    """Other fields of the manifest are skipped, and cost no memory."""

    node_selector: msgspec.Raw = msgspec.Raw(b"null")
    tolerations: msgspec.Raw = msgspec.Raw(b"null")
    affinity: msgspec.Raw = msgspec.Raw(b"null")
    topology_spread_constraints: msgspec.Raw = msgspec.Raw(b"null")
    scheduler_name: str | None = None
    termination_grace_period_seconds: int | None = None


class _SavedPod(msgspec.Struct):
    spec: _SavedSpec
    metadata: _SavedMetadata | None = None


_decoder: Final = msgspec.json.Decoder(_SavedPod)


class SavedManifests:
    """Signs manifests by the agents' key, and tells which are believed.

    `key` returns the key that all replicas share. `trust_unsigned` has manifests believed that have
    no signature, as those of Admiralty's webhook, but none with a wrong one.
    """

    def __init__(self, key: Callable[[], bytes], *, trust_unsigned: bool = False) -> None:
        self._key = key
        self._trust_unsigned = trust_unsigned

    def signature(self, pod: Object, namespace: str, text: str) -> str:
        """Return the signature of a manifest that is saved in a pod of that namespace."""
        metadata = objects.metadata(pod)
        # A pod that is being created may have no name yet, but what its name is generated from.
        name = metadata.get("generateName") or metadata.get("name") or ""
        parts = msgspec.json.encode([namespace, name, text])
        return base64.b64encode(hmac.digest(self._key(), parts, hashlib.sha256)).decode()

    def believed(self, pod: Object, namespace: str) -> str | None:
        """Return the manifest of a pod of that namespace if it is to be believed, else None."""
        annotations = objects.annotations(pod)
        text = annotations.get(keys.SOURCE_POD_MANIFEST)
        if text is None:
            return None

        given = annotations.get(keys.MANIFEST_SIGNATURE)
        if given is None:
            return text if self._trust_unsigned else None

        wanted = self.signature(pod, namespace, text)
        return text if hmac.compare_digest(given.encode(), wanted.encode()) else None

    def refusal(self, pod: Object, namespace: str | None = None) -> str:
        """Return why a pod may run nowhere: its constraints are not known; "" if they are.

        That is so if a webhook has replaced them, and what it has saved is not believed. In any
        other pod they are what the pod says. `namespace` is for a pod that is being created.
        """
        if objects.spec(pod).get("schedulerName") != keys.PROXY_SCHEDULER:
            return ""

        annotations, namespace = objects.annotations(pod), namespace or objects.namespace(pod)
        if keys.SOURCE_POD_MANIFEST not in annotations:
            return _REMOVED if _is_changed(pod) and _is_marked(pod) else ""

        if self.believed(pod, namespace) is not None:
            return ""

        if keys.MANIFEST_SIGNATURE not in annotations:
            return _UNSIGNED

        return _FALSE if _is_changed(pod) else ""

    def source_pod(self, proxy: Object, namespace: str | None = None) -> Object:
        """Return the pod to be sent: the live one, as it was before the webhook changed it.

        Its annotations are those that the user gave it at first. `namespace` is for a pod that is
        being created. ConfigError if a manifest that is believed cannot be read.
        """
        text = self.believed(proxy, namespace or objects.namespace(proxy))
        if text is None:
            return proxy

        annotations, saved = read(text)
        live = {k: v for k, v in objects.spec(proxy).items() if k not in FIELDS}
        metadata = {**objects.metadata(proxy), "annotations": annotations}
        return {**proxy, "metadata": metadata, "spec": live | saved}


def _is_changed(pod: Object) -> bool:
    """Tell whether a pod has a selector of virtual nodes, as a webhook gives it."""
    return keys.PROVIDER_LABEL in (objects.spec(pod).get("nodeSelector") or {})


def _is_marked(pod: Object) -> bool:
    """Tell whether a pod has all else that a webhook gives it.

    A copy by `kubectl debug` has no labels, and its user wants it to run.
    """
    tolerations = objects.spec(pod).get("tolerations") or ()
    return keys.HAS_FINALIZER in objects.labels(pod) and _WEBHOOKS_TOLERATION in tolerations


def read(text: str) -> tuple[dict[str, str], Object]:
    """Return the annotations, and those of FIELDS that are set, of a saved manifest.

    ConfigError if it is no pod.
    """
    try:
        try:
            manifest = _decoder.decode(text)
        except msgspec.ValidationError:
            raise
        except documents.NO_JSON:  # Admiralty writes YAML
            manifest = _decoder.decode(msgspec.json.encode(documents.parse(text)))

        spec = documents.decode(msgspec.json.encode(manifest.spec))
    except documents.NO_JSON as error:
        raise ConfigError(f"annotation {keys.SOURCE_POD_MANIFEST} holds no pod") from error
    except ConfigError as error:
        raise ConfigError(f"annotation {keys.SOURCE_POD_MANIFEST} holds no pod: {error}") from error

    found: Object = {field: value for field, value in spec.items() if value is not None}
    if not pod_shape.is_pod({"spec": found}):
        raise ConfigError(f"annotation {keys.SOURCE_POD_MANIFEST} holds no pod")

    return (manifest.metadata or _SavedMetadata()).annotations or {}, found
