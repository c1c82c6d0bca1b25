"""Finds what `vnode connect` goes on from: objects that are there, the name of the source."""

from __future__ import annotations

import base64

from vnode.api import account_users, kinds
from vnode.api.errors import ConfigError, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import identity
from vnode.cli.connect import desired
from vnode.kube.client import Client
from vnode.targets import expiry


async def cluster_name(source: Client, home: str, target: str) -> str:
    """Choose the name of the source where the user does not.

    A connection that exists keeps its name; a new one gets the name that the source's agent
    announces. Raises ConfigError if that may not be read.
    """
    present = await find(source, kinds.SECRETS, desired.secret_name(target), home)
    data = (present or {}).get("data") or {}
    try:
        kubeconfig = base64.b64decode(data.get(desired.KEY) or "", validate=True)
    except ValueError:
        kubeconfig = b""

    end = expiry.of_kubeconfig(kubeconfig)
    account = account_users.account_of(end.subject) if end else None
    if account and account[0] == home:
        return account[1]

    name = (await identity.identity(source)).name
    if not name:
        raise ConfigError(
            "these credentials may not read the name of the source cluster: pass --cluster-name, "
            "or use credentials that may get namespace kube-system"
        )

    return name


async def find(client: Client, kind: Kind, name: str, namespace: str) -> Object | None:
    """Return an object, None if it is not there."""
    try:
        return await client.get(kind, name, namespace or None)
    except NotFound:
        return None
