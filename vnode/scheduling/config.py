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

import functools
import typing
from typing import Any, TypeVar

import msgspec

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
    config = decode(SchedulingConfig, section or {}, "scheduling")
    config.queue.check()
    return config


def decode(type_: type[S], value: Any, where: str) -> S:
    """Return `value` as a `type_`, unknown fields refused; errors begin with `where`."""
    _refuse_unknown(type_, value, where)
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from error
    except UnicodeEncodeError as error:  # YAML may spell half a character
        raise ConfigError(f"{where}: has text that is no Unicode") from error


def _refuse_unknown(type_: type[msgspec.Struct], value: Any, where: str) -> None:
    """Raise ConfigError with the known fields, before msgspec raises an error that lists none."""
    if not isinstance(value, dict):
        return

    fields = _fields(type_)
    for name, content in value.items():
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise ConfigError(f'{where}: unknown field "{name}"; known are: {known}')

        for inner in (fields[name].type, *typing.get_args(fields[name].type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                for item in content if isinstance(content, list) else [content]:
                    _refuse_unknown(inner, item, f"{where}.{name}")


@functools.cache
def _fields(type_: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the fields of a Struct by their names in YAML; to find them out takes a while."""
    return {field.encode_name: field for field in msgspec.structs.fields(type_)}
