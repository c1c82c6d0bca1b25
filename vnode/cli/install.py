"""Defines `vnode install`: prepares a cluster for an agent, as source, target, or both.

Settings of an earlier run are kept (`installed`). What is done is in `installation`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from vnode.api import kinds, names, objects
from vnode.api.errors import ConfigError, Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Objects
from vnode.cli import (
    access,
    account_kubeconfigs,
    cluster_options,
    installation,
    installed,
    manifests,
    released_rights,
    terminal,
)
from vnode.cli.access import Access
from vnode.cli.durations import DurationType
from vnode.cli.installation import find
from vnode.cli.installed import InstallFlags, InstallSettings
from vnode.cli.main import run
from vnode.cli.suggestions import OneOf
from vnode.kube.client import Client
from vnode.targets import token_renewal


@dataclass(frozen=True, slots=True)
class AccountFiles:
    """Kubeconfigs to be written for processes, with tokens of so many seconds."""

    agent: Path | None
    scheduler: Path | None
    lifetime: float

    def by_account(self) -> dict[str, Path]:
        """Return the files that were asked for, by service account."""
        asked = {manifests.ACCOUNT: self.agent, manifests.SCHEDULER_ACCOUNT: self.scheduler}
        return {name: file for name, file in asked.items() if file is not None}


async def _main(where: Access, flags: InstallFlags, files: AccountFiles) -> None:
    async with where.client() as client:
        present = await _read_settings(client)
        wanted = flags.applied_to(present)
        made = objects_for(wanted)
        await installation.install(
            client,
            made,
            manifests.unwanted(allow_self_targets=wanted.self_targets),
            terminal.say,
        )
        await _withdraw_rights(client, made)
        for line in installed.kept_settings(flags, present):
            terminal.say(line)

        for name, file in files.by_account().items():
            account = (wanted.namespace, name)
            await account_kubeconfigs.write(
                client, where, account, file, files.lifetime, terminal.say
            )


async def _withdraw_rights(client: Client, wanted: Objects) -> None:
    """Delete the rights that earlier runs gave in namespaces that are named no more."""
    kept = {(obj["kind"], objects.key(obj)) for obj in wanted}
    for kind, obj in await released_rights.given(client):
        is_kept = (kind.kind, objects.key(obj)) in kept
        if not is_kept and not installed.own_release(obj):
            await released_rights.release(client, kind, obj)
            await client.discard(kind, obj)
            terminal.say(f"{kind.kind.lower()}/{objects.key(obj)} deleted")


async def _read_settings(client: Client) -> InstallSettings:
    """Read the settings of the installation in the cluster."""
    try:
        webhook = await find(client, kinds.MUTATING_WEBHOOKS, manifests.WEBHOOK)
        return installed.read(webhook, self_targets=await _allows_self_targets(client))
    except Denied as error:
        raise ConfigError(
            f"may not read the settings of an earlier installation: {error.message}; use a "
            "kubeconfig of an administrator (cluster-admin)"
        ) from error


async def _allows_self_targets(client: Client) -> bool:
    """Tell whether Targets with `self: true` were asked for.

    An older version gave everybody the rights for them: there, such a Target tells.
    """
    kind = kinds.CLUSTER_ROLE_BINDINGS
    if await find(client, kind, manifests.SELF_TARGETS):
        return True

    former = await find(client, kind, manifests.FORMER_BINDING)
    if former is None or installed.own_release(former):
        return False

    targets = [*await _listed(client, kinds.TARGETS), *await _listed(client, kinds.CLUSTER_TARGETS)]
    return any(objects.spec(target).get("self") for target in targets)


async def _listed(client: Client, kind: Kind) -> Objects:
    try:
        return await client.list(kind)
    except NotFound:
        return []


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
    return manifests.everything(
        settings.namespace,
        installed.hook(settings),
        settings.named,
        allow_self_targets=settings.self_targets,
    )


def _names(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    """Split a list of namespaces; ConfigError for what cannot be the name of one."""
    if text is None:
        return None

    found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in found:
        if not names.LABEL.fullmatch(name):
            raise ConfigError(f"--namespaces: {name!r} cannot be the name of a namespace")

    return found


def _whole_seconds(
    _context: click.Context, _parameter: click.Parameter, length: float | None
) -> int | None:
    return None if length is None else int(length)


_SETTINGS: Final = (
    click.option("--namespace", help=f"The agent's.  [default: {manifests.NAMESPACE}]"),
    click.option(
        "--webhook-url",
        "url",
        metavar="https://HOST:PORT",
        help="Where the API server reaches an agent that runs outside of the cluster.",
    ),
    click.option(
        "--webhook-service",
        "to_service",
        is_flag=True,
        help="The agent runs in the cluster: the webhook calls the Service vnode of its namespace. "
        " [default]",
    ),
    click.option(
        "--reinvocation-policy",
        "reinvocation",
        type=OneOf(("Never", "IfNeeded")),
        help="Whether the webhook is called again if others change the pod after it.  "
        "[default: Never]",
    ),
    click.option(
        "--webhook-timeout",
        "timeout",
        type=DurationType(1, 30),
        callback=_whole_seconds,
        help="How long the API server waits for the webhook, at most 30s.  [default: 10s]",
    ),
    click.option(
        "--self-targets/--no-self-targets",
        default=None,
        help="Give the agent the rights that Targets with self: true take, among them logs and "
        "exec of all pods here.  [default: no]",
    ),
    click.option(
        "--namespaces",
        "named",
        metavar="NAME,...",
        callback=_names,
        help="Hold the agent to these namespaces: it gets Roles in them, and no right to Secrets "
        "and pods of others. They must exist; the agent's configuration has to name them, too.",
    ),
    click.option(
        "--all-namespaces",
        is_flag=True,
        help="The agent has its rights in all namespaces.  [default]",
    ),
)
"""The options that are fields of InstallFlags."""


def _settings(function: cluster_options.Command) -> cluster_options.Command:
    """Add the settings; the command gets them as arguments with the names of the fields."""
    for option in reversed(_SETTINGS):
        function = option(function)

    return function


def command() -> click.Command:
    """Return the click command."""

    @click.command("install")
    @cluster_options.options
    @_settings
    @click.option(
        "--agent-kubeconfig",
        type=access.FILE,
        help="Write a kubeconfig of the agent's account, for an agent that runs as a process.",
    )
    @click.option(
        "--scheduler-kubeconfig",
        type=access.FILE,
        help="Likewise for the candidate scheduler.",
    )
    @click.option(
        "--token-lifetime",
        type=DurationType(token_renewal.SHORTEST),
        default="365d",
        show_default=True,
        help="Wanted life of the tokens in these files; the API server may give less.",
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
        agent_kubeconfig: Path | None,
        scheduler_kubeconfig: Path | None,
        token_lifetime: float,
        dry_run: bool,
        **settings: Any,
    ) -> None:
        """Apply CRDs, RBAC and the webhook configuration.

        Running it again repairs and upgrades, and keeps the settings of earlier runs: each default
        is that of the first run.
        """
        flags = InstallFlags(**settings)
        where = Access(kubeconfig, context)
        if dry_run:
            run(_print(where if kubeconfig or context else None, flags))
        else:
            files = AccountFiles(agent_kubeconfig, scheduler_kubeconfig, token_lifetime)
            run(_main(where, flags, files))

    return install_command
