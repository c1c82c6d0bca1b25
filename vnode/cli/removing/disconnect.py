"""`vnode disconnect`: takes away what `vnode connect` made, on the sides that can be reached.

In the source: the Target, then, once nothing of it runs, its Secret. In the target: the Source. The
source's side comes first, so that its credentials still work while its pods end.
"""

from __future__ import annotations

from pathlib import Path

import click

from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import Denied, NotFound, VnodeError
from vnode.api.objects import Object, Objects
from vnode.cli import access, identity, manifests, naming
from vnode.cli.access import Access
from vnode.cli.connecting import wanted
from vnode.cli.main import run
from vnode.cli.removing import source_side, target_side
from vnode.cli.removing.reporting import Report, remove
from vnode.cli.removing.source_side import Ends
from vnode.kube.client import Client
from vnode.targets import expiry, model, secrets, source_rbac
from vnode.targets.model import SecretReference


async def disconnect(
    here: Client,
    name: str,
    namespace: str | None,
    there: Access | None,
    *,
    agent_namespace: str,
    ends: Ends,
    report: Report,
) -> None:
    """Remove the Target of that name and what belongs to it; what is left goes to the report."""
    key, target = await naming.target(here, name, namespace)
    reference = _secret_of(target)
    user, secret = await _identity_there(here, reference)
    led = await source_side.agent_leads(here, agent_namespace, SystemClock())
    if not led:
        report.say("No agent leads in this cluster: its part is done from here.")

    await source_side.end_targets(here, [target], led=bool(led), ends=ends, report=report)
    if secret is not None and reference is not None:
        await _remove_secret(here, secret, reference, key.name, report)

    if objects.spec(target).get("self"):
        return

    who = f"of {user}" if user else "that lets this cluster in"
    scope = f" in namespace {key.namespace}" if key.namespace else ""
    if there is None:
        kind = "Source" if key.namespace else "ClusterSource"
        report.left.append(
            f"in the target, the {kind} {who}{scope}: delete it there, or run this with "
            "--target FILE instead"
        )
        return

    try:
        async with there.client("target") as far:
            await _remove_sources(far, key.namespace, user, report)
    except VnodeError as error:
        report.left.append(f"in the target, the Source {who}{scope}: {error}")


def _secret_of(target: Object) -> SecretReference | None:
    try:
        return model.parse(target).secret
    except VnodeError:  # one that cannot be used can still be removed
        return None


async def _identity_there(
    here: Client, reference: SecretReference | None
) -> tuple[str, Object | None]:
    """As whom the source goes to the target ("" if that cannot be seen), and the Secret."""
    if reference is None:
        return "", None

    secret = None
    try:
        secret = await here.get(kinds.SECRETS, reference.name, reference.namespace)
        end = expiry.of_kubeconfig(secrets.kubeconfig(secret, reference), reference.context)
    except (NotFound, Denied):
        return "", None
    except VnodeError:
        return "", secret

    return (end.subject if end else ""), secret


async def _remove_secret(
    here: Client, secret: Object, reference: SecretReference, name: str, report: Report
) -> None:
    """Only one that `vnode connect` made, and that no other Target uses."""
    users: Objects = []
    for kind in (kinds.TARGETS, kinds.CLUSTER_TARGETS):
        users += await here.list(kind)

    used = any(_secret_of(other) == reference for other in users)
    if reference.name == wanted.secret_name(name) and not used:
        await remove(here, kinds.SECRETS, secret, report)
    else:
        why = "another Target uses it" if used else "vnode connect did not make it"
        report.left.append(f"secret/{reference.object_key}: {why}")


async def _remove_sources(far: Client, namespace: str, user: str, report: Report) -> None:
    kind = kinds.SOURCES if namespace else kinds.CLUSTER_SOURCES
    found = [source for source in await far.list(kind, namespace or None) if lets_in(source, user)]
    if not found:
        report.say(f"target: there is no {kind.kind} for {user or 'this cluster'}")

    quieter = Report(say=lambda text: report.say(f"target: {text}"), left=report.left)
    await target_side.end_sources(far, found, quieter)


def lets_in(source: Object, user: str) -> bool:
    """The Source is for that user or service account."""
    try:
        grant = source_rbac.parse(source)
    except VnodeError:
        return False

    account = identity.account_of(user)
    return bool(user) and (grant.user == user or (account is not None and grant.account == account))


def command() -> click.Command:
    """The click command."""

    @click.command("disconnect")
    @click.argument("name", metavar="TARGET")
    @access.source_options
    @access.namespaced
    @click.option("--target", type=access.FILE, help="Kubeconfig of the target, if you have one.")
    @click.option("--target-context", help="Context; the current one if not given.")
    @click.option("--agent-namespace", default=manifests.NAMESPACE, show_default=True)
    @click.option(
        "--timeout", type=click.IntRange(1), default=60, show_default=True, help="Seconds a step."
    )
    def disconnect_command(
        name: str,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        target: Path | None,
        target_context: str | None,
        agent_namespace: str,
        timeout: int,
    ) -> None:
        """Remove a Target with its Secret, and, with --target, the Source on its other side.

        Pods that run there end, for their owners to replace them elsewhere; to do that gently,
        run vnode drain before. Works without the other side, and says what is left there.
        """
        there = Access(target, target_context) if target or target_context else None

        async def do() -> None:
            report = Report()
            async with Access(kubeconfig, context).client("source") as here:
                await disconnect(
                    here,
                    name,
                    namespace,
                    there,
                    agent_namespace=agent_namespace,
                    ends=Ends(timeout),
                    report=report,
                )

            report.finish()

        run(do())

    return disconnect_command
