"""Has an API server grant few seats to service accounts, by API Priority and Fairness.

What does not fit is refused with 429 and Retry-After at once (`limitResponse: Reject`). Agents are
service accounts; administrators, schedulers and kubelets have seats of their own.
"""

from __future__ import annotations

import re
from typing import Any, Final

from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

LEVEL: Final = "few-seats"
ARGUMENTS: Final = tuple(
    f"--apiserver-arg=--max-{which}requests-inflight=100" for which in ("", "mutating-")
)
"""Of `hack/fleet up`: one share of some 250 is less than a seat then, and two are two."""

_GROUP: Final = ("flowcontrol.apiserver.k8s.io", "v1")
_LEVELS: Final = Kind(
    *_GROUP, "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False
)
_SCHEMAS: Final = Kind(*_GROUP, "flowschemas", "FlowSchema", namespaced=False)
_COUNTED: Final = re.compile(
    r"apiserver_flowcontrol_(dispatched|rejected)_requests_total"
    r'\{[^}]*priority_level="few-seats"[^}]*\} ([0-9.e+]+)'
)


async def grant_few_seats(client: Client, shares: int) -> None:
    """Let service accounts have so many shares of a cluster's concurrency, and borrow none."""
    limited: Object = {
        "nominalConcurrencyShares": shares,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    await client.create(
        _LEVELS, {"metadata": {"name": LEVEL}, "spec": {"type": "Limited", "limited": limited}}
    )
    everything: dict[str, Any] = {
        "subjects": [{"kind": "Group", "group": {"name": "system:serviceaccounts"}}],
        "resourceRules": [
            {
                "verbs": ["*"],
                "apiGroups": ["*"],
                "resources": ["*"],
                "namespaces": ["*"],
                "clusterScope": True,
            }
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    spec = {
        "priorityLevelConfiguration": {"name": LEVEL},
        "matchingPrecedence": 5000,  # behind those of the cluster's own controllers
        "rules": [everything],
    }
    await client.create(_SCHEMAS, {"metadata": {"name": LEVEL}, "spec": spec})


async def counts(client: Client) -> dict[str, float]:
    """Return how many requests of service accounts were dispatched, and how many rejected."""
    found = {"dispatched": 0.0, "rejected": 0.0}
    for what, number in _COUNTED.findall(await client.text("/metrics", limit=2**26)):
        found[what] += float(number)

    return found
