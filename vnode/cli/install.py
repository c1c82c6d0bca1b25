"""Defines `vnode install`: prepares a cluster for an agent, as source, target, or both.

The manifests are applied by server-side apply, so that another run changes only what differs, and
fields of other owners (the webhook's caBundle, Helm's labels) stay. Settings of an earlier run are
kept (`installed`). Objects of a Helm release of vnode are left to Helm; only the CRDs, which
outlive a release, are applied all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import access, installed, manifests, terminal
from vnode.cli.access import Access
from vnode.cli.installed import InstallFlags, InstallSettings
from vnode.cli.main import run
from vnode.kube.client import Client
from vnode.kube.informer import Informer

# The field manager; the agent has another one, so neither undoes the other's changes.
MANAGER: Final = "vnode-install"
_ESTABLISHED: Final = 60.0  # seconds to wait for the CRDs; an idle server takes less than one

Report = Callable[[str], None]


async def apply(client: Client, obj: Object) -> tuple[Object, str]:
    """Apply one of our objects; return it, and "created", "configured" or "unchanged"."""
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


async def wait_established(client: Client, names: list[str]) -> None:
    """Wait until the API server serves all these CRDs; ConfigError after a minute."""
    waiting, done = set(names), asyncio.Event()

    def on_crd(_old: Object | None, new: Object | None) -> None:
        if new and objects.is_condition_true(new, "Established"):
            waiting.discard(objects.name(new))

        if not waiting:
            done.set()

    informer = Informer(client, kinds.CRDS, label_selector=manifests.PART_OF)
    informer.subscribe(on_crd)
    try:
        async with asyncio.timeout(_ESTABLISHED), asyncio.TaskGroup() as group:
            task = group.create_task(informer.run(), name="established")
            await done.wait()
            task.cancel()
    except TimeoutError as error:
        why = informer.failure or "see kubectl describe crd"
        raise ConfigError(f"not established: {', '.join(sorted(waiting))} ({why})") from error


async def install(client: Client, objs: Objects, report: Report) -> None:
    """Apply all objects and wait until the CRDs are served; report each object, and warnings."""
    release = crds_release = ""
    for obj in objs:
        kind, what = manifests.kind_of(obj), f"{obj['kind'].lower()}/{objects.name(obj)}"
        if kind is not kinds.CRDS and (owner := await _helm_release(client, obj)):
            release = owner
            report(f"{what} left to the Helm release {owner}")
            continue

        applied, outcome = await apply(client, obj)
        report(f"{what} {outcome}")
        if kind is kinds.CRDS:
            crds_release = crds_release or installed.helm_release(applied)

    await wait_established(
        client, [objects.name(obj) for obj in objs if manifests.kind_of(obj) is kinds.CRDS]
    )
    for warning in [warning async for warning in _warnings(client, objs, release, crds_release)]:
        report(f"Warning: {warning}")


async def _helm_release(client: Client, obj: Object) -> str:
    """Return the release of vnode's chart that has this object; "" also if it may not be read."""
    try:
        kind = manifests.kind_of(obj)
        return installed.own_release(
            await _find(client, kind, objects.name(obj), objects.namespace(obj))
        )
    except Denied:
        return ""


async def _warnings(
    client: Client, objs: Objects, release: str, crds_release: str
) -> AsyncIterator[str]:
    if release:
        yield (
            f"vnode is the Helm release {release} here, so that only the CRDs were applied: "
            f"{installed.helm_upgrade(release)} repairs and upgrades the rest."
        )

    if crds_release:
        yield (
            f"the CRDs belong to the Helm release {crds_release}, whose uninstallation would "
            "delete them and with them all chaperons and delegate pods: before you uninstall it, "
            "remove the CRDs from the release, or drain the virtual nodes."
        )

    if await _find(client, kinds.MUTATING_WEBHOOKS, "admiralty"):
        yield (
            "Admiralty's webhook is still there (mutatingwebhookconfiguration/admiralty). "
            "Two agents must not serve one cluster: scale Admiralty's Deployments to zero and "
            "delete its webhook configuration before you start the vnode agent."
        )

    service = objs[-1]["webhooks"][0]["clientConfig"].get("service")
    if service and not release and not await _has_service(client, service):
        yield (
            f"the webhook calls Service {service['namespace']}/{service['name']}, which does "
            "not exist: no pod can be created in namespaces with the label "
            f"{'='.join(keys.WEBHOOK_NAMESPACE_LABEL)}. For an agent outside of the cluster pass "
            "--webhook-url https://HOST:PORT."
        )


async def _has_service(client: Client, service: Object) -> bool:
    return await _find(client, kinds.SERVICES, service["name"], service["namespace"]) is not None


async def _main(where: Access, flags: InstallFlags) -> None:
    async with where.client() as client:
        present = await _read_settings(client)
        await install(client, objects_for(flags.applied_to(present)), terminal.say)
        for line in installed.kept_settings(flags, present):
            terminal.say(line)


async def _read_settings(client: Client) -> InstallSettings:
    """Read the settings of the installation in the cluster."""
    try:
        return installed.read(await _find(client, kinds.MUTATING_WEBHOOKS, manifests.WEBHOOK))
    except Denied as error:
        raise ConfigError(
            f"may not read the webhook configuration {manifests.WEBHOOK}: {error.message}; use a "
            "kubeconfig of an administrator (cluster-admin)"
        ) from error


async def _print(where: Access | None, flags: InstallFlags) -> None:
    """Print the YAML that would be applied to that cluster, or to a new one."""
    present = InstallSettings()
    if where is not None:
        async with where.client() as client:
            present = await _read_settings(client)

    wanted = replace(flags.applied_to(present), secret="")  # what is printed may be read by anybody
    terminal.say(manifests.to_yaml(objects_for(wanted)), newline=False)


def objects_for(settings: InstallSettings) -> Objects:
    """Return all objects of an installation."""
    return manifests.everything(settings.namespace, installed.hook(settings))


def command() -> click.Command:
    """Return the click command."""

    @click.command("install")
    @access.options
    @click.option("--namespace", help=f"The agent's.  [default: {manifests.NAMESPACE}]")
    @click.option(
        "--webhook-url",
        metavar="https://HOST:PORT",
        help="Where the API server reaches an agent that runs outside of the cluster.",
    )
    @click.option(
        "--webhook-service",
        is_flag=True,
        help="The agent runs in the cluster: the webhook calls the Service vnode of its namespace. "
        " [default]",
    )
    @click.option(
        "--reinvocation-policy",
        type=click.Choice(("Never", "IfNeeded")),
        help="Whether the webhook is called again if others change the pod after it.  "
        "[default: Never]",
    )
    @click.option(
        "--webhook-timeout",
        type=click.IntRange(1, 30),
        help="Seconds the API server waits for the webhook.  [default: 10]",
    )
    @click.option(
        "--dry-run",
        is_flag=True,
        help="Print the YAML; send nothing. No cluster is asked, unless --kubeconfig or --context "
        "names the one whose settings are to be kept.",
    )
    def install_command(
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        webhook_url: str | None,
        webhook_service: bool,
        reinvocation_policy: str | None,
        webhook_timeout: int | None,
        dry_run: bool,
    ) -> None:
        """Apply CRDs, RBAC and the webhook configuration.

        Running it again repairs and upgrades, and keeps the settings of earlier runs: each default
        is that of the first run.
        """
        flags = InstallFlags(
            namespace, webhook_url, webhook_service, reinvocation_policy, webhook_timeout
        )
        where = Access(kubeconfig, context)
        if dry_run:
            run(_print(where if kubeconfig or context else None, flags))
        else:
            run(_main(where, flags))

    return install_command
