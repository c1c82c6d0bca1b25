"""Decodes the `scheduling` section of the agent's configuration file, strictly.

    profile:
      plugins:
        enabled: [{name: NodeResourcesFit, weight: 2}, {name: CheapestTarget}]
        disabled: [{name: EvenSpread}]
      pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated}}
    queue: {podMaxBackoffSeconds: 30}

Fields have the names of a KubeSchedulerConfiguration. An unknown field is an error that lists the
known ones.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from vnode.api import strict_decoding
from vnode.api.errors import ConfigError
from vnode.scheduling import queue
from vnode.scheduling.queue import QueueSettings

S = TypeVar("S", bound=msgspec.Struct)


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of all sections: camelCase names, unknown fields refused."""


class EnabledPlugin(_Section, frozen=True):
    """A plugin to add, or a default one with another weight."""

    name: str
    weight: int | None = None
    """Factor of its Score, from 0 (not scored); by default as in the default profile, or 1."""


class DisabledPlugin(_Section, frozen=True):
    """A default plugin to leave out; "*" leaves out all of them."""

    name: str


class Plugins(_Section, frozen=True):
    """Changes to the default set of plugins."""

    enabled: list[EnabledPlugin] = []
    disabled: list[DisabledPlugin] = []


class PluginConfig(_Section, frozen=True):
    """The arguments of one plugin."""

    name: str
    args: dict[str, Any] = {}


class Profile(_Section, frozen=True):
    """Which plugins schedule proxy pods, and how."""

    plugins: Plugins = Plugins()
    plugin_config: list[PluginConfig] = []


class Queue(_Section, frozen=True):
    """Times of the scheduling queue."""

    pod_initial_backoff_seconds: float = queue.INITIAL_BACKOFF
    pod_max_backoff_seconds: float = queue.MAX_BACKOFF
    pod_max_in_unschedulable_pods_seconds: float = queue.MAX_UNSCHEDULABLE

    def check(self) -> None:
        """Raise ConfigError if the times contradict each other."""
        if not 0 < self.pod_initial_backoff_seconds <= self.pod_max_backoff_seconds:
            raise ConfigError(
                "scheduling.queue: podInitialBackoffSeconds must be above 0 and not above "
                "podMaxBackoffSeconds"
            )

        if self.pod_max_in_unschedulable_pods_seconds <= 0:
            raise ConfigError("scheduling.queue: podMaxInUnschedulablePodsSeconds must be above 0")

    def settings(self) -> QueueSettings:
        """Return the times as the queue takes them."""
        return QueueSettings(
            self.pod_initial_backoff_seconds,
            self.pod_max_backoff_seconds,
            self.pod_max_in_unschedulable_pods_seconds,
        )


class SchedulingConfig(_Section, frozen=True):
    """The whole section."""

    profile: Profile = Profile()
    queue: Queue = Queue()


def load(section: Any) -> SchedulingConfig:
    """Decode the section as YAML gave it; None means all defaults. ConfigError names the cure."""
    config = strict_decoding.decode(SchedulingConfig, section or {}, "scheduling")
    config.queue.check()
    return config
