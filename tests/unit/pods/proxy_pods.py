"""Builds proxy pods, as the webhook has admitted them, and what goes to a target of them."""

from __future__ import annotations

import json

from tests.permitted import MANIFESTS
from vnode.api import keys, objects, saved_manifest
from vnode.api.identity import Identity
from vnode.pods import chaperons

PARENT = Identity("c1", "uid-of-c1")
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def proxy(source=None, *, annotations=None, **spec):
    source = source or {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-0",
            "namespace": "shop",
            "labels": {"app": "web", "example.com/tier": "front"},
            "annotations": {"team": "a", keys.ELECT: ""},
        },
        "spec": {
            "containers": [{"name": "main", "image": "nginx"}],
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "nodeSelector": {"disk": "ssd"},
            "priority": 5,
        },
    }
    return {
        "metadata": {
            "name": "web-0",
            "namespace": "shop",
            "uid": "u1",
            "labels": {**objects.labels(source), keys.HAS_FINALIZER: "true"},
            "annotations": {
                **objects.annotations(source),
                keys.SOURCE_POD_MANIFEST: json.dumps(source),
                keys.ELECT: "",
                **(annotations or {}),
            },
        },
        "spec": {**admitted(objects.spec(source)), **spec},
    }


def admitted(spec):
    """Return the spec of an admitted proxy, whose constraints choose a virtual node."""
    kept = {k: v for k, v in spec.items() if k not in saved_manifest.FIELDS}
    selector = {keys.PROVIDER_LABEL: keys.PROVIDER}
    return {**kept, "schedulerName": keys.PROXY_SCHEDULER, "nodeSelector": selector}


def build(pod, **flags):
    return chaperons.build(
        pod,
        PARENT,
        "default/c2",
        **{"manifests": MANIFESTS, "allowed": False, "finalizer": True, **flags},
    )


def source_with(**spec):
    return {
        "metadata": {"name": "web-0", "labels": {"app": "web"}, "annotations": {}},
        "spec": {"containers": [{"name": "main"}], **spec},
    }
