"""Defines the agent's configuration file: every field has a safe default, so no file is needed.

    apiVersion: vnode.dev/v1alpha1
    kind: AgentConfiguration
    candidates: {parallel: 1, stagger: 2}
    execCommands: [aws]

Decoded strictly: an unknown field, or a value of the wrong type, is an error that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import yaml

from vnode.api import names, rows, rows_text, strict_decoding
from vnode.api.errors import ConfigError
from vnode.api.target_key import TargetKey
from vnode.following.config import FollowingConfig
from vnode.gangs.config import GangsConfig
from vnode.issuing.config import IssuingConfig
from vnode.kube import exec_plugins
from vnode.kube.endpoint import Trust
from vnode.kubelet import server
from vnode.kueue.config import KueueConfig
from vnode.planning import kept_together
from vnode.pods.event_record import DelegateEventsMode
from vnode.pods.source.candidates import CandidateSettings
from vnode.runtime.certs import kubelet_serving
from vnode.runtime.leader import LeaseTiming
from vnode.scheduling.config import SchedulingConfig
from vnode.scores.config import ScoresConfig
from vnode.targets.profiles.config import InventoryConfig
from vnode.telemetry.audit_log import STDERR
from vnode.telemetry.tracing import TracingConfig

API_VERSION: Final = "vnode.dev/v1alpha1"
KIND: Final = "AgentConfiguration"
_DAY: Final = 24 * 3600


class Ports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ports on which an agent listens."""

    webhook: int = 9443
    extender: int = 9444
    streams: int = 9448
    """0: sources are told by their PodChaperons alone."""
    health: int = 8080
    kubelet: int = 10250
    """The first of as many ports as there are virtual nodes."""
    dashboard: int = 0
    """0: no dashboard is served."""


class AgentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The fields of the file; address and identity are flags of `vnode agent`."""

    apiVersion: Literal["vnode.dev/v1alpha1"] = API_VERSION
    kind: Literal["AgentConfiguration"] = KIND
    scheduling: SchedulingConfig = SchedulingConfig()
    candidates: CandidateSettings = CandidateSettings()
    following: FollowingConfig = FollowingConfig()
    delegate_events: DelegateEventsMode = "Summary"
    """Which Events of delegates are told on their proxies."""
    ports: Ports = Ports()
    kubelet_certificate: kubelet_serving.KubeletCertificateConfig = (
        kubelet_serving.KubeletCertificateConfig()
    )
    serving_names: tuple[str, ...] = ()
    """Further names and addresses in the certificates of webhook and extender, as of a load
    balancer."""
    targets_per_namespace: int = 20
    """How many Targets of one namespace are connected; ClusterTargets do not count."""
    exec_commands: tuple[str, ...] = ()
    """Commands that kubeconfigs of ClusterTargets may run as exec credential plugins."""
    namespaced_exec_commands: tuple[str, ...] = ()
    """Likewise those of Targets, whose arguments users of a namespace choose."""
    namespaced_exec_variables: tuple[str, ...] = ()
    """Variables that these may set for their plugins."""
    inventory: InventoryConfig = InventoryConfig()
    """How Targets get at the clusters of ClusterProfiles."""
    audit_log: str = STDERR
    """Where the lines go that say on whose behalf the agent acts: a file, or `off`."""
    tracing: TracingConfig = TracingConfig()
    """Where spans of pods' ways are sent; nowhere by default."""
    kueue: KueueConfig = KueueConfig()
    """What is done for a Kueue of this cluster."""
    scores: ScoresConfig = ScoresConfig()
    """What is published about targets, as scores."""
    model_labels: tuple[str, ...] = rows.MODEL_LABELS
    """The labels of nodes by which the ClusterSummary tells models of accelerators apart."""
    gangs: GangsConfig = GangsConfig()
    """How pods that start together are placed."""
    keep_together: tuple[str, ...] = kept_together.LABELS
    """The labels of pods whose values name groups that are kept in one target."""
    stream_grace_period_seconds: int = server.STREAM_GRACE
    """How long an agent that is asked to end waits for open logs, exec, attach, port-forward."""
    namespaces: tuple[str, ...] = ()
    """The namespaces to which the agent is held, and outside of which it needs no rights; none
    means all."""
    require_namespace_label: bool = True
    """Whether only pods of namespaces labelled `multicluster-scheduler: enabled` go to targets."""
    trust_unsigned_manifests: bool = False
    """Whether a `sourcepod-manifest` without a signature is believed, as Admiralty writes it."""
    leader_election: bool = True
    lease: LeaseTiming = LeaseTiming()
    """Of the leader, when `leader_election` is on."""
    source_controller: bool = True
    """Whether Sources of this cluster are served; False where the agent lacks the permissions."""
    issuing: IssuingConfig = IssuingConfig()
    """Whether tokens of targets are issued to users of this cluster, by AuthTokenRequests."""

    def trust_in(self, target: TargetKey) -> Trust:
        """Return what the kubeconfig of a Target or ClusterTarget may make the agent do."""
        if not target.namespace:
            return Trust(commands=frozenset(self.exec_commands))

        commands = frozenset(self.namespaced_exec_commands)
        variables = frozenset(self.namespaced_exec_variables)
        return Trust(commands=commands, setting="namespacedExecCommands", variables=variables)

    def check(self) -> None:
        """Raise ConfigError, with the cure, if a value is out of bounds or contradicts another."""
        self.scheduling.queue.check()
        self.candidates.check()
        self.kubelet_certificate.check()
        self.lease.check()
        self.inventory.check()
        self.issuing.check()
        self.scores.check()
        self.kueue.check()
        self.gangs.check()
        self.tracing.check()
        if not self.audit_log:
            raise ConfigError("auditLog is empty: it is stderr, off, or the path of a file")

        exec_plugins.check_list(self.namespaced_exec_variables, "namespacedExecVariables")
        self._check_namespaces()
        self._check_ports()
        _check_labels(self.model_labels, "modelLabels", rows_text.MOST_KEYS)
        _check_labels(self.keep_together, "keepTogether", kept_together.MOST)
        if self.targets_per_namespace < 0:
            raise ConfigError("targetsPerNamespace must not be negative; 0 connects no Target")

        if not 0 <= self.stream_grace_period_seconds <= _DAY:
            raise ConfigError(f"streamGracePeriodSeconds must be from 0 to {_DAY}, which is a day")

    def _check_namespaces(self) -> None:
        for name in self.namespaces:
            if not names.LABEL.fullmatch(name):
                raise ConfigError(f"namespaces has {name!r}, which cannot be the name of one")

        if len(set(self.namespaces)) < len(self.namespaces):
            raise ConfigError("namespaces names one of them twice")

    def _check_ports(self) -> None:
        used: dict[int, str] = {}
        for name, port in msgspec.structs.asdict(self.ports).items():
            if port and port in used:
                raise ConfigError(
                    f"ports.{used[port]} and ports.{name} are both {port}: give each its own"
                )

            used[port] = name


def load(path: Path | None) -> AgentConfig:
    """Read the configuration from a YAML file, or take the defaults without one.

    Raises ConfigError, which names the cure.
    """
    if path is None:
        return AgentConfig()

    try:
        raw: Any = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read configuration {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration {path} is not YAML: {error}") from error

    config = strict_decoding.decode(AgentConfig, raw or {}, str(path))
    config.check()
    return config


def _check_labels(labels: Sequence[str], setting: str, most: int) -> None:
    for key in labels:
        if not names.QUALIFIED_NAME.fullmatch(key):
            raise ConfigError(f"{setting} has {key!r}, which cannot be the key of a label")

    if len(labels) > most:
        raise ConfigError(f"{setting} has over {most} keys: name fewer")

    if len(set(labels)) < len(labels):
        raise ConfigError(f"{setting} names a key twice")
