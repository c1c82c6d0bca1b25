"""Situations of Targets that are not ready: certificates, namespaces, agents, webhooks."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.situation_cases import Case, sent, unready
from tests.unit.cli.situations import Situation, a_target
from vnode.api import kinds
from vnode.api.errors import Unreachable
from vnode.insight.verdicts import PodState
from vnode.targets import probing

CHECKS: Final = "vnode doctor checks both sides"
CONNECT: Final = "vnode connect --source FILE --target FILE --name c2"
NAMESPACED: Final = f"{CONNECT} --namespace default"
SECRET: Final = "makes the Secret of its kubeconfig again"
UNAUTHORIZED: Final = (
    "the target does not accept the credentials (expired or revoked?): run vnode connect again, "
    "put a new kubeconfig into the Secret, or, for a ClusterProfile, see what its plugin gives"
)


def untrusted(why: str, *cures: str, unsaid: tuple[str, ...] = ()) -> Case:
    """Return the case of a target whose certificate Python refuses for that reason."""
    error = (
        "c2: Cannot connect to host 192.0.2.1:6443 ssl:True [SSLCertVerificationError: (1, "
        f"'[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {why} (_ssl.c:1006)')]"
    )
    reason, message = probing.explain(Unreachable(error), "default")
    return unready(reason, message, *cures, CHECKS, unsaid=unsaid)


def lost(reason: str, message: str, *cures: str) -> Case:
    """Return the case of a pod that ran in a target which is not ready any more."""
    case = sent(
        f"target c2 is not ready, so that the pod's status may be outdated: {message}",
        *cures,
        "the target has been lost since",
        CHECKS,
        status={"phase": "Running"},
        state=PodState.UNREACHABLE,
    )

    def make(here: Situation) -> None:
        case.make(here)
        change(here, reason, message)

    return case._replace(make=make)


def change(here: Situation, reason: str, message: str) -> None:
    """Have the Target say that it is not ready."""
    told = a_target(
        status="False", reason=reason, message=message, lastTransitionTime=here.ago(100)
    )
    here.source.change(
        kinds.TARGETS, "c2", "default", lambda obj: obj["status"].update(told["status"])
    )


def cluster_target(here: Situation) -> None:
    here.source.remove(kinds.TARGETS, "c2", "default")
    target = a_target(status="False", reason="Unauthorized", message=UNAUTHORIZED)
    del target["metadata"]["namespace"]
    here.source.add(kinds.CLUSTER_TARGETS, target)
    here.pod()


def of_a_profile(here: Situation) -> None:
    change(here, "Unauthorized", UNAUTHORIZED)
    spec = {"clusterProfile": {"name": "c2", "namespace": "fleet"}}
    here.source.change(kinds.TARGETS, "c2", "default", lambda obj: obj.update(spec=spec))
    here.pod()


UNREADY: Final[dict[str, Case]] = {
    "a certificate that has expired": untrusted(
        "certificate has expired", unsaid=("vnode connect", "new authority")
    ),
    "a certificate of a wrong clock": untrusted(
        "certificate is not yet valid", unsaid=("vnode connect", "new authority")
    ),
    "a certificate of another name": untrusted(
        "Hostname mismatch, certificate is not valid for 'api.c2'.",
        f"{NAMESPACED} --server https://HOST:PORT",
        unsaid=("new authority",),
    ),
    "a certificate of another address": untrusted(
        "IP address mismatch, certificate is not valid for '192.0.2.1'.",
        f"{NAMESPACED} --server https://HOST:PORT",
        unsaid=("new authority",),
    ),
    "a certificate of another authority": untrusted(
        "unable to get local issuer certificate", f"{NAMESPACED} {SECRET}"
    ),
    "a target without the namespace": unready(
        "NamespaceNotFound",
        "the target has no namespace 'default': create it there, with a Source in it (vnode "
        "connect does), or create a ClusterTarget for all namespaces instead",
        "kubectl create namespace default (in c2), and then vnode connect --source",
        CHECKS,
    ),
    "a target without vnode": unready(
        "NotInstalled",
        "the target does not know PodChaperons and ClusterSummaries: there, run vnode install, or "
        "install its Helm chart, and start an agent",
        "vnode install --kubeconfig FILE, for c2",
        CHECKS,
    ),
    "a target whose agent has never run": unready(
        "NoSummary",
        "the target has no ClusterSummary, which has its capacity: check that its agent runs",
        "start the agent in c2: vnode doctor --target FILE",
        CHECKS,
    ),
    "a target that does not say which cluster it is": unready(
        "ClusterUnknown",
        "the target does not say which cluster it is, and was u1 before (the UID of its namespace "
        "kube-system): see that the kubeconfig leads to that cluster, and that vnode's agent runs",
        "start vnode's agent in c2",
        CHECKS,
        unsaid=(SECRET,),
    ),
    "a target whose agent is silent": unready(
        "AgentSilent",
        "the target's vnode has sent no heartbeat for minutes, and no pod has found a place there",
        "start the agent in c2: vnode doctor --target FILE",
        CHECKS,
    ),
    "a target that takes no pods": unready(
        "WebhookFailing",
        'the target takes no pods: failed calling webhook "w.example": connection refused; see why '
        "that webhook does not answer",
        "see why webhook w.example of c2 does not answer",
        CHECKS,
    ),
    "a ClusterTarget whose token has expired": Case(
        cluster_target,
        PodState.UNREACHABLE,
        "target c2 is not ready: the target does not accept the credentials",
        (f"{CONNECT} --cluster-wide {SECRET}", CHECKS),
    ),
    "a ClusterProfile whose plugin gives a token that has expired": Case(
        of_a_profile,
        PodState.UNREACHABLE,
        "target c2 is not ready: the target does not accept the credentials",
        (CHECKS,),
        (SECRET,),
    ),
    "a pod that ran where the token has expired": lost(
        "Unauthorized", UNAUTHORIZED, f"{NAMESPACED} {SECRET}"
    ),
    "a pod that ran where the API server is down": lost(
        "Unreachable",
        "the target cannot be reached: timed out; see that its API server runs, and that the "
        "kubeconfig has an address and an authority with which this agent reaches it",
    ),
}
