"""Makes a `DesiredConnection` of the flags, checks both clusters, and connects them.

In the target, it creates a Source, its service account, and a token of it. In the source, it
creates a Secret with a kubeconfig that has the token, and a Target that names the Secret. The
target's side comes first, so that a Target never points at nothing. The target's agent, which need
not run yet, makes the bindings of the service account. In both clusters it gives the rights by
which the source's agent renews the token.
"""

from __future__ import annotations

import shlex
from contextlib import AsyncExitStack
from dataclasses import dataclass

from vnode.api import durations, keys, kinds, names, objects, selectors
from vnode.api.errors import ApiError, ConfigError, NotFound
from vnode.api.objects import Object
from vnode.cli import identity, installed, kubeconfigs, manifests, terminal
from vnode.cli.access import Access
from vnode.cli.connect import grants, lookup
from vnode.cli.connect.connector import Connector
from vnode.cli.connect.desired import DesiredConnection
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.cli.neighbours import checks, own_objects
from vnode.kube.client import Client


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two clusters on the command line."""

    role: str
    access: Access

    def client(self) -> Client:
        """Make a client for the cluster; ConfigError says which kubeconfig is wrong."""
        try:
            return self.access.client(self.role)
        except ConfigError as error:
            raise ConfigError(f"--{self.role}: {error}") from error

    def endpoint(self) -> tuple[ClusterEndpoint, str]:
        """Return the cluster's endpoint, and its name in the kubeconfig."""
        config = self.access.load()
        if config is None:
            raise ConfigError(f"--{self.role}: a kubeconfig file is needed")

        return kubeconfigs.cluster_of(config)

    @property
    def flags(self) -> str:
        """The options by which kubectl, or another command of ours, finds the cluster."""
        given = {"kubeconfig": self.access.kubeconfig, "context": self.access.context}
        return "".join(f" --{name} {shlex.quote(str(v))}" for name, v in given.items() if v)


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """The flags of the command, unchanged."""

    namespace: str | None
    cluster_wide: bool
    name: str | None
    cluster_name: str | None
    server: str | None
    token_lifetime: float  # seconds
    agent_namespace: str
    enable_namespace: bool
    confirm_cluster: bool
    renew: bool
    target_namespaces: str | None = None
    grant_all_namespaces: bool = False

    @property
    def chooses_namespaces(self) -> bool:
        """Whether the user says where a ClusterSource is to hold; else one that exists decides."""
        return self.grant_all_namespaces or self.target_namespaces is not None


async def connect(source: Side, target: Side, options: ConnectOptions) -> None:
    """Connect the clusters, and print what was done and what is left to do."""
    async with AsyncExitStack() as stack:
        source_client = await stack.enter_async_context(source.client())
        target_client = await stack.enter_async_context(target.client())
        connection = await prepare(source, source_client, target, target_client, options)
        await _warn_of_neighbours(source_client)
        await Connector(source_client, target_client, connection, terminal.say).run()
        await _finish(source_client, connection, options, source.flags)
        terminal.say(what_next(connection, source.flags))


async def prepare(
    source: Side,
    source_client: Client,
    target: Side,
    target_client: Client,
    options: ConnectOptions,
) -> DesiredConnection:
    """Check both clusters, and return the connection that the flags ask for; write nothing."""
    endpoint, target_name = target.endpoint()
    own_namespace = options.namespace or source_client.endpoint.namespace
    namespace = "" if options.cluster_wide else own_namespace
    home = namespace or options.agent_namespace
    name = options.name or kubeconfigs.object_name(target_name)
    _check_name(name)
    await _check(source_client, source, home)
    await _check(target_client, target, home)
    if namespace:
        await _check_scope(source_client, source, namespace)

    await _check_scope(target_client, target, namespace)
    cluster_name = identity.check_name(options.cluster_name or "")
    cluster_name = cluster_name or await lookup.cluster_name(source_client, home, name)
    lookup.check_source_name(cluster_name)
    return DesiredConnection(
        namespace=namespace,
        home=home,
        name=name,
        cluster_name=cluster_name,
        endpoint=endpoint.at(options.server),
        lifetime=int(options.token_lifetime),
        confirmed=options.confirm_cluster,
        renewal=durations.written(options.token_lifetime) if options.renew else "",
        agent_namespace=options.agent_namespace,
        selector=selector_of(options),
        keeps_selector=not options.chooses_namespaces,
    )


def selector_of(options: ConnectOptions) -> Object | None:
    """Return the selector of the namespaces in which a ClusterSource holds; None for all."""
    if options.grant_all_namespaces:
        return None

    if options.target_namespaces is None:
        return grants.LABELLED

    try:
        return selectors.to_label_selector(selectors.parse(options.target_namespaces))
    except ConfigError as error:
        raise ConfigError(f"--target-namespaces: {error}") from error


def _check_name(name: str) -> None:
    if not names.SUBDOMAIN.fullmatch(name) or len(name) > names.LABEL_LIMIT:
        raise ConfigError(
            f"--name {name!r} cannot be the name of a Target: use lower case letters, digits, "
            f"dashes and dots, {names.LABEL_LIMIT} at most"
        )


async def _check(client: Client, side: Side, namespace: str) -> None:
    """Raise ConfigError, with the cure, for what would otherwise fail half-way."""
    try:
        await client.request("GET", f"/apis/{kinds.TARGETS.api_version}")
    except NotFound as error:
        raise ConfigError(
            f"the {side.role} cluster does not know vnode's kinds: run vnode install{side.flags}"
        ) from error

    try:
        await client.get(kinds.NAMESPACES, namespace)
    except NotFound as error:
        raise ConfigError(
            f"the {side.role} cluster has no namespace {namespace!r}: run kubectl{side.flags} "
            f"create namespace {namespace}"
        ) from error


async def _check_scope(client: Client, side: Side, namespace: str) -> None:
    """Raise ConfigError for what an agent does not serve that is held to some namespaces."""
    try:
        webhook = await client.get(kinds.MUTATING_WEBHOOKS, manifests.WEBHOOK)
    except ApiError:
        return  # not everybody may read it

    named = installed.read(webhook).named
    if not named or namespace in named:
        return

    what = f"namespace {namespace}" if namespace else "all namespaces (--cluster-wide)"
    raise ConfigError(
        f"the {side.role} cluster's agent is held to {', '.join(named)}, and does not serve "
        f"{what}: connect one of those; or have an administrator name more of them, in vnode "
        "install --namespaces or the chart's value namespaces, and in the agent's configuration"
    )


async def _warn_of_neighbours(source: Client) -> None:
    """Print what of the source's own the new virtual node may disturb, before there is one."""
    selector = f"{keys.PROVIDER_LABEL}={keys.PROVIDER}"
    try:
        nodes = await source.list(kinds.NODES, label_selector=selector)
    except ApiError:
        return  # who may connect in one namespace need not see the cluster

    for line in checks.advice(await own_objects.read(source, nodes)):
        terminal.say(line)


async def enable_namespace(source: Client, namespace: str) -> None:
    """Label a namespace, so that its pods take part."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    await source.patch(kinds.NAMESPACES, namespace, {"metadata": {"labels": {label: value}}})


def what_next(connection: DesiredConnection, flags: str) -> str:
    """Return how to wait until pods can go, and where to look if they cannot. Pure."""
    what = f"clustertarget/{connection.name}"
    if connection.namespace:
        what = f"target/{connection.name} --namespace {connection.namespace}"

    return (
        "The source's agent connects within seconds. Wait for it: "
        f"kubectl{flags} wait --for=condition=Ready {what}\n"
        f"If that does not come: vnode doctor{flags}"
    )


def how_to_take_part(namespace: str, flags: str) -> str:
    """Return how the pods of a namespace of the source take part. Pure."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    return (
        f"Pods of namespace {namespace} take part once it is labelled: "
        f"kubectl label namespace {namespace} {label}={value}{flags}"
    )


async def _finish(
    source: Client, connection: DesiredConnection, options: ConnectOptions, flags: str
) -> None:
    """Label the namespace, or print how to."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    namespace = connection.namespace
    if not namespace:
        terminal.say(f"Pods take part in namespaces that are labelled {label}={value}.")
    elif objects.labels(await source.get(kinds.NAMESPACES, namespace)).get(label) == value:
        pass
    elif options.enable_namespace:
        await enable_namespace(source, namespace)
        terminal.say(f"namespace/{namespace} labelled {label}={value}")
    else:
        terminal.say(how_to_take_part(namespace, flags))
