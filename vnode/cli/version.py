"""Prints which versions work together: of the command, of the cluster's agent, of its targets'.

The agent says its version on the ClusterSummary that it writes; those of targets are conditions of
their Targets. Without a cluster, only the command's own version is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from vnode import __version__
from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, Denied, NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import cluster_options, tables, terminal
from vnode.cli.access import Access
from vnode.cli.main import run
from vnode.cli.tables import Column
from vnode.kube.client import Client
from vnode.targets import conditions, heartbeats

UNKNOWN: Final = "<unknown>"
_SILENT: Final = "no heartbeat"
_OTHERS: Final = {"NotVnode": "not vnode", "Silent": _SILENT}


@dataclass(frozen=True, slots=True)
class AgentVersions:
    """What a cluster says of agents: the version of its own, and its Targets."""

    agent: str
    targets: Objects


def command() -> click.Command:
    """Return the click command."""

    @click.command("version")
    @cluster_options.options
    @click.option("--client", "client_only", is_flag=True, help="Ask no cluster.")
    @tables.output_option("text", "json", "yaml")
    def version(
        kubeconfig: Path | None, context: str | None, client_only: bool, output: str
    ) -> None:
        """Print the versions of this command, of the cluster's agent and of its targets' agents."""
        found: AgentVersions | None = None
        failure: VnodeError | None = None
        try:
            found = None if client_only else _ask(Access(kubeconfig, context))
        except VnodeError as error:
            failure = error

        if output == "text":
            terminal.say("\n".join(text(found)))
        else:
            terminal.say(tables.document([document(found)], output, single=True))

        if failure is not None:  # after what is known, as in kubectl
            raise failure

    return version


def _ask(cluster: Access) -> AgentVersions | None:
    """Ask the cluster; None if no cluster is named."""
    if not _is_named(cluster):
        return None

    found: list[AgentVersions] = []

    async def ask() -> None:
        async with cluster.client() as client:
            found.append(await read(client))

    run(ask())
    return found[0]


def _is_named(cluster: Access) -> bool:
    """Tell whether there is a cluster to ask; ConfigError if a kubeconfig cannot be used."""
    try:
        cluster.endpoint()
    except ConfigError:
        if cluster.load() is not None:
            raise

        return False

    return True


async def read(client: Client) -> AgentVersions:
    """Ask a cluster for the versions; what may not be read, or is not installed, is left out."""
    targets = [
        target
        for kind in (kinds.TARGETS, kinds.CLUSTER_TARGETS)
        for target in await _listed(client, kind)
    ]
    try:
        summary = await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    except Denied:
        return AgentVersions(UNKNOWN, targets)
    except NotFound:
        return AgentVersions("", targets)

    return AgentVersions(agent_of(summary, datetime.now(UTC)), targets)


async def _listed(client: Client, kind: Kind) -> Objects:
    try:
        return list(await client.list(kind))
    except (Denied, NotFound):
        return []


def agent_of(summary: Object, now: datetime) -> str:
    """Return the version of the agent that writes a ClusterSummary, and whether it is silent."""
    version = objects.annotations(summary).get(keys.AGENT_VERSION, "")
    if not version:
        return _OTHERS["NotVnode"]

    return version if heartbeats.is_recent(summary, now) else f"{version} ({_SILENT})"


def agent_of_target(target: Object) -> str:
    """Return the version of a target's agent, as its Target says it, or why there is none."""
    reason = str((objects.condition(target, conditions.AGENT) or {}).get("reason", ""))
    return conditions.agent_version(target) or _OTHERS.get(reason, UNKNOWN)


_COLUMNS: Final = (
    Column("NAMESPACE", objects.namespace, names_row=True),
    Column("TARGET", objects.name, names_row=True),
    Column("AGENT", agent_of_target),
)


def text(found: AgentVersions | None) -> Iterator[str]:
    """Yield the lines to print."""
    yield f"Client: {__version__}"
    if found is not None:
        yield f"Agent:  {found.agent or 'none'}"
        if found.targets:
            yield from ("", *tables.lines(_COLUMNS, found.targets))


def document(found: AgentVersions | None) -> dict[str, Any]:
    """Return the same for programs; the agent is left out where no cluster was asked."""
    client: dict[str, Any] = {"clientVersion": __version__}
    if found is None:
        return client

    targets = [
        {
            "namespace": objects.namespace(target),
            "name": objects.name(target),
            "agentVersion": agent_of_target(target),
        }
        for target in found.targets
    ]
    return {**client, "agentVersion": found.agent, "targets": targets}
