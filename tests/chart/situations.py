"""Whole situations of clusters with vnode, and all alerts that fire in them.

Each begins with every series of healthy clusters, over which those are laid that are otherwise. So
what a fault does to other rules is seen, which series made up for one rule would not show.
"""

from __future__ import annotations

from typing import Final

from tests.chart.scraped import CPU, GPU, GROWS, ScrapedCluster, Series, always

AT: Final = "110m"
ONE: Final = ScrapedCluster()
EAST, WEST = ScrapedCluster("east"), ScrapedCluster("west")
BOTH: Final = EAST.healthy() | WEST.healthy()
_OVERLOADED: Final = {
    ONE.of("api_requests_total", api_server="local", verb="GET", code="429"): GROWS,
    ONE.of("feedback_lag_seconds_bucket", le="10"): always(9),
}


def _upgraded(of: str) -> str:
    """Return the series of the pod, and version, that took the place of one."""
    for before, after in (('pod="a"', 'pod="c"'), ('pod="b"', 'pod="d"'), ('"1"', '"2"')):
        of = of.replace(before, after)
    return of


# What happens -> all series, and the alerts that fire: NAME, or NAME CLUSTER.
SITUATIONS: Final[dict[str, tuple[Series, set[str]]]] = {
    "all is well": (ONE.healthy(), set()),
    "no agent has ever run": ({}, {"VnodeAgentAbsent"}),
    "no agent runs any more": (ONE.healthy() | ONE.gone(), {"VnodeAgentAbsent"}),
    "an upgrade replaced both pods and the version": (
        ONE.healthy()
        | ONE.gone()
        | {_upgraded(of): samples for of, samples in ONE.healthy().items()},
        set(),
    ),
    "agents run, and none leads": (
        ONE.healthy() | ONE.leaderless(),
        {"VnodeNoLeader", "VnodePodsPending"},
    ),
    "the API server of a target is down, and pods go to the other": (
        ONE.healthy() | ONE.unreachable(GPU),
        {"VnodeTargetUnhealthy", "VnodeInformerSilent", "VnodeApiErrors"},
    ),
    "the API servers of all targets are down": (
        ONE.healthy() | ONE.unreachable(GPU) | ONE.unreachable(CPU) | ONE.none_bound(),
        {"VnodeTargetUnhealthy", "VnodeInformerSilent", "VnodeApiErrors", "VnodePodsPending"},
    ),
    "only a replica that does not lead cannot reach a target": (
        ONE.healthy() | {ONE.of("target_healthy", pod="b", target=GPU): always(0)},
        set(),
    ),
    "credentials of a target end soon, and nothing renews them": (
        ONE.healthy() | ONE.not_renewed(GPU),
        {"VnodeTargetCredentialsEnding"},
    ),
    "credentials of a target have ended": (
        ONE.healthy() | ONE.refused(GPU),
        {"VnodeTargetCredentialsEnding", "VnodeTargetUnhealthy", "VnodeInformerSilent"},
    ),
    "the exec plugin of a provider fails since its update": (
        ONE.healthy()
        | {
            ONE.of(
                "exec_plugin_run_duration_seconds_count", provider="cloud", outcome="succeeded"
            ): always(99),
            ONE.of(
                "exec_plugin_run_duration_seconds_count", provider="cloud", outcome="failed"
            ): GROWS,
        },
        {"VnodeExecPluginFailing"},
    ),
    "the exec plugin fails for one Target and works for others": (
        ONE.healthy()
        | {
            ONE.of(
                "exec_plugin_run_duration_seconds_count", provider="cloud", outcome="failed"
            ): GROWS,
        },
        set(),
    ),
    "a token that was issued has ended": (
        ONE.healthy() | {ONE.of("issued_token_expiry_timestamp_seconds"): always(3600)},
        {"VnodeIssuedTokenEnded"},
    ),
    "an inventory lost most profiles, so removals are held": (
        ONE.healthy() | {ONE.of("target_set_removal_held", set="fleet"): always(1)},
        {"VnodeRemovalHeld"},
    ),
    "targets have no room": (ONE.healthy() | ONE.none_bound(), {"VnodePodsPending"}),
    "an agent that has bound none since it began has no such series": (
        {
            of: samples
            for of, samples in ONE.healthy().items()
            if of != ONE.of("scheduling_attempts_total", result="bound")
        },
        {"VnodePodsPending"},
    ),
    "pods wait for gates of other controllers only": (
        ONE.healthy()
        | ONE.none_bound()
        | {ONE.of("pending_pods", queue="unschedulable"): always(0)},
        set(),
    ),
    "the candidate scheduler of one target has ended": (
        ONE.healthy() | ONE.silent(GPU),
        {"VnodeCandidatesSilent"},
    ),
    "the candidate schedulers of all targets have ended": (
        ONE.healthy() | ONE.silent(GPU) | ONE.silent(CPU) | ONE.none_bound(),
        {"VnodeCandidatesSilent", "VnodePodsPending"},
    ),
    "a scheduler plugin fails for some pods": (
        ONE.healthy() | {ONE.of("scheduling_attempts_total", result="error"): GROWS},
        {"VnodeSchedulingErrors"},
    ),
    "the API server of the source is overloaded": (
        ONE.healthy() | _OVERLOADED,
        {"VnodeFeedbackSlow", "VnodeApiErrors"},
    ),
    "a proxy in between holds a watch open without passing data": (
        ONE.healthy() | {ONE.of("informer_silence_seconds", api_server=GPU, resource="x"): GROWS},
        {"VnodeInformerSilent"},
    ),
    "the agent has lost a right in the source": (
        ONE.healthy()
        | {
            ONE.of("reconciles_total", controller="chaperons", result="done"): always(99),
            ONE.of("reconciles_total", controller="chaperons", result="error"): GROWS,
        },
        {"VnodeReconcileErrors"},
    ),
    "a certificate ends, and is not renewed": (
        ONE.healthy()
        | {
            ONE.of("certificate_expiry_timestamp_seconds", certificate="webhook"): always(
                4 * 24 * 3600
            )
        },
        {"VnodeCertificateExpiring"},
    ),
    "more Events than the API server takes": (
        ONE.healthy() | {ONE.of("events_dropped_total", api_server="local"): GROWS},
        {"VnodeEventsDropped"},
    ),
    "two clusters in one Prometheus, and all is well": (BOTH, set()),
    "the agents of one of two clusters are gone": (
        BOTH | EAST.gone(),
        {"VnodeAgentAbsent east"},
    ),
    "the agents of both clusters are gone": (
        BOTH | EAST.gone() | WEST.gone(),
        {"VnodeAgentAbsent east", "VnodeAgentAbsent west"},
    ),
    "none leads in one of two clusters": (
        BOTH | EAST.leaderless(),
        {"VnodeNoLeader east", "VnodePodsPending east"},
    ),
    "a target is down that both clusters have, for one of them": (
        BOTH | WEST.unreachable(GPU),
        {"VnodeTargetUnhealthy west", "VnodeInformerSilent west", "VnodeApiErrors west"},
    ),
    "two clusters whose leaders have pods of one name, and only one has credentials that end": (
        BOTH | WEST.not_renewed(CPU),
        {"VnodeTargetCredentialsEnding west"},
    ),
}
