"""Defines the flags of `vnode dashboard`, and serves its pages.

The server listens on loopback. Other users of the machine can connect to that, and so can pages of
other sites that are open in the browser: so the path begins with a secret, and the header Host must
name this machine, whatever a name server says.
"""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import click

from vnode.api.clock import SystemClock
from vnode.cli import cluster_options, completing, manifests, terminal
from vnode.cli.access import Access
from vnode.cli.dashboard import browser
from vnode.cli.dashboard.observer import observe
from vnode.cli.main import run
from vnode.dashboard.site import Site
from vnode.kube.client import Client
from vnode.runtime.serving import Server, only_hosts
from vnode.runtime.supervisor import sleep_forever, supervise

_LOOPBACK: Final = "127.0.0.1"
_NAMES: Final = frozenset({_LOOPBACK, "localhost"})
_SECRET: Final = 16  # bytes
_GRACE: Final = 0.2  # seconds that open streams get at the end


def command() -> click.Command:
    """Return the click command."""

    @click.command("dashboard")
    @cluster_options.options
    @click.option(
        "-n",
        "--namespace",
        help="Only pods and Targets of this one; else of all.",
        shell_complete=completing.namespaces,
    )
    @click.option("--port", type=click.IntRange(0, 65535), default=0, help="0, the default: any.")
    @click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
    @click.option(
        "--agent-namespace",
        default=manifests.NAMESPACE,
        show_default=True,
        help="The agents' own namespace.",
    )
    def dashboard_command(
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        port: int,
        no_open: bool,
        agent_namespace: str,
    ) -> None:
        """Show clusters, capacity and pods in a browser, live, until Ctrl-C.

        With your rights, on this machine only. The address is a secret: whoever has it, and is on
        this machine, sees what you may see.
        """
        opens = terminal.is_terminal() and not no_open

        async def serve() -> None:
            async with Access(kubeconfig, context).client() as client:
                await _serve(client, namespace, agent_namespace, port, opens=opens)

        run(serve())

    return dashboard_command


async def _serve(
    client: Client, namespace: str | None, agent_namespace: str, port: int, *, opens: bool
) -> None:
    clock = SystemClock()
    observer = await observe(client, namespace, agent_namespace=agent_namespace, clock=clock)
    base = f"/{secrets.token_urlsafe(_SECRET)}"
    app = Site(observer.live_model, base).app([only_hosts(_NAMES)])
    server = Server("dashboard", app, _LOOPBACK, port, grace=_GRACE, authenticates=True)
    async with supervise() as tasks:
        await observer.start(tasks)
        tasks.start(server.run(), "dashboard")
        await server.ready.wait()
        address = f"http://{_LOOPBACK}:{server.port}{base}/"
        terminal.say(address)
        async with browser.opened(address) if opens else nullcontext():
            await sleep_forever()
