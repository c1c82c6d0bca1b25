"""Reads how each Target is reached: the endpoint, and what becomes of the credentials.

All of it comes from the Target and its Secret, or its ClusterProfile and what the profile's plugin
has given, as they are now, each time that one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube import endpoint as endpoints
from vnode.kube import exec_credentials
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint, Trust
from vnode.kube.kubeconfig import Kubeconfig
from vnode.runtime.link import UNDESCRIBED, ClusterDescription
from vnode.runtime.supervisor import Supervisor
from vnode.targets import expiry, fingerprints, secrets, token_renewal
from vnode.targets.expiry import CredentialExpiry, Renewal
from vnode.targets.fingerprints import Fingerprint
from vnode.targets.model import SecretReference, TargetSpec
from vnode.targets.named_objects import NamedObjects
from vnode.targets.profiles import describing, refusals, resolving
from vnode.targets.profiles.cluster_profiles import ClusterProfiles
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.profiles.plugin_runs import PluginRuns
from vnode.targets.profiles.profile_references import ProfileReference
from vnode.targets.profiles.refusals import ProfileRefused, ProfileUnavailable

_REMEMBERED: Final = (refusals.NOT_FOUND, refusals.NOT_SERVED)
"""Why a profile cannot be read that a Target of a set still goes by."""


class TargetAccess(NamedTuple):
    """How to reach a target, when its credentials end, and their renewal, None if nobody sees to
    it; what an inventory says of it, and of its control plane, None if nothing."""

    endpoint: Endpoint
    fingerprint: Fingerprint
    end: CredentialExpiry | None = None
    renewal: Renewal | None = None
    description: ClusterDescription = UNDESCRIBED
    control_plane: Object | None = None


class StoredKubeconfig(NamedTuple):
    """The Secret of a Target, what it holds for the Target, and the server that it names."""

    reference: SecretReference
    secret: Object
    kubeconfig: Kubeconfig
    endpoint: Endpoint


class _Watches(NamedTuple):
    """What is watched of the objects that Targets name, and the plugins that run."""

    secrets: NamedObjects
    profiles: ClusterProfiles
    plugins: PluginRuns


class TargetAccesses:
    """Reads Targets' Secrets and ClusterProfiles, once it may `watch` them.

    `stored` has what each Target's Secret held when it was last read, if it could be used;
    `changed` is called with the key then.
    """

    def __init__(
        self,
        local: Client,
        trust: Callable[[TargetKey], Trust],
        inventory: InventoryConfig,
        clock: Clock,
        namespace_labels: Callable[[str], Mapping[str, str]],
    ) -> None:
        self.stored: dict[TargetKey, StoredKubeconfig] = {}
        self.changed: Listeners[TargetKey] = Listeners()
        self._local = local
        self._trust = trust
        self._inventory = inventory
        self._clock = clock
        self._namespace_labels = namespace_labels
        self._environment = exec_credentials.inherited()
        self._watches: _Watches | None = None

    def watch(self, tasks: Supervisor, changed: Callable[[TargetKey], None]) -> None:
        """Watch what Targets name, and run plugins; call `changed` for Targets that may differ."""
        self._watches = _Watches(
            NamedObjects(self._local, kinds.SECRETS, tasks.keyed(), changed),
            ClusterProfiles(self._local, tasks.keyed(), changed),
            PluginRuns(tasks.keyed(), changed, self._clock),
        )

    async def read(self, spec: TargetSpec) -> TargetAccess:
        """Return how to reach a target; ConfigError and Unreachable say why that is not known."""
        self._use(spec.key, spec.secret, spec.profile)
        if spec.profile is not None:
            self._keep(spec.key, None)
            return await self._read_profile(spec, spec.profile)

        if spec.secret is not None:
            return await self._read_secret(spec, spec.secret)

        self._keep(spec.key, None)
        return TargetAccess(self._local.endpoint, fingerprints.of_self(spec))

    def forget(self, key: TargetKey) -> None:
        """Stop to watch what a Target names that has no connection any more."""
        self._keep(key, None)
        if self._watches is not None:
            self._use(key, None, None)

    @property
    def _running(self) -> _Watches:
        assert self._watches is not None, "watch first"
        return self._watches

    def _use(
        self, key: TargetKey, secret: SecretReference | None, profile: ProfileReference | None
    ) -> None:
        watches = self._running
        watches.secrets.use(key, secret.object_key if secret else None)
        watches.profiles.use(key, profile)
        if profile is None:
            watches.plugins.forget(key)

    async def _read_secret(self, spec: TargetSpec, reference: SecretReference) -> TargetAccess:
        stored = None
        try:
            secret = await self._running.secrets.read(reference.object_key)
            kubeconfig = secrets.kubeconfig(secret, reference)
            endpoint = endpoints.from_kubeconfig(kubeconfig, trust=self._trust(spec.key))
            stored = StoredKubeconfig(reference, secret or {}, kubeconfig, endpoint)
        finally:
            self._keep(spec.key, stored)

        return TargetAccess(
            endpoint,
            fingerprints.of_kubeconfig(spec, kubeconfig),
            expiry.of_kubeconfig(kubeconfig),
            token_renewal.plan(stored.secret, kubeconfig),
        )

    async def _read_profile(self, spec: TargetSpec, reference: ProfileReference) -> TargetAccess:
        """Return how to reach the cluster of a profile, by the last answer of its plugin."""
        try:
            profile = await self._profile(spec, reference)
            access = resolving.resolve(profile, self._inventory, self._environment)
        except ProfileRefused:
            self._running.plugins.forget(spec.key)
            raise

        credentials = self._running.plugins.use(spec.key, access.plugin)
        found, failure = credentials.lasting, credentials.failure
        if found is None:
            raise ProfileUnavailable(
                refusals.PLUGIN_FAILED if failure else refusals.PLUGIN_RUNS,
                failure or f"asking exec plugin {access.plugin.command!r} for credentials",
            )

        endpoint = resolving.endpoint_of(access, found)
        plugin = (access.provider, access.plugin.command, access.plugin.args)
        end = CredentialExpiry("credential", found.ends) if found.ends and failure else None
        return TargetAccess(
            replace(endpoint, authorization=credentials),
            fingerprints.of_profile(spec, plugin, access.cluster, found.certificate, found.token),
            end,
            Renewal(None, failure) if failure else None,
            describing.describe(profile, self._namespace_labels(reference.namespace)),
            objects.condition(profile, describing.CONTROL_PLANE),
        )

    async def _profile(self, spec: TargetSpec, reference: ProfileReference) -> Object:
        """Return a profile; one that is gone, by itself or with its kind, as a set remembers it.

        A set removes in order, and without the kind not at all: what it keeps needs a connection,
        also in an agent that starts now and has none that could go on.
        """
        try:
            return await self._running.profiles.read(reference)
        except (ProfileRefused, ProfileUnavailable) as refusal:
            if refusal.reason not in _REMEMBERED or spec.last_profile is None:
                raise

            return spec.last_profile

    def _keep(self, key: TargetKey, stored: StoredKubeconfig | None) -> None:
        self.stored.pop(key, None)
        if stored is not None:
            self.stored[key] = stored

        self.changed.call(key)
