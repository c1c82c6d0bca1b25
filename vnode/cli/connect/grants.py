"""Says what a ClusterSource gives to its source. Pure."""

from __future__ import annotations

from typing import Final

from vnode.api import keys
from vnode.api.objects import Object

LABELLED: Final[Object] = {"matchLabels": dict([keys.CLUSTER_SOURCES])}
"""The selector of a new ClusterSource whose user asks for no other."""

UNKNOWN_SELECTOR: Final = (
    "the target does not know spec.namespaceSelector of ClusterSources, without which the source "
    "would have all rights in all namespaces: run vnode install there, and its agent in this "
    "version; or say so by --grant-all-namespaces"
)


def told(selector: Object | None) -> str:
    """Return what a user is told of a ClusterSource with that selector, or without one."""
    if selector is None:
        return (
            "Warning: the source may do everything in all namespaces of the target, kube-system "
            "and the agent's own among them, which is as good as cluster-admin there. "
            "--target-namespaces LABELS narrows it."
        )

    if not selector:
        return (
            "In the target, pods run in all namespaces but those of Kubernetes and of the agents."
        )

    if selector == LABELLED:
        label = "=".join(keys.CLUSTER_SOURCES)
        return (
            f"In the target, pods run in namespaces that are labelled {label}: "
            f"kubectl label namespace NAMESPACE {label}"
        )

    return "In the target, pods run in namespaces that spec.namespaceSelector matches."
