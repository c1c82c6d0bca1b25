"""Tells which cluster a client talks to, by what Targets recognize their clusters by."""

from __future__ import annotations

from vnode.api import keys, kinds
from vnode.api.errors import Denied, NotFound
from vnode.cli import identity
from vnode.kube.client import Client
from vnode.targets import cluster_identity


async def uid_of(client: Client) -> str:
    """Return the UID of a cluster, which its ClusterSummary or kube-system tells; "" if neither."""
    try:
        summary = await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    except (NotFound, Denied):
        summary = None

    return cluster_identity.uid_from(summary) or await identity.cluster_uid(client)
