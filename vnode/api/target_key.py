"""Identifies a Target, and names what belongs to it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from vnode.api import keys, names, objects
from vnode.api.objects import Object


@dataclass(frozen=True, slots=True)
class TargetKey:
    """Identifies a Target, or a ClusterTarget where `namespace` is ""."""

    namespace: str
    name: str

    @property
    def node_name(self) -> str:
        """The name of the Target's virtual node."""
        return names.virtual_node(self.namespace, self.name)

    @property
    def finalizer(self) -> str:
        """The Target's finalizer on proxy pods."""
        return names.finalizer(self.namespace, self.name)

    @property
    def fits_label(self) -> bool:
        """Whether the name can be a label's value, which identifies the virtual node."""
        return names.LABEL_VALUE.fullmatch(self.name) is not None

    def sent(self, chaperon: Object) -> bool:
        """Tell whether a chaperon came by this Target, or names none, as Admiralty's do not."""
        return objects.annotations(chaperon).get(keys.TARGET, str(self)) == str(self)

    def __str__(self) -> str:
        return objects.join_key(self.namespace, self.name)


def of_node(node: Object) -> TargetKey | None:
    """Return the target of a virtual Node; None if vnode or Admiralty did not make it."""
    labels = objects.labels(node)
    if labels.get(keys.PROVIDER_LABEL) != keys.PROVIDER:
        return None

    if name := labels.get(keys.CLUSTER_TARGET_NAME):
        target = TargetKey("", name)
    else:
        target = TargetKey(labels.get(keys.TARGET_NAMESPACE, ""), labels.get(keys.TARGET_NAME, ""))

    return target if target.name and target.node_name == objects.name(node) else None
