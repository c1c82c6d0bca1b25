"""Finds what `vnode connect` goes on from: objects that are there, the name of the source."""

from __future__ import annotations

from vnode.api import account_users, kinds, names, objects
from vnode.api.errors import ConfigError, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import identity
from vnode.cli.connect import desired
from vnode.cli.connect.desired import DesiredConnection
from vnode.kube.client import Client
from vnode.targets import expiry, secrets
from vnode.targets.model import SecretReference


async def cluster_name(source: Client, home: str, target: str) -> str:
    """Choose the name of the source where the user does not.

    A connection that exists keeps its name; a new one gets the name that the source's agent
    announces. Raises ConfigError if that may not be read.
    """
    place = SecretReference(home, desired.secret_name(target), desired.KEY, "")
    present = await find(source, kinds.SECRETS, place.name, home)
    try:
        end = expiry.of_kubeconfig(secrets.kubeconfig(present, place))
    except ConfigError:  # there is none, or none of ours
        end = None

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


def check_source_name(name: str) -> None:
    """Raise ConfigError for the name of a cluster that no Source can have."""
    if not names.SUBDOMAIN.fullmatch(name):
        raise ConfigError(
            f"the source's name {name!r} cannot be that of a Source and a service account, which "
            "take lower case letters, digits, dashes and dots: pass --cluster-name with a name "
            "like that; the agent keeps its own"
        )


async def target(source: Client, connection: DesiredConnection, *, is_self: bool) -> Object | None:
    """Return the Target that exists; ConfigError if it cannot become the desired one."""
    kind = connection.target_kind
    present = await find(source, kind, connection.name, connection.namespace)
    spec = objects.spec(present or {})
    if profile := spec.get("clusterProfile"):
        raise ConfigError(
            f"the source has a {kind.kind} {connection.name!r} that is reached by the "
            f"ClusterProfile {profile.get('name')!r}, and needs no Secret: choose another "
            "--name, or run vnode disconnect first"
        )

    if spec.get("kubeconfigSecret") if is_self else spec.get("self"):
        raise ConfigError(
            f"the source has a {kind.kind} {connection.name!r} that is "
            f"{'another cluster' if is_self else 'the source itself'}: delete it, or choose "
            "another --name"
        )

    return present


async def check_account(target: Client, home: str, name: str) -> None:
    """Raise ConfigError if a new Source would be given a service account that others use."""
    account = await find(target, kinds.SERVICE_ACCOUNTS, name, home)
    if account is not None and not desired.is_of_source(account):
        raise ConfigError(
            f"the target has a serviceaccount/{name} in namespace {home} that was not made for a "
            "Source, and the source would get a token of it, with its rights: pass another "
            "--cluster-name, or delete that account if nothing uses it"
        )


async def find(client: Client, kind: Kind, name: str, namespace: str) -> Object | None:
    """Return an object, None if it is not there."""
    try:
        return await client.get(kind, name, namespace or None)
    except NotFound:
        return None
