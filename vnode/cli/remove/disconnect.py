"""`vnode disconnect`: deletes what `vnode connect` created, in each cluster that can be reached.

In the source, it deletes the Target, and its Secret once no pod of the Target runs. In the target,
it deletes the Source. The source comes first, so that its credentials keep working until its
delegate pods have terminated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from vnode.api import account_users, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.cli import access, cluster_options, completing, durations, manifests, naming
from vnode.cli.access import Access
from vnode.cli.connect import desired
from vnode.cli.main import run
from vnode.cli.remove import consequences, sharing_sources, source_side, target_side
from vnode.cli.remove.report import RemovalReport, remove
from vnode.cli.remove.source_side import Ends
from vnode.kube.client import Client
from vnode.targets import model, source_rbac
from vnode.targets.model import SecretReference


async def disconnect(
    client: Client,
    name: str,
    namespace: str | None,
    target_access: Access | None,
    *,
    agent_namespace: str,
    ends: Ends,
    report: RemovalReport,
) -> None:
    """Delete the Target of that name and what belongs to it; report what could not be deleted."""
    key, target = await naming.target(client, name, namespace)
    reference = sharing_sources.secret_of(target)
    user, secret = await sharing_sources.identity_in_target(client, reference)
    led = await source_side.agent_leads(client, agent_namespace, SystemClock())
    if not led:
        report.say("No agent is running in this cluster, so this command does the agent's work.")

    sharing = await sharing_sources.another(client, key, target, user)
    await source_side.end_targets(client, [target], led=bool(led), ends=ends, report=report)
    if secret is not None and reference is not None:
        await _remove_secret(client, secret, reference, key, report)

    if objects.spec(target).get("self"):
        return

    source = _source_of(key, user)
    if sharing:
        report.left.append(f"in the target cluster, {source}: {sharing} uses it")
        return

    if target_access is None:
        report.left.append(
            f"in the target cluster, {source}: delete it there (with --target FILE, vnode "
            "disconnect does it)"
        )
        return

    try:
        async with target_access.client("target") as remote:
            await remove_sources(remote, key.namespace, user, report)
    except VnodeError as error:
        report.left.append(f"in the target cluster, {source}: {error}")


def _source_of(key: TargetKey, user: str) -> str:
    kind = "Source" if key.namespace else "ClusterSource"
    where = f" in namespace {key.namespace}" if key.namespace else ""
    return f"the {kind} of {user or 'this cluster'}{where}"


async def _consequences(
    client: Client, key: TargetKey, target: Object, *, reaches_target: bool
) -> list[str]:
    """Return what a disconnection would do."""
    lines = await consequences.of_targets(client, [target])
    reference = sharing_sources.secret_of(target)
    user, secret = await sharing_sources.identity_in_target(client, reference)
    if secret is not None and reference is not None:
        why = await _why_kept(client, reference, key)
        what = f"Secret {reference.object_key}"
        lines.append(f"keeps {what}: {why}" if why else f"deletes {what}")

    if objects.spec(target).get("self"):
        return lines

    source = f"{_source_of(key, user)}, in the target cluster"
    if sharing := await sharing_sources.another(client, key, target, user):
        lines.append(f"keeps {source}: {sharing} uses it")
        return lines

    lines.append(f"deletes {source}" if reaches_target else f"keeps {source}: it needs --target")
    return lines


async def _remove_secret(
    client: Client,
    secret: Object,
    reference: SecretReference,
    key: TargetKey,
    report: RemovalReport,
) -> None:
    """Delete the Secret if `vnode connect` created it and no other Target uses it."""
    if why := await _why_kept(client, reference, key):
        report.left.append(f"secret/{reference.object_key} kept: {why}")
    else:
        await remove(client, kinds.SECRETS, secret, report)


async def _why_kept(client: Client, reference: SecretReference, key: TargetKey) -> str:
    """Return why the Secret of a Target stays when that goes; "" if it goes, too."""
    users: Objects = []
    for kind in (kinds.TARGETS, kinds.CLUSTER_TARGETS):
        users += await client.list(kind)

    if any(
        sharing_sources.secret_of(other) == reference
        for other in users
        if model.key_of(other) != key
    ):
        return "another Target uses it"

    is_ours = reference.name == desired.secret_name(key.name)
    return "" if is_ours else "vnode connect did not create it"


async def remove_sources(
    remote: Client, namespace: str, user: str, report: RemovalReport, *, where: str = "target"
) -> None:
    """Delete the Sources that let that user in, in the cluster of `remote`, called `where`."""
    kind = kinds.scoped(kinds.SOURCES, namespace)
    found = [
        source for source in await remote.list(kind, namespace or None) if lets_in(source, user)
    ]
    if not found:
        report.say(f"{where}: no {kind.kind} of {user or 'this cluster'} found")

    prefixed = RemovalReport(say=lambda text: report.say(f"{where}: {text}"), left=report.left)
    await target_side.end_sources(remote, found, prefixed)


def lets_in(source: Object, user: str) -> bool:
    """Tell whether the Source is for that user or service account."""
    try:
        grant = source_rbac.parse(source)
    except VnodeError:
        return False

    account = account_users.account_of(user)
    return bool(user) and (grant.user == user or (account is not None and grant.account == account))


def command() -> click.Command:
    """Return the click command."""

    @click.command("disconnect")
    @click.argument("name", metavar="TARGET", shell_complete=completing.targets)
    @cluster_options.source_options
    @cluster_options.namespaced
    @click.option("--target", type=access.FILE, help="Kubeconfig of the target, if you have one.")
    @click.option(
        "--target-context",
        help="Context; the current one if not given.",
        shell_complete=completing.contexts,
    )
    @click.option("--agent-namespace", default=manifests.NAMESPACE, show_default=True)
    @durations.STEP
    @consequences.options
    def disconnect_command(
        name: str,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        target: Path | None,
        target_context: str | None,
        agent_namespace: str,
        timeout: float,
        dry_run: bool,
        yes: bool,
    ) -> None:
        """Delete a Target with its Secret and, with --target, the Source in the target cluster.

        Its delegate pods terminate, and the owners of their proxy pods replace them elsewhere. To
        respect disruption budgets, run vnode drain first. If the target is unreachable, the
        command does the rest and prints what to delete there. On a terminal it says what becomes
        of pods, and asks.
        """
        run(
            _ask_and_disconnect(
                Access(kubeconfig, context),
                Access(target, target_context) if target or target_context else None,
                name,
                namespace,
                lambda lines: consequences.may_go_on(lines, dry_run=dry_run, yes=yes),
                agent_namespace=agent_namespace,
                ends=Ends(timeout),
            )
        )

    return disconnect_command


async def _ask_and_disconnect(
    source: Access,
    target: Access | None,
    name: str,
    namespace: str | None,
    may_go_on: Callable[[list[str]], bool],
    *,
    agent_namespace: str,
    ends: Ends,
) -> None:
    report = RemovalReport()
    async with source.client("source") as client:
        key, found = await naming.target(client, name, namespace)
        if target is not None:
            await sharing_sources.check_cluster(target, key, found)

        reaches_target = target is not None
        if not may_go_on(await _consequences(client, key, found, reaches_target=reaches_target)):
            return

        await disconnect(
            client,
            name,
            namespace,
            target,
            agent_namespace=agent_namespace,
            ends=ends,
            report=report,
        )

    report.finish()
