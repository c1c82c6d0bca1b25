"""Advice on repairing an installation, in the wording of all messages that give it."""

from typing import Final

from vnode.api import keys

INSTALL: Final = "run vnode install, or install its Helm chart"
REPAIR: Final = "run vnode install again, or helm upgrade if it is a Helm release"
SELF_TARGETS: Final = (
    "run vnode install --self-targets, or helm upgrade with --set selfTargets.enabled=true"
)


NOT_GRANTED: Final = "label that namespace in the target"
"""How `grant` begins."""


def grant(namespace: str) -> str:
    """Return what to do where a ClusterSource does not hold in a namespace of a target."""
    label = "=".join(keys.CLUSTER_SOURCES)
    return (
        f"{NOT_GRANTED}, where a ClusterSource selects namespaces: kubectl label namespace "
        f"{namespace} {label}, or as its spec.namespaceSelector says"
    )
