"""Serves the webhook in a process of its own, so that no work of the agent delays the API server.

Pods of all labelled namespaces wait for their reviews, whether or not vnode has to do with them. So
this process does nothing else: it has a connection and watches of its own, of what a review takes
to know (namespaces, Targets, placement policies, the key), and serves at the paths of the webhook
configuration. The agent starts it, and again if it ends (`vnode.runtime.child_process`).
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from vnode.api import cures, keys, kinds, objects
from vnode.api.authors import RecordedAuthors
from vnode.api.clock import SystemClock
from vnode.api.errors import Unreachable
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.issuing import rights
from vnode.issuing.config import IssuingConfig
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.server_clock import ServerClock
from vnode.placement.policies.collection import PlacementPolicies
from vnode.runtime import memory, startup
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.issued import ServingCertificate
from vnode.runtime.manifest_key import ManifestKey
from vnode.runtime.serving import Server
from vnode.runtime.supervisor import Supervisor, supervise
from vnode.targets.target_lister import TargetLister
from vnode.telemetry import metrics, turn_waits
from vnode.telemetry.audit_log import NOWHERE
from vnode.webhook import turns
from vnode.webhook.authors import AuthorWebhook
from vnode.webhook.paths import ServedPaths
from vnode.webhook.server import LIMITS, Webhook
from vnode.webhook.turns import ReviewTurns

POLICIES_AWAITED: Final = 30.0
"""Seconds for which reviews are not answered, at most, because policies are not known."""
_KEPT: Final = ("name", "uid", "resourceVersion")
_REPORTED: Final = 5.0  # seconds between two reports


class AdmissionSettings(msgspec.Struct, frozen=True):
    """What the agent tells the process."""

    namespace: str
    address: str
    port: int
    names: tuple[str, ...] = ()
    """Further names in the certificate."""
    trust_unsigned_manifests: bool = False
    targets_per_namespace: int | None = None
    issuing: IssuingConfig = IssuingConfig()
    audit_log: str = NOWHERE
    namespaces: tuple[str, ...] = ()
    """To which the agent is held; none means all."""


class AdmissionReport(msgspec.Struct, frozen=True):
    """What the process tells the agent: numbers for the metrics, and that it serves."""

    admissions: dict[str, float]  # by result
    certificate_ends: float  # Unix time
    cpu_seconds: float
    resident_bytes: int
    waits: dict[str, float] = {}
    """How long reviews have waited for their turn, by namespace, as `TurnWaits.shown`."""


class AdmissionServer:
    """What one process serves; `report` is called when it does, and again every five seconds."""

    def __init__(
        self,
        client: Client,
        settings: AdmissionSettings,
        report: Callable[[AdmissionReport], None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._report = report
        self._clock = ServerClock(SystemClock(), client.skew)
        self._authority = Authority(client, settings.namespace, clock=self._clock)
        self._key = ManifestKey(client, settings.namespace, now=self._clock.now)
        self._namespaces = Informer(client, kinds.NAMESPACES, trim=_for_election)
        self._namespaces.subscribe_by_key(client.scope.retry)
        self._targets = TargetLister(client, limit=settings.targets_per_namespace)
        self._policies = PlacementPolicies(client, self._targets, self._clock)
        self._paths = ServedPaths(client, lambda: self._key.key, self._clock)

    async def run(self) -> None:
        """Serve until cancelled."""
        for load in (self._authority.load, self._key.load):
            await startup.wait_for_answer(load, self._clock)

        async with supervise() as tasks:
            for name, run in (
                ("authority", self._authority.run),
                ("manifest-key", self._key.run),
                ("namespaces", self._namespaces.run),
                ("watch-targets", self._targets.run),
                ("placement-policies", self._policies.run),
                ("webhook-paths", self._paths.run),
            ):
                tasks.start(run(), name)

            await self._know()
            memory.freeze()
            tasks.start(memory.give_back(self._clock), "memory")
            await self._serve(tasks)
            while True:
                self._report(self._numbers())
                await asyncio.sleep(_REPORTED)

    async def _know(self) -> None:
        """Return when reviews can be answered: else pods would be admitted as if there were none.

        A cluster may lack the CRDs of policies.
        """
        await self._namespaces.synced.wait()
        await self._targets.wait_synced()
        try:
            async with asyncio.timeout(POLICIES_AWAITED):
                for informer in self._policies.informers:
                    await informer.answered.wait()
        except TimeoutError:
            return

    async def _serve(self, tasks: Supervisor) -> None:
        settings = self._settings
        hosts = (settings.address, f"vnode.{settings.namespace}.svc", *settings.names)
        certificate = ServingCertificate(self._authority, "webhook", hosts, clock=self._clock)
        server = Server(
            "webhook",
            self._webhook().app(),
            settings.address,
            settings.port,
            ssl_context=await certificate.start(),
            limits=LIMITS,
            serves=self._paths.are_served,
            turns=ReviewTurns(self._clock).take,
        )
        tasks.start(server.run(), server.name)
        tasks.start(certificate.run(), "serving-certificate")
        await server.ready.wait()

    def _webhook(self) -> Webhook:
        """Return what answers, of pods and of AuthTokenRequests."""
        key, settings = self._key, self._settings
        manifests = SavedManifests(
            lambda: key.key, trust_unsigned=settings.trust_unsigned_manifests
        )
        authors = RecordedAuthors(lambda: key.key, self._clock.now, lambda: key.authors_timed_since)
        by_authors = AuthorWebhook(authors, rights.refusal(self._client, settings.issuing))
        return Webhook(
            self._annotations_of,
            self._finalizers,
            manifests,
            self._policies,
            beside=by_authors.routes(),
            covers=self._client.scope.covers,
            clock=self._clock,
        )

    def _finalizers(self, namespace: str) -> list[str]:
        """Return the finalizers of a proxy pod; Unreachable while not all Targets or policies of
        its namespace are known, where the agent has rights in some namespaces only."""
        for informer in (self._targets.informers[0], *self._policies.informers):
            if informer.kind.namespaced and informer.lacks(namespace):
                raise Unreachable(
                    f"vnode may not list {informer.kind.plural} in namespace {namespace}: "
                    f"{cures.REPAIR}"
                )

        return self._targets.finalizers(namespace)

    async def _annotations_of(self, namespace: str) -> Mapping[str, str] | None:
        found = self._namespaces.store.get(namespace)
        return objects.annotations(found) if found is not None else None

    @staticmethod
    def _numbers() -> AdmissionReport:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return AdmissionReport(
            metrics.values_by(metrics.ADMISSIONS, "result"),
            metrics.values_by(metrics.CERTIFICATE_EXPIRY, "certificate").get("webhook", 0.0),
            used.ru_utime + used.ru_stime,
            memory.resident(),
            dict(turn_waits.of(turns.WORK).shown()),
        )


def _for_election(namespace: Object) -> Object:
    """Return of a namespace what says whether its pods are elected."""
    metadata = objects.metadata(namespace)
    kept = {field: metadata[field] for field in _KEPT if field in metadata}
    elect = {key: "" for key in objects.annotations(namespace) if key == keys.ELECT}
    return {"metadata": {**kept, "annotations": elect}}
