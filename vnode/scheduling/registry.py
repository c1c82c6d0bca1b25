"""Builds a Framework from the plugin names in a configuration.

Plugins come from two places: those that the caller hands over (the package `scheduler_plugins`, by
the command line), and the installed packages' entry points in the group `vnode.scheduler_plugins`,
`Name = module:Class`. The latter are imported only if a profile enables them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Final

from vnode.api import strict_decoding
from vnode.api.errors import ConfigError
from vnode.scheduling.config import Profile
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle, Plugin

ENTRY_POINT_GROUP: Final = "vnode.scheduler_plugins"


class Registry:
    """Finds the plugins that can be enabled, by name."""

    def __init__(
        self, builtin: Iterable[type[Plugin]], installed: Iterable[metadata.EntryPoint] = ()
    ) -> None:
        self._classes = {plugin.NAME: plugin for plugin in builtin}
        self._installed = {entry.name: entry for entry in installed}

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._classes.keys() | self._installed.keys())

    def get(self, name: str) -> type[Plugin]:
        """Return the class of that name. ConfigError if there is none, or it cannot be imported."""
        if name not in self._classes:
            self._classes[name] = self._load(name)

        return self._classes[name]

    def _load(self, name: str) -> type[Plugin]:
        entry = self._installed.get(name)
        if entry is None:
            raise ConfigError(
                f'unknown scheduler plugin "{name}"; known are: {", ".join(self.names())}'
            )

        try:
            loaded = entry.load()
        except Exception as error:
            raise ConfigError(
                f'scheduler plugin "{name}" cannot be imported from {entry.value}: {error!r}'
            ) from error

        if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
            raise ConfigError(
                f'scheduler plugin "{name}": {entry.value} must be a subclass of '
                "vnode.scheduling.plugin.Plugin"
            )

        if name != loaded.NAME:
            raise ConfigError(
                f'scheduler plugin "{name}": its class says NAME = "{loaded.NAME}"; the entry '
                "point must have the same name"
            )

        return loaded


def installed() -> list[metadata.EntryPoint]:
    """Return the entry points of all packages installed here."""
    return list(metadata.entry_points(group=ENTRY_POINT_GROUP))


def build(
    profile: Profile,
    registry: Registry,
    defaults: Mapping[str, int],
    handle: Handle,
) -> Framework:
    """Build the framework of a profile; `defaults` are the default plugins and their weights.

    ConfigError if the profile names a plugin that does not exist, or arguments do not decode.
    """
    weights = _weights(profile, registry, defaults)
    arguments = {given.name: given.args for given in profile.plugin_config}
    for name in arguments.keys() - weights.keys():
        known = ", ".join(weights)
        raise ConfigError(f'pluginConfig: "{name}" is not enabled; enabled are: {known}')

    plugins: list[tuple[Plugin, int]] = []
    for name, weight in weights.items():
        plugin = registry.get(name)
        args = strict_decoding.decode(plugin.Args, arguments.get(name, {}), f"arguments of {name}")
        plugins.append((plugin(args, handle), weight))

    return Framework(plugins, handle.waiting, handle.clock)


def _weights(profile: Profile, registry: Registry, defaults: Mapping[str, int]) -> dict[str, int]:
    """Return the enabled plugins in order, with their weights."""
    disabled = {plugin.name for plugin in profile.plugins.disabled}
    for name in sorted(disabled - {"*"}):
        registry.get(name)

    weights = {} if "*" in disabled else {n: w for n, w in defaults.items() if n not in disabled}
    for enabled in profile.plugins.enabled:
        registry.get(enabled.name)
        usual = weights.get(enabled.name, defaults.get(enabled.name, 1))
        weight = usual if enabled.weight is None else enabled.weight
        if weight < 0:
            raise ConfigError(f"plugin {enabled.name}: weight {weight} must be 0 or more")

        weights[enabled.name] = weight

    return weights
