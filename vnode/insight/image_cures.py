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
        r"toomanyrequests|too many requests|rate limit",
        "{image}'s registry takes no more requests for now: pull with an account, or from a mirror",
    ),
    (
        r"signature",
        ("sign {image}, or have the signature policy of the nodes of {target} take it as it is"),
    ),
    (
        r"short[- ]name",
        "name the registry of {image}, too: the nodes of {target} do not guess it",
    ),
    (
        r"no longer supported|unsupported (manifest )?media type|schema ?1",
        "build {image} anew, in the format of today: the nodes of {target} do not take this one",
    ),
    (
        r"failed to extract layer|wrong diff id|invalid tar header|unexpected EOF",
        "{image} came damaged: push it again, and see to the disks of the nodes of {target}",
    ),
    (
        r"\b50[0234]\b|bad gateway|service unavailable|internal server error",
        "{image}'s registry fails for now: see to it, or pull from a mirror; nodes try again",
    ),
    (
        r"proxyconnect",
        "see that the nodes of {target} reach the HTTP proxy that they are to use for registries",
    ),
)
"""What no pull secret would mend, before others."""
_OTHERS: Final = (
    (
        r"token has expired",
        (
            "renew the pull secret of {image}, whose token has expired: in namespace {namespace} "
            "of this cluster, from where it follows"
        ),
    ),
    (
        r"repository does not exist or may require",
        (
            "correct the name of the image, {image}; if it is right, have the pod name a pull "
            "secret for it: kubectl create secret docker-registry NAME -n {namespace} (in this "
            "cluster, from where it follows), and imagePullSecrets"
        ),
    ),
    (
        r"unauthorized|forbidden|denied|authentication|authorization failed",
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
        (
            r"no such host|server misbehaving|timeout|timed out|deadline exceeded"
            r"|connection re(fused|set)|unreachable|no route|\bEOF\b"
        ),
        "see that the nodes of {target} reach the registry of {image}",
    ),
    (
        r"HTTP response to HTTPS client",
        "have {image}'s registry serve HTTPS, or the nodes of {target} allow it as insecure",
    ),
    (
        r"not found|manifest unknown",
        "correct the image of the pod: its registry has no {image}",
    ),
)
_NAMES: Final = re.compile(r'"[^"]*"|\S+/\S+[:@]\S+')
"""Images and addresses: in quotes, or with a slash and a tag or digest."""
_ANY: Final = (
    "see that the image {image} exists, that the nodes of {target} reach its registry, and that "
    "the pull secret is in namespace {namespace} there"
)


def of(text: str, *, image: str, target: str, namespace: str) -> str:
    """Return the cure; where the text only says that it is tried again, all that may be wrong."""
    cure = _first((*_WITHOUT_SECRET, *_OTHERS), text) or _ANY
    return cure.format(image=image, target=target, namespace=namespace)


def may_lack_secret(text: str) -> bool:
    """Tell whether a pull secret that is missing could be why an image is not pulled."""
    return not _first(_WITHOUT_SECRET, text)


def _first(known: tuple[tuple[str, str], ...], text: str) -> str:
    """Return the first cure whose words are in the text; names of images say nothing."""
    said = _NAMES.sub("", text)
    return next((cure for words, cure in known if re.search(words, said, re.IGNORECASE)), "")
