"""Finds the name of a cluster, as its targets know it: one rule for all commands.

It is the name that its agent announces (on its ClusterSummary); where none has run yet, the UID of
the kube-system namespace, which is also the default of the agent's `--cluster-name`. So `vnode
connect` and the agent agree without any option, and no two clusters get one name by chance, as with
the names in kubeconfigs ("default", "kubernetes").
"""

from __future__ import annotations

from vnode.api import keys, kinds, names, objects
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.identity import Identity
from vnode.kube.client import Client


def check_name(name: str) -> str:
    """Return the name of a cluster if it can be the value of a label, else raise ConfigError.

    "" stands for no name, and passes.
    """
    if name and not names.LABEL_VALUE.fullmatch(name):
        raise ConfigError(
            f"--cluster-name {name!r} cannot be the value of a label, which targets need it for: "
            f"use at most {names.LABEL_LIMIT} letters, digits, '-', '_' and '.', with a letter or "
            "a digit at both ends"
        )

    return name


async def cluster_uid(client: Client) -> str:
    """Return the UID of the kube-system namespace, which identifies a cluster; "" if denied.

    An administrator of one namespace may not read it. Two sources with the same name are then found
    by their agents only, which report it in a condition.
    """
    try:
        return objects.uid(await client.get(kinds.NAMESPACES, "kube-system"))
    except Denied:
        return ""


async def announced_name(client: Client) -> str | None:
    """Return the name that the cluster's agent announces; None if there is none, or if denied."""
    try:
        summary = await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    except (NotFound, Denied):
        return None

    return objects.annotations(summary).get(keys.CLUSTER_NAME) or None


async def identity(client: Client) -> Identity:
    """Return this cluster's name and UID, as targets know them; "" for what may not be read."""
    uid = await cluster_uid(client)
    return Identity(await announced_name(client) or uid, uid)
