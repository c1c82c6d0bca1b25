"""Finds out how a ClusterProfile's cluster is reached: where, and by which plugin. No I/O.

The author of a profile chooses where credentials of the operator's plugins are sent, and is
believed only in the namespaces that the operator lists. A profile never names a command or a file;
arguments and variables of it count only if the provider's policy says so and lists them by name,
for this profile alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from vnode.api import enumeration, objects
from vnode.api.objects import Object
from vnode.kube import endpoint, exec_credentials
from vnode.kube.endpoint import Endpoint
from vnode.kube.exec_credentials import ExecCredential, ExecSpec
from vnode.kube.kubeconfig import FieldError
from vnode.targets.profiles import refusals
from vnode.targets.profiles.config import AccessProvider, InventoryConfig
from vnode.targets.profiles.refusals import ProfileRefused, ProfileUnavailable

ARGS: Final = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
VARIABLES: Final = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
_MOST: Final = 64  # arguments or variables of a profile
_LONGEST: Final = 4_096  # characters of one of them
_LARGEST: Final = 16_384  # characters of the configuration that the plugin is shown
_SHOWN: Final = 5  # names of providers in a message
_TAKEN: Final = ("server", "certificate-authority-data", "tls-server-name")
_REFUSED: Final = {
    "certificate-authority": "names a file: write certificate-authority-data",
    "insecure-skip-tls-verify": "would send credentials to any server: remove it, and write "
    "certificate-authority-data",
    "proxy-url": "cannot be used by vnode: write a server that is reached without a proxy",
}
"""Fields of a profile's cluster that are refused, and why."""


class ProfileAccess(NamedTuple):
    """The provider by which a cluster is reached, the cluster as a kubeconfig has it, the plugin.

    Equal values need no new connection.
    """

    provider: str
    cluster: Mapping[str, Any]
    plugin: ExecSpec


def resolve(
    profile: Object, config: InventoryConfig, environment: Mapping[str, str]
) -> ProfileAccess:
    """Return how a profile's cluster is reached; `environment` is what all plugins get.

    ProfileRefused says what is wrong, and whose it is to change.
    """
    name, namespace = f"ClusterProfile {objects.key(profile)}", objects.namespace(profile)
    if not config.trusts(namespace):
        raise ProfileRefused(
            refusals.NOT_BELIEVED,
            f"{name} is not trusted: a profile chooses where credentials are sent, and the "
            f"agent's configuration (inventory.namespaces) does not list {namespace}",
        )

    found = offered(profile)
    if not found:
        manager = (objects.spec(profile).get("clusterManager") or {}).get("name") or "none"
        raise ProfileRefused(
            refusals.NO_ACCESS,
            f"{name} offers no access: its cluster manager ({manager}) has to write "
            "status.accessProviders",
        )

    provider = next((known for known in config.providers if known.name in found), None)
    if provider is None:
        raise ProfileRefused(
            refusals.UNKNOWN_PROVIDER,
            f"{name} offers access by {_listed(found)}, and the agent's configuration "
            f"(inventory.providers) has {_listed(known.name for known in config.providers)}: add "
            "one of the former there",
        )

    what = f"provider {provider.name!r} of {name}"
    cluster = found[provider.name].get("cluster")
    checked = _checked(cluster if isinstance(cluster, dict) else {}, provider, what)
    return ProfileAccess(provider.name, checked, _plugin(provider, checked, environment, what))


def endpoint_of(access: ProfileAccess, credential: ExecCredential) -> Endpoint:
    """Return the endpoint that an access and a credential make, checked as a kubeconfig's.

    ProfileUnavailable if the plugin gave a certificate that is none.
    """
    user: Object = {"token": credential.token} if credential.token else {}
    if credential.certificate:
        user["client-certificate-data"] = _encoded(credential.certificate)
        user["client-key-data"] = _encoded(credential.key)

    cluster = {name: access.cluster[name] for name in _TAKEN if name in access.cluster}
    try:
        return endpoint.of(cluster, user)
    except FieldError as error:
        raise ProfileUnavailable(
            refusals.PLUGIN_FAILED,
            f"exec plugin {access.plugin.command!r} gave credentials of no use: its "
            f"{error.problem}",
        ) from error


def _encoded(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def offered(profile: Object) -> dict[str, Object]:
    """Return the access providers of a profile by name; of two lists the newer one wins."""
    found: dict[str, Object] = {}
    for field in ("credentialProviders", "accessProviders"):
        listed = objects.status(profile).get(field)
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                found[entry["name"]] = entry

    return found


def _listed(names: Any) -> str:
    return enumeration.some([repr(name[:63]) for name in sorted(map(str, names))], _SHOWN) or "none"


def _checked(cluster: Mapping[str, Any], provider: AccessProvider, what: str) -> dict[str, Any]:
    """Return the fields of a cluster that are used."""
    if not cluster.get("server"):
        raise ProfileRefused(
            refusals.NO_ACCESS, f"{what} has no cluster.server: its cluster manager has to write it"
        )

    for field, why in _REFUSED.items():
        if cluster.get(field):
            raise ProfileRefused(refusals.REFUSED, f"{what}: cluster.{field} {why}")

    if not str(cluster["server"]).startswith("https://"):
        raise ProfileRefused(refusals.REFUSED, f"{what}: cluster.server must begin with https://")

    taken = {field: cluster[field] for field in (*_TAKEN, "extensions") if cluster.get(field)}
    try:
        endpoint.of(taken, {})
    except FieldError as error:
        raise ProfileRefused(refusals.REFUSED, f"{what}: its {error.problem}") from error

    host = urlsplit(str(cluster["server"])).hostname or ""
    if not provider.may_reach(host):
        raise ProfileRefused(
            refusals.REFUSED,
            f"{what} leads to {host}, and the agent's configuration (servers of that provider) "
            "does not list that host",
        )

    return taken


def _plugin(
    provider: AccessProvider, cluster: Mapping[str, Any], environment: Mapping[str, str], what: str
) -> ExecSpec:
    config = provider.exec_config
    args, own = list(config.args), {entry.name: entry.value for entry in config.env}
    if provider.args_policy == "Append":
        args += _args(exec_credentials.extension(cluster, ARGS), provider, what)

    if provider.env_policy != "Ignore":
        given = _variables(exec_credentials.extension(cluster, VARIABLES), provider, what)
        own = {**own, **given} if provider.env_policy == "Replace" else {**given, **own}

    shown = exec_credentials.cluster_info(cluster) if config.provide_cluster_info else None
    if shown is not None and len(json.dumps(shown.get("config"))) > _LARGEST:
        raise ProfileRefused(
            refusals.REFUSED,
            f"{what}: extension {exec_credentials.EXTENSION} has more than {_LARGEST} characters",
        )

    return ExecSpec(
        config.command,
        tuple(args),
        {**environment, **own},
        config.api_version,
        shown,
        config.install_hint[:200],
        provider=provider.name,
    )


def _args(value: Any, provider: AccessProvider, what: str) -> list[str]:
    """Return the words of a profile: listed options, each with its value, as one word or two."""
    listed = value if value is not None else []
    if not isinstance(listed, list) or len(listed) > _MOST or not all(map(_is_word, listed)):
        raise ProfileRefused(
            refusals.REFUSED, f"{what}: extension {ARGS} must be a list of strings"
        )

    words = iter(listed)
    for word in words:
        option, given, _value = word.partition("=")
        if option not in provider.arguments:
            raise ProfileRefused(
                refusals.REFUSED,
                f"{what}: extension {ARGS} has {word[:63]!r}, which is no option that is listed in "
                "the agent's configuration (profileSourcedCLIArgs of that provider)",
            )

        if not given and next(words, "-").startswith("-"):
            raise ProfileRefused(
                refusals.REFUSED, f"{what}: extension {ARGS} has {option} without a value"
            )

    return listed


def _variables(value: Any, provider: AccessProvider, what: str) -> dict[str, str]:
    given = value if value is not None else {}
    if (
        not isinstance(given, dict)
        or len(given) > _MOST
        or not all(_is_word(name) and "=" not in name and name for name in given)
        or not all(map(_is_word, given.values()))
    ):
        raise ProfileRefused(
            refusals.REFUSED, f"{what}: extension {VARIABLES} must map names to strings"
        )

    if wrong := [name for name in given if name not in provider.variables]:
        raise ProfileRefused(
            refusals.REFUSED,
            f"{what}: extension {VARIABLES} sets {wrong[0]}, which is not listed in the agent's "
            "configuration (profileSourcedEnvVars of that provider)",
        )

    return given


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST and "\0" not in value
