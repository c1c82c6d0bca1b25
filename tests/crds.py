"""Builds definitions of others' kinds, for API servers of tests that only have to store them."""

from __future__ import annotations

from typing import Final

from vnode.api.kinds import Kind
from vnode.api.objects import Object

ANYTHING: Final[Object] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema that takes any fields."""


def build(kind: Kind, schema: Object = ANYTHING) -> Object:
    """Build the CRD of a kind in one version, with a status of its own."""
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    approved = {"api-approved.kubernetes.io": "unapproved, for tests"}  # of groups of k8s.io
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource, "annotations": approved},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
            },
            "versions": [version],
        },
    }
