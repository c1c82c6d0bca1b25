"""Computes names on which both sides of a federation agree.

Joined parts can be ambiguous ("a-b" + "c" reads like "a" + "b-c"), so a hash of all parts is added
whenever two different sets of parts could give one name, or the result would be too long. The rule
and the hash are Admiralty's (docs/admiralty-contract.md, section 4), so that peers, and objects
left by Admiralty, agree.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final

from vnode.api import keys

NAME_LIMIT: Final = 253  # DNS-1123 subdomain, the limit of most object names
SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""RFC 1123, for `fullmatch`: what most objects can be called."""
LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""RFC 1123, for `fullmatch`: what namespaces can be called."""
LABEL_LIMIT: Final = 63  # DNS-1123 label, the limit of pod host names and finalizer names
LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")  # not empty
QUALIFIED_NAME: Final = re.compile(rf"({SUBDOMAIN.pattern}/)?{LABEL_VALUE.pattern}")
"""The key of a label, annotation or taint, as Kubernetes calls what has a prefix or none."""
_VIEWER: Final = "cluster-summary-viewer"  # ends the names of bindings to that role
_CACHED: Final = 4096  # names, which are computed again for each pod
_HASH_LENGTH: Final = 10
_CUT_SUFFIX_LENGTH: Final = 10  # of names that are cut, so that what was cut counts
_SUFFIX_LENGTH: Final = 5  # what the API server appends for generateName
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # likewise: no vowels, no look-alikes


def from_parts(limit: int, constant: frozenset[int], optional: frozenset[int], *parts: str) -> str:
    """Join the non-empty parts with dashes; add a hash where that alone would be ambiguous.

    `constant` are the positions that never vary, `optional` those that may be empty.
    """
    joined = "-".join(part for part in parts if part)
    varying = [part for i, part in enumerate(parts) if i not in constant]
    ambiguous = len(varying) > 1 and any("-" in part for part in varying)
    ambiguous |= len(optional) > 1 and not all(parts)
    if not ambiguous and len(joined) <= limit:
        return joined

    return _hashed(limit, *parts)


def _hashed(limit: int, *parts: str) -> str:
    """Join the non-empty parts with dashes, cut if need be, and add a hash of all."""
    joined = "-".join(part for part in parts if part)
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()[:_HASH_LENGTH]
    room = limit - _HASH_LENGTH - 1
    if len(joined) > room:
        joined = joined[:room].rstrip("-")

    return f"{joined}-{digest}"


@lru_cache(maxsize=_CACHED)
def virtual_node(target_namespace: str, target_name: str) -> str:
    """Return the name of a Target's Node; the namespace of a ClusterTarget is ""."""
    return from_parts(
        NAME_LIMIT, frozenset({0}), frozenset({1}), "admiralty", target_namespace, target_name
    )


def may_be_virtual_node(name: str) -> bool:
    """Tell whether a Node of that name could be ours, also after its Target was deleted."""
    return name.startswith("admiralty-")


def virtual_nodes_of(target_namespace: str) -> str:
    """Return how the names of the Nodes of a namespace's Targets begin."""
    return f"admiralty-{target_namespace}-"


def finalizers_of(target_namespace: str) -> str:
    """Return how the finalizers of a namespace's Targets begin; those of others may, too."""
    return keys.PREFIX + target_namespace[: LABEL_LIMIT - _HASH_LENGTH - 1].rstrip("-")


@lru_cache(maxsize=_CACHED)
def finalizer(target_namespace: str, target_name: str) -> str:
    """Return the finalizer of a Target on proxy pods; the namespace of a ClusterTarget is ""."""
    return keys.PREFIX + from_parts(
        LABEL_LIMIT, frozenset(), frozenset({0}), target_namespace, target_name
    )


def multikueue_cluster(target_namespace: str, target_name: str) -> str:
    """Name a Target's MultiKueueCluster; a ClusterTarget's, with namespace "", is called like it.

    A Target's own has a hash always, since a ClusterTarget may be called anything without one.
    """
    if not target_namespace:
        return target_name

    return _hashed(NAME_LIMIT, target_namespace, target_name, "")


def cluster_source_binding(source: str) -> str:
    """Name the ClusterRoleBinding of a ClusterSource to the role `admiralty-source`.

    One called like the second binding of another one has a hash, which Admiralty does not add.
    """
    parts = "admiralty-cluster-source", source
    if source.endswith(f"-{_VIEWER}"):
        return _hashed(NAME_LIMIT, *parts)

    return from_parts(NAME_LIMIT, frozenset({0}), frozenset(), *parts)


def cluster_source_viewer_binding(source: str) -> str:
    """Name a ClusterSource's ClusterRoleBinding to `admiralty-cluster-summary-viewer`."""
    return from_parts(
        NAME_LIMIT,
        frozenset({0, 2}),
        frozenset(),
        "admiralty-cluster-source",
        source,
        _VIEWER,
    )


def source_binding(source: str) -> str:
    """Name the RoleBinding of a Source, in its namespace, to the role `admiralty-source`."""
    return from_parts(NAME_LIMIT, frozenset({0}), frozenset(), "admiralty-source", source)


def source_viewer_binding(namespace: str, source: str) -> str:
    """Name a Source's ClusterRoleBinding to the role `admiralty-cluster-summary-viewer`."""
    return from_parts(
        NAME_LIMIT,
        frozenset({0, 3}),
        frozenset(),
        "admiralty-source",
        namespace,
        source,
        _VIEWER,
    )


def chaperon(pod_name: str, pod_uid: str) -> str:
    """Return the name of a proxy pod's PodChaperon and delegate pod.

    It looks like what generateName gives a peer, but follows from the UID: a create that is
    repeated because its answer was lost finds the first object instead of making a second. Where
    the pod's name is too long to be in it whole, pods of one owner may have the rest in common: the
    suffix is longer then.
    """
    if _fits_whole(pod_name):
        return _former_chaperon(pod_name, pod_uid)

    return f"{_cut(pod_name)}{_suffix(pod_uid, _CUT_SUFFIX_LENGTH)}"


def _cut(pod_name: str) -> str:
    """Return the beginning of a name that is too long to be whole in another one."""
    return pod_name[: LABEL_LIMIT - _CUT_SUFFIX_LENGTH - 1].rstrip("-.") + "-"


def chaperons(pod_name: str, pod_uid: str) -> tuple[str, ...]:
    """Return the name of a pod's chaperon, and the one that an earlier vnode gave it if that
    differs."""
    now = chaperon(pod_name, pod_uid)
    return (now,) if _fits_whole(pod_name) else (now, _former_chaperon(pod_name, pod_uid))


def _fits_whole(pod_name: str) -> bool:
    return len(pod_name) <= LABEL_LIMIT - _SUFFIX_LENGTH


def _former_chaperon(pod_name: str, pod_uid: str) -> str:
    """Return the name that a chaperon had when a name that was cut had the short suffix, too."""
    room = LABEL_LIMIT - _SUFFIX_LENGTH
    return f"{(pod_name + '-')[:room]}{_suffix(pod_uid, _SUFFIX_LENGTH)}"


@lru_cache(maxsize=_CACHED)
def _suffix(pod_uid: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(pod_uid.encode()).digest()[:8], "big")
    suffix = ""
    for _ in range(length):
        number, digit = divmod(number, len(_SUFFIX_ALPHABET))
        suffix += _SUFFIX_ALPHABET[digit]

    return suffix


def pod_of_chaperon(name: str) -> str:
    """Return the name of the pod that a chaperon was called after, as far as it was not cut."""
    return name[: -_SUFFIX_LENGTH - 1] or name


def may_be_chaperon(name: str, pod_name: str) -> bool:
    """Tell whether a peer that uses generateName could have called a pod's chaperon so."""
    prefix = f"{pod_name}-"[: LABEL_LIMIT - _SUFFIX_LENGTH]
    return name.startswith(prefix) and len(name) == len(prefix) + _SUFFIX_LENGTH


def may_be_own_chaperon(name: str, pod_name: str) -> bool:
    """Tell whether vnode could have called a pod's chaperon so, whatever the pod's UID."""
    is_cut = len(pod_name) > LABEL_LIMIT - _SUFFIX_LENGTH and name.startswith(_cut(pod_name))
    is_long = is_cut and len(name) == len(_cut(pod_name)) + _CUT_SUFFIX_LENGTH
    return is_long or may_be_chaperon(name, pod_name)


def token_secret(pod_name: str, pod_uid: str) -> str:
    """Return the name of the Secret with a proxy pod's tokens, in a target that has those."""
    return f"{chaperon(pod_name, pod_uid)}-token"


def former_token_secret(pod_name: str, pod_uid: str) -> str:
    """Return the name of that Secret for a delegate whose chaperon has its former name."""
    return f"{_former_chaperon(pod_name, pod_uid)}-token"
