"""Defines which ClusterProfiles the agent trusts, and what it may run to get at their clusters.

All of that is up to the operator: a profile names providers and never commands. The fields of a
provider are those of the file that other consumers of the inventory have.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from vnode.api.errors import ConfigError
from vnode.kube import exec_plugins

_API_VERSIONS = Literal["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]
_OPTION: Final = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]*")
_HOST: Final = re.compile(r"(\*\.)?[A-Za-z0-9._:-]+")


class ExecVariable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variable in the environment of a plugin."""

    name: str
    value: str


class ExecConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The exec plugin of a provider."""

    command: str
    api_version: _API_VERSIONS = "client.authentication.k8s.io/v1"
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    provide_cluster_info: bool = False
    """Whether the plugin is shown the profile's server, CA and configuration."""
    interactive_mode: Literal["Never", "IfAvailable"] = "Never"
    """For files of others: no plugin gets a terminal."""
    install_hint: str = ""


class AccessProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to get at clusters, by the name that profiles have for it."""

    name: str
    exec_config: ExecConfig = msgspec.field(name="execConfig")
    args_policy: Literal["Ignore", "Append"] = msgspec.field(
        name="profileSourcedCLIArgsPolicy", default="Ignore"
    )
    """Whether arguments that a profile has are appended to those here."""
    arguments: tuple[str, ...] = msgspec.field(name="profileSourcedCLIArgs", default=())
    """Options, such as `--tenant`, that a profile may give by that policy, each with a value."""
    env_policy: Literal["Ignore", "AppendIfNotExists", "Replace"] = msgspec.field(
        name="profileSourcedEnvVarsPolicy", default="Ignore"
    )
    """Whether variables that a profile has are set too, and whether they win."""
    variables: tuple[str, ...] = msgspec.field(name="profileSourcedEnvVars", default=())
    """Names of the variables that a profile may set by that policy."""
    servers: tuple[str, ...] = ()
    """Hosts that this provider's credentials may be sent to, `*.` for all of a domain; empty: any
    that a believed profile names."""

    def may_reach(self, host: str) -> bool:
        """Tell whether the provider's credentials may be sent to that host."""
        return not self.servers or any(_fits(pattern, host) for pattern in self.servers)


class InventoryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How ClusterProfiles are used; without providers none is."""

    namespaces: tuple[str, ...] = ()
    """Namespaces whose profiles are believed, `*` for all: who writes a profile there chooses the
    server to which a provider's credentials are sent."""
    providers: tuple[AccessProvider, ...] = ()
    """In order of preference."""
    managed_cluster_taints: bool = msgspec.field(name="managedClusterTaints", default=False)
    """Whether taints of ManagedClusters are taints of virtual nodes; the agent needs the right to
    read these, which it has not by default."""

    def trusts(self, namespace: str) -> bool:
        """Tell whether profiles of that namespace are believed."""
        return "*" in self.namespaces or namespace in self.namespaces

    def check(self) -> None:
        """Raise ConfigError, with the cure, for what cannot work."""
        if self.providers and not self.namespaces:
            raise ConfigError(
                "inventory.providers without inventory.namespaces: list the namespaces whose "
                'ClusterProfiles may choose where credentials are sent, or "*" for all'
            )

        names = [provider.name for provider in self.providers]
        if len(names) != len(set(names)):
            raise ConfigError(
                "inventory.providers has two providers of one name: remove or rename one"
            )

        for provider in self.providers:
            _check(provider)


NO_INVENTORY: Final = InventoryConfig()


def _fits(pattern: str, host: str) -> bool:
    pattern, host = pattern.lower(), host.lower()
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def _check(provider: AccessProvider) -> None:
    where = f"inventory.providers, {provider.name!r}"
    if not provider.name:
        raise ConfigError("inventory.providers has a provider without a name")

    if not provider.exec_config.command:
        raise ConfigError(f"{where}: execConfig.command is empty: name the plugin's program")

    for variable in provider.exec_config.env:
        if not variable.name or "=" in variable.name or "\0" in variable.name + variable.value:
            raise ConfigError(f"{where}: {variable.name!r} cannot be the name of a variable")

    if odd := [option for option in provider.arguments if not _OPTION.fullmatch(option)]:
        raise ConfigError(
            f"{where}: profileSourcedCLIArgs has {odd[0]!r}: write names of options, such as "
            "--tenant"
        )

    exec_plugins.check_list(provider.variables, f"{where}: profileSourcedEnvVars")
    if wrong := [pattern for pattern in provider.servers if not _HOST.fullmatch(pattern)]:
        raise ConfigError(
            f"{where}: servers has {wrong[0]!r}: write a host such as c2.example.com, without "
            "https:// and port, or *.example.com"
        )
