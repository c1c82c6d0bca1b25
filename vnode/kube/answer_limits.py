"""Says how large an answer may be, by what was asked for; larger ones are not read to the end.

Whoever wrote a kubeconfig chose the server, which need not be honest. A bound has two measures:
bytes once decompressed, and JSON values, which can take two bytes there and a hundred in memory. A
page of a list that is larger is asked for again with fewer objects (`paging`).

An API server may well have an object that is larger: whoever may create a pod can give it 780,000
empty arguments. Such an object is as good as not there, in lists and in watches: it must not keep
anybody from reading the others.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vnode.api import kinds
from vnode.api.kinds import Kind


class AnswerLimit(NamedTuple):
    """Limits one answer: its bytes once decompressed, and the JSON values in it."""

    size: int
    values: int


_MIB: Final = 1024 * 1024

# API servers take 3 MiB of JSON in a request, and etcd 1.5 MiB. ConfigMaps and Secrets hold 1 MiB;
# Go writes six bytes for some characters (`<`) that etcd keeps in one. A pod has 1,000 values. An
# object is decoded at once: the worst 200,000 values take some 30 ms.
OBJECT: Final = AnswerLimit(10 * _MIB, 200_000)

# What is small by its nature: a ClusterSummary has a line for each resource, and for each label
# that the nodes have in common; Leases, reviews, quotas and lists of kinds have a hundred lines at
# most.
SMALL: Final = AnswerLimit(_MIB, 10_000)

# 500 pods take some 4 MiB and 100,000 values; 500 large ones more. Pages of even larger objects are
# read in parts, down to single objects, so a page must not be smaller than an OBJECT.
PAGE: Final = AnswerLimit(16 * _MIB, 500_000)

# All pages of a list of a server that need not be honest: some 350 MiB in memory. PodChaperons of
# 7,000 pods with three containers and thirty variables have 30 MiB and 3,000,000 values.
LIST: Final = AnswerLimit(128 * _MIB, 3_000_000)

# metrics-server knows no pages: 600 bytes and 20 values for a pod of two containers: 50,000.
METRICS: Final = AnswerLimit(32 * _MIB, 1_000_000)

# `metrics/resource` of a kubelet: four lines of 150 bytes for a container. 110 pods are usual, and
# kubelets are run with 500.
KUBELET_METRICS: Final = 4 * _MIB

# A metav1.Status, or an answer of an OIDC issuer: a message, some causes, some tokens.
STATUS: Final = AnswerLimit(_MIB, 10_000)

_SMALL: Final = frozenset(
    {
        *(kinds.CLUSTER_SUMMARIES, kinds.LEASES, kinds.TOKEN_REVIEWS),
        *(kinds.RESOURCE_QUOTAS, kinds.LIMIT_RANGES),
        *(kinds.SUBJECT_ACCESS_REVIEWS, kinds.SELF_SUBJECT_ACCESS_REVIEWS),
    }
)
_UNPAGED: Final = frozenset({kinds.POD_METRICS, kinds.NODE_METRICS})


def of_object(kind: Kind) -> AnswerLimit:
    """Return the bound of one object of that kind, and of an event about one."""
    return SMALL if kind in _SMALL else OBJECT


def of_page(kind: Kind) -> AnswerLimit:
    """Return the bound of one page of a list of that kind."""
    return METRICS if kind in _UNPAGED else PAGE


def is_paged(kind: Kind) -> bool:
    """Tell whether the server sends fewer objects of that kind if it is asked to."""
    return kind not in _UNPAGED
