"""Names the cures of reasons that are matched as a whole, before parts of them mean anything. Pure.

Other patterns match words in them: the name of a user has "serviceaccount" in it, which is no
service account that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vnode.api import cures, keys, saved_manifest

REFUSED: Final = (
    "the text names what refuses it: change the pod, or that webhook, policy or limit in the "
    "cluster that it is of"
)
_FIRST: Final = (
    (
        r"not decided yet: the target answers.*|.*and pods like it are being asked for",
        (
            "wait a moment: {target} is being asked with other pods; if it lasts, vnode doctor "
            "--target FILE tells whether its candidate scheduler runs"
        ),
    ),
    (
        r"this cluster does not bind the pod: .*",
        "see which webhook or policy of this cluster is against the binding, and change that",
    ),
    (r'(admission webhook "[^"]+"|Policy \S+ with binding \S+) denied (the )?request.*', REFUSED),
)
"""What is not decided, and what webhooks and policies say, which are free to say anything."""

_CURES: Final = (
    (
        r"(?<!node\(s\) )had untolerated taint \{node\.kubernetes\.io/(not-ready|unreachable): \}",
        "the virtual node of {target} is not ready: vnode doctor says what is in the way",
    ),
    (
        rf"{saved_manifest.UNKNOWN}.*",
        (
            "vnode migrate signs what Admiralty has saved of pods that wait; delete any other, and "
            "create it again from the manifest that its user wrote"
        ),
    ),
    (
        rf"is forbidden: User \S+ cannot .*?{cures.NOT_GRANTED}.*",
        "have an administrator of the target run the command that the reason names, there",
    ),
    (
        r"the agent may not make tokens:.*? of the Target",
        (
            "give the agent the right to make tokens, by the command that the reason names, or "
            "have the Target not ask for them"
        ),
    ),
    (
        r"Secret \S+ is the token of service account \S+, which would end in a variable",
        "mount the Secret as a volume, whole, or create one of that name in the target",
    ),
    (
        r"Secret \S+ is the token of service account \S+",
        (
            "have the target ask for tokens of the source, run the pod as that service account, or "
            "create a Secret of that name in the target"
        ),
    ),
    (
        r"Secret \S+ holds no valid token of service account \S+",
        "see that the service account exists, and create the Secret again",
    ),
    (
        r"is forbidden: User \S+ cannot [^;]*",
        (
            "the user that the text names lacks that right: if there is a Source for it, its role "
            f"has been changed: in that cluster {cures.REPAIR}; else vnode connect makes one"
        ),
    ),
    (
        r"the target refuses: .*",
        (
            "vnode connect makes a Source in the target; if there is one, its role has been "
            f"changed: there, {cures.REPAIR}"
        ),
    ),
    (
        r"PersistentVolumeClaim with (the same name and )?ReadWriteOncePod access",
        (
            "another pod has the claim, whose access mode ReadWriteOncePod is for one at a time: "
            "delete that pod, or have this one claim another"
        ),
    ),
    (
        r'PriorityClass "[^"]+" preempts in the target.*',
        (
            "map the pod's PriorityClass to one of {target} with preemptionPolicy Never, by "
            f"annotation {keys.PRIORITY_CLASSES} of the Target"
        ),
    ),
    (
        r"the target's API server would drop (?P<fields>[^:]+):.*",
        (
            "leave {fields} out of the pod, or enable it in {target}, by a newer version of "
            "Kubernetes or a feature gate"
        ),
    ),
    (
        r"another pod is named (?P<pod>\S+)",
        ("delete pod {pod} in {target} if nobody needs it, or create this pod under another name"),
    ),
    (
        r".*new content in namespace (?P<space>\S+) because it is being terminated",
        (
            "nothing can be created in namespace {space} of {target} until it is gone (there, "
            "kubectl describe namespace {space} says what keeps it): then create it again"
        ),
    ),
    (
        r"^namespace (?P<space>\S+) is being terminated",
        (
            "create the pod in another namespace: in one that is being deleted nothing starts "
            "(kubectl describe namespace {space} says what keeps it)"
        ),
    ),
    (
        r"^namespace (?P<space>\S+) does not have the label (?P<label>[^\s,]+).*",
        "kubectl label namespace {space} {label} (as an administrator of this cluster)",
    ),
    (
        r"its cluster is unknown: .*",
        "start vnode's agent in {target}: vnode doctor --target FILE tells whether it runs",
    ),
    (
        r"the pod came through that cluster",
        "connect another target: the pod has come through {target}, and would go in a circle",
    ),
    (
        r"its room is kept for gang (?P<gang>[^,\s]+).*",
        (
            "wait until gang {gang} has started, ten minutes at most, or delete its pods if nobody "
            "needs them"
        ),
    ),
    (
        r".*insufficient quota to match these scopes: (?P<scopes>.*)",
        (
            "make a ResourceQuota of the scopes {scopes} in the namespace of {target}: it takes "
            "such pods only where one allows them"
        ),
    ),
    (
        r".*unable to validate against any security context constraint.*",
        (
            "change the pod's securityContext, or let its service account use another "
            "SecurityContextConstraints of {target}: there, oc adm policy add-scc-to-user NAME -z "
            "ACCOUNT"
        ),
    ),
    (
        r'persistentvolumeclaim "(?P<claim>[^"]+)" bound to non-existent persistentvolume "[^"]+"',
        (
            "the volume of PersistentVolumeClaim {claim} is gone in {target}: there, delete the "
            "claim and create it again"
        ),
    ),
    (
        r"(?P<driver>\S+) CSI driver is not installed on the node",
        "install CSI driver {driver} on the nodes of {target}, or see why it does not run there",
    ),
    (
        r"resourceclaim not available on the node",
        (
            "the devices of the pod's claim are on other nodes of {target} than the pod may use: "
            "change its constraints, or claim devices anew"
        ),
    ),
    (
        r"etcdserver: mvcc: database space exceeded",
        (
            "the etcd of {target} is full: its administrator has to compact and defragment it, and "
            "to disarm its alarm"
        ),
    ),
    (
        r"Request entity too large.*|etcdserver: request is too large",
        (
            "make the pod smaller: move what is large in its arguments, variables and annotations "
            "into a ConfigMap or an image"
        ),
    ),
    (
        r".*pod node label selector conflicts with its namespace.*",
        (
            "change the pod's nodeSelector, or annotation scheduler.alpha.kubernetes.io/"
            "node-selector of the namespace in {target}"
        ),
    ),
    (
        r".*pod tolerations .*conflict with its namespace whitelist.*",
        (
            "change the pod's tolerations, or annotation scheduler.alpha.kubernetes.io/"
            "tolerationsWhitelist of the namespace in {target}"
        ),
    ),
    (
        r".*rejected the pod \(OutOf.*It is made anew\.",
        (
            "make room in {target}: another scheduler there has given the same room away, or a "
            "node has changed; the pod is made anew by itself"
        ),
    ),
    (
        r"no nodes available to schedule pods|^0/0 nodes are available.*",
        "add nodes in {target}: it has none",
    ),
    (
        r'(storage ?class|storageclass\.storage\.k8s\.io) "(?P<name>[^"]+)"( not found)?',
        "create StorageClass {name} in {target}, or have the claim name one that is there",
    ),
    (
        r"device class (?P<name>\S+) does not exist",
        "create DeviceClass {name} in {target}, or have the pod's claim name one that is there",
    ),
)


def take(reasons: Mapping[str, str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return what is left of the reasons of targets, by name, and the others' targets and cures."""
    return _taken(reasons, _CURES)


def first(reasons: Mapping[str, str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return likewise what is to be told before anything else: its words may be those of others."""
    return _taken(reasons, _FIRST)


def _taken(
    reasons: Mapping[str, str], known: tuple[tuple[str, str], ...]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    left, found = dict(reasons), []
    for pattern, cure in known:
        matching = {name: m for name, text in left.items() if (m := re.search(pattern, text))}
        if matching:
            name, match = next(iter(matching.items()))
            left = {name: re.sub(pattern, "", text) for name, text in left.items()}
            found.append((name, cure.format(target=name or "TARGET", **match.groupdict())))

    return left, found
