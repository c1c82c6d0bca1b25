"""Says which labels of its own nodes a target may give to its virtual node. Pure.

A virtual node is a Node of the source, and the cluster behind it need not be honest. A label that
says what a machine is (a GPU, a region, an operating system) is believed, since pods that choose by
it ask for just that cluster. One by which somebody in the source decides what a node is *for*, or
which cluster of an inventory it is, comes from people, ClusterProfiles and vnode only.

Among the labels of Kubernetes itself that line is the one that the NodeRestriction plugin draws for
kubelets, which have a Node each and are not to be believed either.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from vnode.api import keys, names, node_labels
from vnode.api.virtual_constraints import HOSTNAME

_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
_OF_KUBELETS: Final = ("node.kubernetes.io", "kubelet.kubernetes.io")  # domains and their parts
_VALUES: Final = {
    "kubernetes.io/os": frozenset({"linux", "windows"}),
    "kubernetes.io/arch": frozenset(
        {"386", "amd64", "arm", "arm64", "loong64", "ppc64le", "riscv64", "s390x"}
    ),
}
"""Those of Kubernetes that say what a machine is, with what a kubelet can say in them."""
_ALL_VALUES: Final = {
    **_VALUES,
    "beta.kubernetes.io/os": _VALUES["kubernetes.io/os"],
    "beta.kubernetes.io/arch": _VALUES["kubernetes.io/arch"],
}
"""Those under their former names, too."""
_INSTANCE_TYPES: Final = "beta.kubernetes.io/instance-type"
_EXCLUSION: Final = "node.kubernetes.io/exclude-"  # from load balancers, from disruptions
_ISOLATION: Final = "node-restriction.kubernetes.io"
_DECIDING: Final = (
    "open-cluster-management.io",  # which cluster of a Placement's decision a node is
    "svccontroller.k3s.cattle.io",  # once a node has one, K3s balances on no other
    "k8s.ovn.org",  # nodes that egress addresses of the source are given to
)
"""Domains of others that read from a label of a Node what it is for; no machine has these."""


def may_have(key: str, value: str, domains: Collection[str] = ()) -> bool:
    """Tell whether a target may say `key=value` of its nodes.

    `domains` are keys and domains of labels, as its Target lists them; all without any.
    """
    if not names.QUALIFIED_NAME.fullmatch(key) or not keys.is_foreign(key):
        return False

    if value and not names.LABEL_VALUE.fullmatch(value):
        return False  # the API server would refuse the Node as a whole

    if not _VALUES.get(key) and not node_labels.is_listed(key, domains):
        return False

    domain = key.rpartition("/")[0]
    if isolates(key) or _within(domain, _DECIDING):
        return False

    return not _within(domain, _KUBERNETES) or _may_a_kubelet(key, value, domain)


def isolates(key: str) -> bool:
    """Tell whether the NodeRestriction plugin guards a label: node-restriction.kubernetes.io."""
    return _within(key.partition("/")[0], (_ISOLATION,))


def _may_a_kubelet(key: str, value: str, domain: str) -> bool:
    """Tell whether a kubelet may say that of its own node, by a label of Kubernetes.

    Zones and regions of a CSI driver of Kubernetes' own count as those of Kubernetes do.
    """
    if (values := _ALL_VALUES.get(key)) is not None:
        return value in values

    if key == HOSTNAME or key.startswith(_EXCLUSION):
        return False

    return (
        key == _INSTANCE_TYPES
        or domain == node_labels.OLD_PLACES
        or domain.startswith(node_labels.TOPOLOGY)
        or _within(domain, _OF_KUBELETS)
    )


def _within(domain: str, parents: Collection[str]) -> bool:
    return any(domain == parent or domain.endswith("." + parent) for parent in parents)
