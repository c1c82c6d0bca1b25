"""Defines `vnode agent`: its flags, and its start."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click

from vnode.agent import config
from vnode.agent.replica import STARTING, Agent
from vnode.agent.shared import AgentOptions
from vnode.api import cures, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError, NotFound
from vnode.api.identity import Identity
from vnode.cli import identity as identities
from vnode.cli import main
from vnode.cli.access import Access
from vnode.kube.client import Client
from vnode.kube.namespace_scope import NamespaceScope
from vnode.runtime import lease_identity, memory, startup
from vnode.runtime.health import LIMITS, ProcessHealth
from vnode.runtime.serving import Server
from vnode.runtime.supervisor import supervise
from vnode.telemetry import audit_log, target_series, tracing

OWN_COMMAND: tuple[str, ...] = (sys.executable, "-m", "vnode")
"""Starts another process of vnode; the fuzzer has that one measured, too."""

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def command() -> click.Command:
    """Return the click command."""
    return agent


@click.command()
@click.option(
    "--kubeconfig",
    type=_FILE,
    help="The cluster to serve; by default $KUBECONFIG, in a pod its own.",
)
@click.option("--context", help="Context of the kubeconfig; its current one by default.")
@click.option(
    "--cluster-name",
    envvar="CLUSTER_NAME",
    default="",
    help="What targets call this cluster; must differ from their other sources'. "
    "By default the UID of its kube-system namespace.",
)
@click.option(
    "--advertise-address",
    envvar="POD_IP",
    help="IP address at which the API server reaches this agent; POD_IP by default.",
)
@click.option("--namespace", default="vnode", show_default=True, help="The agents' own namespace.")
@click.option("--config", "config_file", type=_FILE, help="AgentConfiguration in YAML.")
@click.option(
    "--credentials-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the candidate scheduler's client certificate, beside its Secret.",
)
def agent(
    kubeconfig: Path | None,
    context: str | None,
    cluster_name: str,
    advertise_address: str | None,
    namespace: str,
    config_file: Path | None,
    credentials_dir: Path | None,
) -> None:
    """Run the agent of one cluster, until SIGTERM or SIGINT."""
    memory.configure()
    cluster_name = identities.check_name(cluster_name)
    loaded = config.load(config_file)
    options = AgentOptions(
        namespace=namespace,
        address=_address(advertise_address),
        config=loaded,
        credentials=credentials_dir,
        holder=lease_identity.own(os.environ),
        admission_command=_admission_command(kubeconfig, context),
        spans=tracing.opened(loaded.tracing),
    )
    access = Access(kubeconfig, context)

    def connect() -> Client:
        scope = NamespaceScope(options.config.namespaces)  # each loop has its own
        return Client(access.endpoint(home=False), name=target_series.LOCAL, scope=scope)

    with audit_log.written_to(options.config.audit_log):
        memory.pause_collecting()
        main.run(_serve(connect, cluster_name, options))


def _admission_command(kubeconfig: Path | None, context: str | None) -> tuple[str, ...]:
    """Return the command of the process that answers reviews: it logs as this one does."""
    command = [*OWN_COMMAND, *main.log_flags()]
    command += ["admission"]
    command += ["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else []
    command += ["--context", context] if context is not None else []
    return tuple(command)


def _address(text: str | None) -> str:
    cure = (
        "pass --advertise-address (or set POD_IP): the IP address at which this cluster's API "
        "server reaches the agent"
    )
    if not text:
        raise ConfigError(cure)

    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise ConfigError(f"{text!r} is not an IP address: {cure}") from error


async def _serve(connect: Callable[[], Client], cluster_name: str, options: AgentOptions) -> None:
    async with connect() as client:
        running = asyncio.create_task(_run(client, connect, cluster_name, options), name="agent")
        loop = asyncio.get_running_loop()

        def end() -> None:
            options.stop_requested.set()
            running.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)

        try:
            await running
        except asyncio.CancelledError:
            if not running.cancelled():
                raise


async def _run(
    client: Client, connect: Callable[[], Client], cluster_name: str, options: AgentOptions
) -> None:
    """Serve probes at once, or the kubelet would restart an agent that waits for its API server."""
    health = ProcessHealth()
    port = options.config.ports.health
    server = Server("health", health.app(), options.address, port, limits=LIMITS)
    health.add(STARTING, lambda: "the API server has not answered yet")
    async with supervise() as tasks:
        tasks.start(server.run(), server.name)
        identity = await startup.wait_for_answer(
            lambda: _identify(client, cluster_name), SystemClock()
        )
        await Agent(client, identity, options, health, connect).run()


async def _identify(client: Client, cluster_name: str) -> Identity:
    try:
        system = await client.get(kinds.NAMESPACES, "kube-system")
        await client.request("GET", kinds.CLUSTER_TARGETS.path(), query={"limit": "1"})
    except NotFound as error:
        raise ConfigError(
            f"vnode is not installed in this cluster: {cures.INSTALL} ({error.message})"
        ) from error

    uid = objects.uid(system)
    return Identity(cluster_name or uid, uid)
