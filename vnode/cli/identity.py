"""What a cluster is called, as its targets know it: one rule for all commands.

The name that its agent announces (on its ClusterSummary) counts; where none has run yet, the UID of
the kube-system namespace, which is also what an agent takes that is given no `--cluster-name`. So
`vnode connect` and the agent agree without being told, and no two clusters get one name by chance,
as the names in kubeconfigs do ("default", "kubernetes").
"""

from __future__ import annotations

import re
from typing import Final

from vnode.api import keys, kinds, names, objects
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.identity import Identity
from vnode.kube.client import Client

_ACCOUNT: Final = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")


def check_name(name: str) -> str:
    """A name that somebody gives a cluster, if targets can label objects with it; "" is none."""
    if name and not names.LABEL_VALUE.fullmatch(name):
        raise ConfigError(
            f"--cluster-name {name!r} cannot be the value of a label, which targets need it for: "
            f"use at most {names.LABEL_LIMIT} letters, digits, '-', '_' and '.', with a letter or "
            "a digit at both ends"
        )

    return name


async def cluster_uid(client: Client) -> str:
    """A cluster is known by its kube-system namespace; "" for who may not see that.

    An administrator of one namespace may not. Two sources of one name are then not found here, but
    by their agents, which say so in a condition.
    """
    try:
        return objects.uid(await client.get(kinds.NAMESPACES, "kube-system"))
    except Denied:
        return ""


async def announced_name(client: Client) -> str | None:
    """What the agent of this cluster calls it; None if none has said so, or it may not be read."""
    try:
        summary = await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    except (NotFound, Denied):
        return None

    return objects.annotations(summary).get(keys.CLUSTER_NAME) or None


async def identity(client: Client) -> Identity:
    """Who this cluster is to its targets; "" for what may not be read."""
    uid = await cluster_uid(client)
    return Identity(await announced_name(client) or uid, uid)


def account_of(user: str) -> tuple[str, str] | None:
    """(namespace, name) of the service account that a user name stands for, None if for none."""
    match = _ACCOUNT.fullmatch(user)
    return (match[1], match[2]) if match else None
