"""A cluster with vnode as Prometheus sees it: every series that a rule asks about.

`healthy` has those of two replicas and two targets; what goes wrong is written as the series that
are otherwise then, to be laid over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Series = dict[str, str]

MINUTES: Final = 120
GPU, CPU = "team-a/gpu", "team-a/cpu"
GROWS: Final = f"0+60x{MINUTES}"
_ENDS: Final = f"0+60x30 _x{MINUTES}"
FAR: Final = 90 * 24 * 3600  # seconds, a date that is far off: time begins at 0 here


def always(value: float) -> str:
    """Return samples of one value."""
    return f"{value}x{MINUTES}"


def series(name: str, **labels: str) -> str:
    """Return the name of a series, as promtool reads it."""
    words = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if value)
    return f"{name}{{{words}}}"


@dataclass(frozen=True)
class ScrapedCluster:
    """A cluster with vnode, by the labels that Prometheus gives to its series."""

    name: str = ""
    """Of the label `cluster`; no label without a name."""

    def of(self, metric: str, **labels: str) -> str:
        """Return a series of this cluster's leader, or of the `pod` that is named."""
        target = {"cluster": self.name, "namespace": "vnode", "pod": labels.pop("pod", "a")}
        return series(f"vnode_{metric}", **target, **labels)

    def healthy(self) -> Series:
        """Return all series of two replicas, of which `a` leads."""
        found: Series = {}
        for pod in ("a", "b"):
            found[self.of("build_info", pod=pod, version="1")] = always(1)
            found[self.of("leader", pod=pod)] = always(int(pod == "a"))
            for api_server in ("local", GPU, CPU):
                found |= self._of_api_server(pod, api_server)
            for target in (GPU, CPU):
                found[self.of("target_healthy", pod=pod, target=target)] = always(1)
                found[self.of("target_credentials_last", pod=pod, target=target)] = always(1)
            for name in ("ca", "webhook", "extender", "kubelet"):
                of = self.of("certificate_expiry_timestamp_seconds", pod=pod, certificate=name)
                found[of] = always(FAR)

        return found | self._of_leader()

    def _of_api_server(self, pod: str, api_server: str) -> Series:
        requests = {"pod": pod, "api_server": api_server, "verb": "GET"}
        return {
            self.of("api_requests_total", code="200", **requests): GROWS,
            self.of("api_requests_total", code="404", **requests): GROWS,
            self.of("api_requests_total", code="none", **requests): always(3),
            self.of("informer_silence_seconds", pod=pod, api_server=api_server, resource="x"): (
                always(61)
            ),
            self.of("events_dropped_total", pod=pod, api_server=api_server): always(5),
        }

    def _of_leader(self) -> Series:
        found = {
            self.of("pending_pods", queue="unschedulable"): always(3),
            self.of("pending_pods", queue="held"): always(9),
            self.of("scheduling_attempts_total", result="bound"): GROWS,
            self.of("scheduling_attempts_total", result="unschedulable"): GROWS,
            self.of("scheduling_attempts_total", result="error"): always(1),
            self.of("reconciles_total", controller="chaperons", result="done"): GROWS,
            self.of("reconciles_total", controller="chaperons", result="error"): always(7),
            self.of("target_set_removal_held", set="fleet"): always(0),
            self.of("issued_token_expiry_timestamp_seconds"): always(FAR),
            self.of("issued_token_expiry_timestamp_seconds", pod="b"): always(0),
        }
        run = "exec_plugin_run_duration_seconds_count"
        found[self.of(run, provider="cloud", outcome="succeeded")] = GROWS
        found[self.of(run, provider="cloud", outcome="failed")] = always(2)
        for target in (GPU, CPU):
            of = "candidate_duration_seconds_count"
            found[self.of(of, target=target, outcome="reserved")] = GROWS
            found[self.of(of, target=target, outcome="silent")] = always(2)
        for bound in ("10", "30", "+Inf"):
            found[self.of("feedback_lag_seconds_bucket", le=bound)] = GROWS
        return found

    # What goes wrong, as the series that are otherwise then.

    def gone(self) -> Series:
        """Return all series of the cluster: they end."""
        return dict.fromkeys(self.healthy(), _ENDS)

    def leaderless(self) -> Series:
        """Return that nobody leads, so that nothing is scheduled."""
        return {self.of("leader"): always(0)} | self.none_bound()

    def none_bound(self) -> Series:
        """Return that pods wait, and none of them is bound."""
        return {self.of("scheduling_attempts_total", result="bound"): always(7)}

    def unreachable(self, target: str) -> Series:
        """Return that the API server of a target answers neither replica."""
        changed: Series = {}
        for pod in ("a", "b"):
            about = {"pod": pod, "api_server": target}
            changed[self.of("target_healthy", pod=pod, target=target)] = always(0)
            for code, samples in (("200", always(99)), ("404", always(99)), ("none", GROWS)):
                changed[self.of("api_requests_total", verb="GET", code=code, **about)] = samples
            changed[self.of("informer_silence_seconds", resource="x", **about)] = GROWS
        return changed

    def refused(self, target: str) -> Series:
        """Return that the credentials of a target have ended: it answers, with 401."""
        changed = self.unreachable(target)
        for pod in ("a", "b"):
            about = {"pod": pod, "api_server": target, "verb": "GET"}
            changed[self.of("api_requests_total", code="none", **about)] = always(3)
            changed[self.of("api_requests_total", code="401", **about)] = GROWS
        return changed | self.not_renewed(target)

    def not_renewed(self, target: str) -> Series:
        """Return that the leader, who knows it, cannot renew the credentials of a target."""
        return {self.of("target_credentials_last", target=target): always(0)}

    def silent(self, target: str) -> Series:
        """Return that a target takes candidates, and its scheduler does nothing with them."""
        of = "candidate_duration_seconds_count"
        return {
            self.of(of, target=target, outcome="reserved"): always(99),
            self.of(of, target=target, outcome="silent"): GROWS,
        }
