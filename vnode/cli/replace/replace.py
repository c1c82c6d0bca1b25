"""Puts together what a replacement needs, and begins it once nothing speaks against it.

The new cluster is checked as `vnode connect` does before the first pod is evicted.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

from vnode.api import account_users, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError, VnodeError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli import identity, naming, recognition, terminal
from vnode.cli.access import Access
from vnode.cli.connect import desired
from vnode.cli.connect.connect import ConnectOptions, Side, prepare
from vnode.cli.connect.connector import Connector
from vnode.cli.connect.desired import DesiredConnection
from vnode.cli.drain import command as drains
from vnode.cli.drain.filters import DrainRules
from vnode.cli.remove import disconnect, source_side
from vnode.cli.remove.report import RemovalReport
from vnode.cli.replace import former, steps
from vnode.cli.replace.replacing import Do, Replacement
from vnode.cli.replace.steps import ReplacementState
from vnode.insight.target_clients import connected
from vnode.kube.client import Client
from vnode.targets import cluster_identity


@dataclass(frozen=True, slots=True)
class ReplaceOptions:
    """The flags that are not about a connection."""

    name: str
    namespace: str | None
    rules: DrainRules
    grace: int | None
    limit: float | None
    per_minute: int
    agent_namespace: str
    lost: bool
    keep_cordoned: bool
    dry_run: bool


async def replace_target(
    source: Side,
    new: Side,
    former_access: Access | None,
    options: ReplaceOptions,
    connecting: ConnectOptions,
    report: RemovalReport,
) -> None:
    """Put the cluster of `new` in the place of the one that the Target of that name is."""
    async with AsyncExitStack() as stack:
        source_client = await stack.enter_async_context(source.client())
        new_client = await stack.enter_async_context(new.client())
        key, target = await naming.target(source_client, options.name, options.namespace)
        _check(target, key)
        await _check_agent(source_client, options.agent_namespace)
        as_target = replace(
            connecting,
            name=key.name,
            namespace=key.namespace or None,
            cluster_wide=not key.namespace,
        )
        connection = await prepare(source, source_client, new, new_client, as_target)
        me = await _own_identity(source_client)
        wanted = await recognition.uid_of(new_client)
        leads_to = await former.ask(source_client, target, connected)
        recorded = cluster_identity.recorded(target)
        before = recorded or leads_to.uid
        replacement = Replacement(
            source_client,
            new_client,
            target,
            key,
            me,
            wanted,
            former=connected,
            drain=partial(_drain, source_client, options),
            switch=Connector(source_client, new_client, connection, terminal.say).run,
            end_source=end_source(
                former_access, connection, (before, wanted), options.dry_run, report
            ),
            report=report,
            uncordons=not options.keep_cordoned,
            lost=options.lost,
            dry_run=options.dry_run,
        )
        bound = len(await replacement.pods())
        now = ReplacementState(
            replacement.name, recorded, wanted, me.uid, leads_to, bound, lost=options.lost
        )
        await replacement.run(steps.decide(now))
        _report_secret(target, key, report)
        if steps.leaves_former(now):
            _report_former(replacement.remote.command, report)


def _check(target: Object, key: TargetKey) -> None:
    """Raise ConfigError for a Target that does not lead to a cluster by a Secret."""
    spec = objects.spec(target)
    if spec.get("self"):
        raise ConfigError(f"{key} is the source itself, which no other cluster can replace")

    if not spec.get("kubeconfigSecret"):
        raise ConfigError(
            f"{key} does not name a Secret with a kubeconfig: change what it names instead, and "
            "confirm the cluster as its condition Ready says"
        )


async def _check_agent(client: Client, namespace: str) -> None:
    if not await source_side.agent_leads(client, namespace, SystemClock()):
        raise ConfigError(
            f"no agent is running in the source (namespace {namespace}), and only it ends pods and "
            "recognizes the new cluster: start it, or pass --agent-namespace"
        )


async def _own_identity(source: Client) -> Identity:
    me = await identity.identity(source)
    if not me.uid:
        raise ConfigError(
            "these credentials may not read the namespace kube-system of the source, whose UID "
            "identifies its pods in targets: use an administrator's (--kubeconfig)"
        )

    return me


def _report_former(command: str, report: RemovalReport) -> None:
    report.left.append(
        "what this source has in the former cluster, with delegate pods that may run if it "
        f"ever comes back. To delete it, run in that cluster: {command}"
    )


def _report_secret(target: Object, key: TargetKey, report: RemovalReport) -> None:
    name = objects.spec(target)["kubeconfigSecret"].get("name")
    if name != desired.secret_name(key.name):
        report.left.append(f"secret/{name} kept: vnode connect did not create it")


async def _drain(client: Client, options: ReplaceOptions) -> None:
    await drains.drain(
        client,
        options.name,
        options.namespace,
        options.rules,
        grace=options.grace,
        limit=options.limit,
        per_minute=options.per_minute,
        dry_run=options.dry_run,
    )


def end_source(
    former_access: Access | None,
    connection: DesiredConnection,
    clusters: tuple[str, str],
    dry_run: bool,
    report: RemovalReport,
) -> Do:
    """Return what revokes the source's rights in the former cluster, or reports that they stay.

    `clusters` are the UIDs of the former one, "" if unknown, and of the new one.
    """
    before, wanted = clusters
    user = account_users.user_of(connection.home, connection.cluster_name)
    where = f" in namespace {connection.namespace}" if connection.namespace else ""
    source = f"the {connection.source_kind.kind} of {user}{where}"

    async def end() -> None:
        if former_access is None:
            report.left.append(
                f"in the former cluster, {source}: delete it there (with --former FILE, this "
                "command does it)"
            )
            return

        try:
            async with former_access.client("former") as client:
                found = await recognition.uid_of(client)
                if found == wanted:
                    raise ConfigError("--former leads to the new cluster: nothing is deleted there")

                if found and before not in ("", wanted, found):
                    raise ConfigError(
                        f"--former leads to a third cluster ({found} is the UID of its namespace "
                        f"kube-system, {before} that of the former one): nothing is deleted there"
                    )

                if dry_run:
                    report.say(f"former: {source} deleted (dry run)")
                else:
                    await disconnect.remove_sources(
                        client, connection.namespace, user, report, where="former"
                    )
        except VnodeError as error:
            report.left.append(f"in the former cluster, {source}: {error}")

    return end
