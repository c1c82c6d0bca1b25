"""Reads usage in one target in the best way that the target allows.

That is by kubelets if somebody granted us that right, else by the metrics API: of all namespaces if
the Source is for all, else of each namespace in which we have pods. What is refused is tried again
after a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from vnode.api.clock import Clock
from vnode.api.errors import Denied, VnodeError
from vnode.kube.client import Client
from vnode.kubelet.auth.cache import ExpiringCache
from vnode.kubelet.usage import kubelets, metrics_api
from vnode.kubelet.usage.findings import Findings, PodKey

_TIMEOUT: Final = 7.0  # seconds for everything: scrapers give up after some ten
_RIGHTS: Final = 60.0  # seconds until a right is checked again
_AT_ONCE: Final = 4  # namespaces
_KUBELETS, _EVERYWHERE, _NODES = "kubelets", "pods everywhere", "nodes"


class TargetReader:
    """Reads the usage of some pods and of all nodes of a target."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rights: ExpiringCache[str, bool] = ExpiringCache(8, clock)

    async def read(
        self, client: Client, wanted: Collection[PodKey], selector: str, *, everywhere: bool
    ) -> Findings:
        """Return what was read in time. Raises nothing of its own: failures are in `problems`.

        `selector` matches the labels of the wanted pods; `everywhere`: the Target is for all
        namespaces.
        """
        findings = Findings()
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._read(client, wanted, selector, everywhere, findings)
        except TimeoutError:
            findings.problem(f"not all answered within {_TIMEOUT:.0f} s")

        return findings

    async def _read(
        self,
        client: Client,
        wanted: Collection[PodKey],
        selector: str,
        everywhere: bool,
        findings: Findings,
    ) -> None:
        try:
            if await self._may_read_kubelets(client):
                await kubelets.read(client, wanted, lambda: self._clock.now().timestamp(), findings)
        except VnodeError as error:
            findings.problem(f"nodes of the target: {error}")

        if not findings.nodes:
            await self._read_nodes(client, findings)

        if wanted and not findings.pods:
            await self._read_pods(client, wanted, selector, everywhere, findings)

    async def _may_read_kubelets(self, client: Client) -> bool:
        allowed = self._rights.get(_KUBELETS)
        if allowed is None:
            allowed = await kubelets.may_read(client)
            self._rights.put(_KUBELETS, allowed, _RIGHTS)

        return allowed

    async def _read_nodes(self, client: Client, findings: Findings) -> None:
        if self._rights.get(_NODES) is False:
            return

        try:
            await metrics_api.read_nodes(client, findings, self._clock)
        except Denied:
            self._rights.put(_NODES, False, _RIGHTS)  # a Source of one namespace: no problem
        except VnodeError as error:
            findings.problem(f"metrics of the target's nodes: {error}")

    async def _read_pods(
        self,
        client: Client,
        wanted: Collection[PodKey],
        selector: str,
        everywhere: bool,
        findings: Findings,
    ) -> None:
        if everywhere and self._rights.get(_EVERYWHERE) is not False:
            try:
                await metrics_api.read_pods(client, None, selector, findings, self._clock)
            except Denied:
                self._rights.put(_EVERYWHERE, False, _RIGHTS)
            except VnodeError as error:
                findings.problem(f"metrics of pods: {error}")
                return
            else:
                return

        limit = asyncio.Semaphore(_AT_ONCE)

        async def read_namespace(namespace: str) -> None:
            async with limit:
                try:
                    await metrics_api.read_pods(client, namespace, selector, findings, self._clock)
                except VnodeError as error:
                    findings.problem(f"metrics of pods in namespace {namespace}: {error}")

        async with asyncio.TaskGroup() as group:
            for namespace in sorted({namespace for namespace, _name in wanted}):
                group.create_task(read_namespace(namespace), name=f"usage-{namespace}")
