"""Defines `vnode admission`, which `vnode agent` starts: see `vnode.agent.admission`.

It reads what to do from standard input, and ends with that. It reports to standard output.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import click
import msgspec

from vnode.agent.admission import AdmissionReport, AdmissionServer, AdmissionSettings
from vnode.api.errors import ConfigError
from vnode.cli import main
from vnode.cli.access import Access
from vnode.kube.client import Client
from vnode.kube.namespace_scope import NamespaceScope
from vnode.runtime import memory
from vnode.runtime.supervisor import supervise
from vnode.telemetry import audit_log

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUTPUT: Final = 1


def command() -> click.Command:
    """Return the click command."""
    return admission


@click.command(hidden=True)
@click.option("--kubeconfig", type=_FILE, help="As of vnode agent.")
@click.option("--context", help="As of vnode agent.")
def admission(kubeconfig: Path | None, context: str | None) -> None:
    """Answer admission reviews for an agent, which starts this."""
    memory.configure()
    main.run(_serve(Access(kubeconfig, context)))


async def _serve(access: Access) -> None:
    os.set_blocking(_OUTPUT, False)
    stream = await _input()
    settings = _decode(await stream.readline())
    scope = NamespaceScope(settings.namespaces)
    with ExitStack() as stack:
        audited = audit_log.written_to(settings.audit_log)
        await asyncio.to_thread(stack.enter_context, audited)
        async with Client(access.endpoint(home=False), name="local", scope=scope) as client:
            serving = AdmissionServer(client, settings, _report)
            async with supervise() as tasks:
                tasks.start(serving.run(), "admission")
                await stream.read()  # to its end: the agent has ended, or asks this process to


async def _input() -> asyncio.StreamReader:
    loop, stream = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), sys.stdin)
    return stream


def _decode(line: bytes) -> AdmissionSettings:
    try:
        return msgspec.json.decode(line, type=AdmissionSettings)
    except msgspec.MsgspecError as error:
        raise ConfigError("vnode admission is started by vnode agent only: start that") from error


def _report(report: AdmissionReport) -> None:
    """Write a line; an agent that does not read for long misses some."""
    with suppress(BlockingIOError, BrokenPipeError):
        os.write(_OUTPUT, msgspec.json.encode(report) + b"\n")
