"""Reads the facts of a Target's ClusterProfile, and tries its plugin with the agent's
configuration."""

from __future__ import annotations

from dataclasses import replace

from vnode.api import kinds
from vnode.api.errors import ConfigError, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.cli.doctor.facts import ProfileFacts
from vnode.kube import exec_credentials, exec_runs
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint
from vnode.targets.profiles import resolving
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.profiles.profile_references import ProfileReference


async def read(
    client: Client,
    reference: ProfileReference,
    config: InventoryConfig | None,
    last: Object | None = None,
) -> tuple[ProfileFacts, Endpoint | None]:
    """Return the facts, and the endpoint if a plugin gave credentials for one.

    A profile that is gone is as a set remembers it, `last`: the agent goes by that, too.
    """
    facts = ProfileFacts(reference)
    try:
        profile = await client.get(kinds.CLUSTER_PROFILES, reference.name, reference.namespace)
    except NotFound as error:
        what = f"there is no ClusterProfile {reference.object_key}"
        if f'"{reference.name}"' not in error.message:  # the kind is missing, not the profile
            what = "this cluster does not serve ClusterProfiles: install the inventory's CRD"

        facts = replace(facts, failure=what)
        if last is None:
            return facts, None

        profile = last
    except VnodeError as error:
        return replace(facts, failure=f"it cannot be read: {error}"), None

    facts = replace(facts, profile=profile)
    if config is None:
        return facts, None

    try:
        access = resolving.resolve(profile, config, exec_credentials.inherited())
    except ConfigError as error:
        return replace(facts, refusal=str(error)), None

    facts = replace(facts, provider=access.provider)
    try:
        found = await exec_credentials.ask(access.plugin, exec_runs.shared())
        return facts, resolving.endpoint_of(access, found)
    except VnodeError as error:
        return replace(facts, plugin_failure=str(error)), None
