"""Names the cures where a node cannot make or start a container, by what it says of it. Pure.

The words are those of the kubelet and of container runtimes: containerd, CRI-O, runc, crun. Many of
them end alike, `no such file or directory` most of all: what it was about stands before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_COMPARE: Final = (
    "its command cannot be started, as the text says: compare command and args with the image"
)
_AGAIN: Final = "its node tries again by itself; if it lasts"
_CURES: Final = (
    (
        r"couldn't find key (?P<key>\S+) in (?P<kind>ConfigMap|Secret) [^/\s]+/(?P<name>\S+)",
        (
            "add key {key} to {kind} {name} in namespace {namespace} of this cluster, from where "
            "it follows to {target} (if following is off: add it there), or correct the pod"
        ),
    ),
    (
        r"non-numeric user",
        (
            "have the pod's securityContext.runAsUser give the image's user as a number: by a name "
            "its node cannot tell that it is not root"
        ),
    ),
    (
        r"runAsNonRoot",
        "have the image, or the pod's securityContext.runAsUser, name a user that is not 0",
    ),
    (r"OOM-killed|memory limit too low", "raise the memory limit of container {container}{limit}"),
    (
        r"seccomp profile|[Aa]pp[Aa]rmor\b.* profile",
        (
            "put the profile that the text names onto the nodes of {target}, or have the pod's "
            "securityContext name one that they have"
        ),
    ),
    (
        r"nvidia-container-cli|CDI device|error running (prestart )?hook",
        (
            "see that the driver of the pod's devices and its container toolkit work on {node} in "
            "{target}"
        ),
    ),
    (
        r"error mounting|subPath",
        (
            "a volume of the container cannot be mounted as the pod has it: compare mountPath and "
            "subPath with what the volume and the image hold (a file goes onto a file, a folder "
            "onto a folder)"
        ),
    ),
    (
        r"failed to sync \S+ cache|not registered|not yet been read",
        (
            f"{_AGAIN}, see whether it reaches the API server: in {{target}}, kubectl describe "
            "node {node}"
        ),
    ),
    (
        r"unable to find (user|group)|no matching entries in (passwd|group) file",
        "have the image, or the pod's securityContext, name a user and a group that the image has",
    ),
    (
        r"exec format error",
        (
            "build the image for the architecture of the nodes, or have the pod select nodes that "
            "it is built for, by kubernetes.io/arch"
        ),
    ),
    (r"executable file|exec\b.*: (no such file|permission denied)|no command", _COMPARE),
    (
        r"deadline exceeded|is reserved for",
        (
            f"{_AGAIN}, see whether its container runtime is overloaded, or hangs: in {{target}}, "
            "kubectl describe node {node}"
        ),
    ),
)
"""The first that matches; braces are filled with what is known."""
_BY_REASON: Final = {
    "PostStartHookError": (
        "its lifecycle.postStart fails, as the text says: correct that, or the image"
    ),
    "CreateContainerConfigError": (
        "create what it names in the target's namespace, or correct the pod"
    ),
}
_ANY: Final = (
    "its node in {target} cannot make the container, as the text says: correct the pod, or that "
    "node"
)


def of(reason: str, text: str, words: Mapping[str, str]) -> str:
    """Return the cure for a container that waits for that reason, of which `text` is said.

    `words` has the target, the node, the namespace, the container and its memory limit.
    """
    if reason == "PostStartHookError":
        return _BY_REASON[reason]

    return by_text(text, words) or _BY_REASON.get(reason, _ANY).format(**words)


def by_text(text: str, words: Mapping[str, str]) -> str:
    """Return the cure by what is said of a container that did not start; "" if none is known."""
    for said, cure in _CURES:
        if match := re.search(said, text, re.DOTALL):
            return cure.format(**words, **match.groupdict())

    return ""
