"""Takes the steps from two clusters to a first pod. Each is skipped where it is done already.

An administrator's credentials are used here and now only: the agents get accounts of their own from
the chart, and the connection a token of a service account. A step that fails says what to do; then
the same command goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from vnode.api import durations, kinds, lease_holders, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import AlreadyExists, ConfigError, NotFound
from vnode.api.objects import Object
from vnode.cli import identity, tables, waiting
from vnode.cli.connect import connect
from vnode.cli.connect.connect import ConnectOptions, Side
from vnode.cli.connect.connector import Connector
from vnode.cli.connect.desired import DesiredConnection
from vnode.cli.doctor import examining, trial_pods
from vnode.cli.quickstart import helm
from vnode.cli.quickstart.helm import Chart
from vnode.cli.remove import source_side
from vnode.kube.client import Client
from vnode.runtime.leader import AGENT_LEASE

_NO_CHART: Final = (
    "vnode does not run in the {role} cluster: name the chart with --chart, and the image with "
    "--image if the nodes pull it from a registry of yours"
)


@dataclass(frozen=True, slots=True)
class QuickstartOptions:
    """What the user asks for; `charts` has a chart for each role, none if none was named."""

    connection: ConnectOptions
    charts: dict[str, Chart]
    seconds: float


async def _check_two(source: Client, target: Client) -> None:
    """Raise ConfigError for one cluster on both sides: it would be installed twice."""
    uid = await identity.cluster_uid(source)
    if uid and uid == await identity.cluster_uid(target):
        raise ConfigError(
            f"source and target are one cluster ({uid} is the UID of its namespace kube-system): "
            "pass the kubeconfig, or the context, of another for one of them. A cluster becomes "
            "its own target by the chart's value selfTargets.enabled and vnode connect"
        )


class Quickstart:
    """Runs the steps, and tells of each that is done; `begin` tells of each that may take long."""

    def __init__(
        self,
        source: Side,
        target: Side,
        options: QuickstartOptions,
        tell: Callable[[str], None],
        begin: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._source = source
        self._target = target
        self._options = options
        self._tell = tell
        self._begin = begin

    async def run(self) -> None:
        """Run all steps; ConfigError says what keeps one from being done."""
        async with AsyncExitStack() as stack:
            source = await stack.enter_async_context(self._source.client())
            target = await stack.enter_async_context(self._target.client())
            sides = ((self._source, source), (self._target, target))
            for side, client in sides:
                version, _skew = await examining.read_version(client)
                self._tell(f"the {side.role} cluster answers: Kubernetes {version}")

            await _check_two(source, target)
            for side, client in sides:
                await self._install(side, client)

            for side, client in sides:
                await self._await_agent(side, client)

            await self._connect(source, target)

    @property
    def _at_most(self) -> str:
        return f", at most {durations.written(self._options.seconds)}"

    async def _install(self, side: Side, client: Client) -> None:
        namespace = self._options.connection.agent_namespace
        if await source_side.agent_leads(client, namespace, SystemClock()):
            return

        chart = self._options.charts.get(side.role)
        if chart is None:
            raise ConfigError(_NO_CHART.format(role=side.role))

        helm.check()
        words = helm.words(side, chart, namespace, self._options.seconds)
        self._begin(f"helm installs vnode in the {side.role} cluster{self._at_most}")
        await helm.install(words, side.role)
        self._tell(f"vnode is installed in the {side.role} cluster: release {helm.RELEASE}")

    async def _await_agent(self, side: Side, client: Client) -> None:
        """Wait until an agent leads, which serves the webhook by then."""
        namespace, clock = self._options.connection.agent_namespace, SystemClock()

        def is_held(lease: Object) -> bool:
            return bool(lease_holders.live_holder(lease, clock.now()))

        self._begin(f"waiting for the agent of the {side.role} cluster{self._at_most}")
        leads, _lease = await waiting.until_one(
            client, kinds.LEASES, AGENT_LEASE, namespace, is_held, self._options.seconds
        )
        if not leads:
            raise ConfigError(
                f"no agent leads in the {side.role} cluster after {self._options.seconds:g} s: "
                f"kubectl{side.flags} -n {namespace} get pods says why; then run the same again"
            )

        self._tell(f"the agent of the {side.role} cluster runs")

    async def _connect(self, source: Client, target: Client) -> None:
        options = self._options.connection
        await self._make_namespace(source, target)
        connection = await connect.prepare(self._source, source, self._target, target, options)
        self._begin(f"connecting the clusters as Target {connection.name}")
        await Connector(source, target, connection, lambda _line: None).run()
        key = objects.join_key(connection.namespace, connection.name)
        self._tell(f"connected: {connection.target_kind.kind} {key}")
        await self._await_target(source, connection)
        if not connection.namespace:
            return

        await connect.enable_namespace(source, connection.namespace)
        self._tell(f"pods of namespace {connection.namespace} take part")
        await self._try_admission(source, connection.namespace)

    async def _make_namespace(self, source: Client, target: Client) -> None:
        """Make the namespace of the pods in the target: delegates are in one of the same name."""
        if self._options.connection.cluster_wide:
            return

        name = self._options.connection.namespace or source.endpoint.namespace
        try:
            await target.get(kinds.NAMESPACES, name)
        except NotFound:
            body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            try:
                await target.create(kinds.NAMESPACES, body)
            except AlreadyExists:
                return

            self._tell(f"namespace {name} is made in the target cluster")

    async def _await_target(self, source: Client, connection: DesiredConnection) -> None:
        kind, namespace = connection.target_kind, connection.namespace or None
        self._begin(f"waiting until {kind.kind} {connection.name} is ready{self._at_most}")
        ready, target = await waiting.until_one(
            source, kind, connection.name, namespace, objects.is_ready, self._options.seconds
        )
        if not ready:
            why = (objects.condition(target, "Ready") or {}).get("message") or "no word of it yet"
            raise ConfigError(
                f"{tables.reference(kind, target)} is not ready: {why}. vnode doctor checks both "
                "sides; then run the same again"
            )

        self._tell(f"{kind.kind} {connection.name} is ready")

    async def _try_admission(self, source: Client, namespace: str) -> None:
        self._begin(f"trying a pod in namespace {namespace}")
        trial = await trial_pods.create(source, namespace)
        if why := trial.failure:
            raise ConfigError(f"a trial pod was not elected: {why}. vnode doctor names the cure")

        if trial.refused:
            self._tell(f"no trial pod could be created in {trial.refused}")
        else:
            self._tell("a trial pod was elected (and not kept)")
