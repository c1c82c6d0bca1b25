"""Names the cure where a node cannot pull an image, by what its registry or kubelet says. Pure."""

from __future__ import annotations

import re
from typing import Final

_WITHOUT_SECRET: Final = (
    (
        r"InvalidImageName|couldn't parse",
        "correct the name of the image, {image}: it is not one that a registry can have",
    ),
    (
        r"ErrImageNeverPull|pull policy of Never",
        (
            "have the pod pull {image} (imagePullPolicy IfNotPresent), or load it onto the nodes "
            "of {target}"
        ),
    ),
    (
        r"no space left on device",
        (
            "make room on the disks of the nodes of {target}, or give them larger ones: {image} "
            "does not fit"
        ),
    ),
    (
        r"no match for platform|no matching manifest",
        (
            "build {image} for the architecture of the nodes of {target}, or have the pod select "
            "nodes that it is built for, by kubernetes.io/arch"
        ),
    ),
    (
        r"toomanyrequests|rate limit|429",
        "{image}'s registry takes no more requests for now: pull with an account, or from a mirror",
    ),
)
"""What no pull secret would mend, before others."""
_OTHERS: Final = (
    (
        r"unauthorized|denied|authentication|401|403",
        (
            "have the pod name a pull secret for {image}: kubectl create secret docker-registry "
            "NAME -n {namespace} (in this cluster, from where it follows), and imagePullSecrets"
        ),
    ),
    (
        r"x509|certificate",
        "have the nodes of {target} trust the certificate of {image}'s registry",
    ),
    (
        r"no such host|timeout|timed out|connection refused|unreachable|no route",
        "see that the nodes of {target} reach the registry of {image}",
    ),
    (
        r"not found|manifest unknown",
        "correct the image of the pod: its registry has no {image}",
    ),
)
_ANY: Final = (
    "see that the image {image} exists, that the nodes of {target} reach its registry, and that "
    "the pull secret is in namespace {namespace} there"
)


def of(text: str, *, image: str, target: str, namespace: str) -> str:
    """Return the cure; where the text only says that it is tried again, all that may be wrong."""
    found = (
        cure for said, cure in (*_WITHOUT_SECRET, *_OTHERS) if re.search(said, text, re.IGNORECASE)
    )
    return next(found, _ANY).format(image=image, target=target, namespace=namespace)


def may_lack_secret(text: str) -> bool:
    """Tell whether a pull secret that is missing could be why an image is not pulled."""
    return not any(re.search(said, text, re.IGNORECASE) for said, _cure in _WITHOUT_SECRET)
