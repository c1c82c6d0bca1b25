"""`vnode install`: makes a cluster ready for an agent, as source, target, or both.

The manifests are applied on the server's side, so that running it again changes nothing but what
differs, and what others own (the webhook's caBundle, Helm's labels) stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from vnode.api import kinds, objects
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import access, manifests
from vnode.cli.access import Access
from vnode.cli.main import run
from vnode.kube.client import Client
from vnode.kube.informer import Informer

MANAGER: Final = (
    "vnode-install"  # field manager; the agent's own is another, so neither undoes the other
)
_ESTABLISHED: Final = (
    60.0  # seconds to wait for the CRDs; they take less than one on an idle server
)

Report = Callable[[str], None]


async def apply(client: Client, obj: Object) -> tuple[Object, str]:
    """Apply one of our objects; with it comes what happened: created, configured or unchanged."""
    kind = manifests.kind_of(obj)
    name = objects.name(obj)
    try:
        before = await _find(client, kind, name, objects.namespace(obj))
        after = await client.apply(kind, obj, manager=MANAGER)
    except Denied as error:
        raise ConfigError(
            f"may not apply {kind.kind} {name}: {error.message}; use a kubeconfig of an "
            "administrator (cluster-admin)"
        ) from error

    if not before:
        return after, "created"

    same = objects.resource_version(before) == objects.resource_version(after)
    return after, "unchanged" if same else "configured"


async def _find(client: Client, kind: Kind, name: str, namespace: str = "") -> Object | None:
    try:
        return await client.get(kind, name, namespace or None)
    except NotFound:
        return None


async def established(client: Client, names: list[str]) -> None:
    """Return when the API server serves all these CRDs; ConfigError after a minute."""
    waiting, done = set(names), asyncio.Event()

    def look(_old: Object | None, new: Object | None) -> None:
        condition = objects.condition(new, "Established") if new else None
        if new and condition and condition.get("status") == "True":
            waiting.discard(objects.name(new))

        if not waiting:
            done.set()

    informer = Informer(client, kinds.CRDS, label_selector=manifests.PART_OF)
    informer.subscribe(look)
    try:
        async with asyncio.timeout(_ESTABLISHED), asyncio.TaskGroup() as group:
            task = group.create_task(informer.run(), name="established")
            await done.wait()
            task.cancel()
    except TimeoutError as error:
        why = informer.failure or "see kubectl describe crd"
        raise ConfigError(f"not established: {', '.join(sorted(waiting))} ({why})") from error


async def install(client: Client, objs: Objects, report: Report) -> None:
    """Apply all, wait until the CRDs are served, and report each object and what to know."""
    released = ""
    for obj in objs:
        applied, what = await apply(client, obj)
        report(f"{obj['kind'].lower()}/{objects.name(obj)} {what}")
        if manifests.kind_of(obj) is kinds.CRDS:
            released = released or helm_release(applied)

    await established(
        client, [objects.name(obj) for obj in objs if manifests.kind_of(obj) is kinds.CRDS]
    )
    if released:
        report(
            f"Warning: the CRDs belong to the Helm release {released}, whose uninstallation would "
            "delete them and with them all chaperons and delegate pods: before you uninstall it, "
            "remove the CRDs from the release, or drain the virtual nodes."
        )

    if await _find(client, kinds.MUTATING_WEBHOOKS, "admiralty"):
        report(
            "Warning: Admiralty's webhook is still there (mutatingwebhookconfiguration/admiralty). "
            "Two agents must not serve one cluster: scale Admiralty's Deployments to zero and "
            "delete its webhook configuration before you start the vnode agent."
        )


def helm_release(crd: Object) -> str:
    """`namespace/name` of the Helm release that a CRD belongs to, "" if to none."""
    notes = objects.annotations(crd)
    release = notes.get("meta.helm.sh/release-name", "")
    return f"{notes.get('meta.helm.sh/release-namespace', '')}/{release}" if release else ""


async def _main(where: Access, objs: Objects) -> None:
    async with where.client() as client:
        await install(client, objs, click.echo)


def command() -> click.Command:
    """The click command."""

    @click.command("install")
    @access.options
    @click.option(
        "--namespace", default=manifests.NAMESPACE, show_default=True, help="The agent's."
    )
    @click.option(
        "--webhook-url",
        metavar="https://HOST:PORT",
        help="Where the API server reaches an agent that runs outside of the cluster; without it, "
        "the webhook calls the Service vnode in the agent's namespace.",
    )
    @click.option(
        "--reinvocation-policy",
        type=click.Choice(("Never", "IfNeeded")),
        default="Never",
        show_default=True,
        help="Whether the webhook is called again if others change the pod after it.",
    )
    @click.option(
        "--webhook-timeout",
        type=click.IntRange(1, 30),
        default=10,
        show_default=True,
        help="Seconds the API server waits for the webhook.",
    )
    @click.option("--dry-run", is_flag=True, help="Print the YAML; send nothing.")
    def install_command(
        kubeconfig: Path | None,
        context: str | None,
        namespace: str,
        webhook_url: str | None,
        reinvocation_policy: str,
        webhook_timeout: int,
        dry_run: bool,
    ) -> None:
        """Apply CRDs, RBAC and the webhook configuration. Running it again repairs and upgrades."""
        hook = manifests.webhook(
            namespace, webhook_url, reinvocation=reinvocation_policy, timeout=webhook_timeout
        )
        objs = manifests.everything(namespace, hook)
        if dry_run:
            click.echo(manifests.to_yaml(objs), nl=False)
        else:
            run(_main(Access(kubeconfig, context), objs))

    return install_command
