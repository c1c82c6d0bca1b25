"""Operators of frameworks whose pods talk to each other, as their own modules have them.

The first use on a machine builds the programs, which takes minutes each. JobSet is that of the
tests with Kueue.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hack.fleetlib.commands import ClusterSite
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.tools import catalogue
from tests.frameworks.controllers import JobController, WebhookController
from tests.frameworks.spark import Submitter
from tests.kit import Fleet
from vnode.api.objects import Object


def _lws_selectors(path: str) -> Object:
    """Return the pods that the own installation of LeaderWorkerSet looks at."""
    if not path.endswith("-pod"):
        return {}

    labelled = {"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}
    return {"objectSelector": {"matchExpressions": [labelled]}}


LEADER_WORKER_SET: Final = WebhookController(
    program="lws",
    module=catalogue.LEADER_WORKER_SET_MODULE,
    configuration={"apiVersion": "config.lws.x-k8s.io/v1alpha1"},
    webhook_port=6305,
    health_port=6306,
    selectors=_lws_selectors,
)

MPI_OPERATOR: Final = JobController(
    program="mpi-operator",
    module=catalogue.MPI_OPERATOR_MODULE,
    crds="manifests/base/kubeflow.org_mpijobs.yaml",
    health_port=8080,  # has no flag
    health_path="/healthz",
    flags=lambda _address: ["--lock-namespace=default"],
    has_own_network=True,
)


class TrainerController(WebhookController):
    """Trainer, whose configuration names no folder for certificates: it is the usual one."""

    def _configured(self, place: ClusterSite, folder: Path) -> dict[str, Any]:
        made = super()._configured(place, folder)
        del made["internalCertManagement"]
        del made["webhook"]["certDir"]
        return {**made, "certManagement": {"enable": False}}


TRAINER: Final = TrainerController(
    program="trainer",
    module=catalogue.TRAINER_MODULE,
    crds="manifests/base/crds/trainer.kubeflow.org_*.yaml",
    webhooks="manifests/base/webhook/manifests.yaml",
    configuration={"apiVersion": "config.trainer.kubeflow.org/v1alpha1"},
    webhook_port=6307,
    health_port=6308,
    certificates=("k8s-webhook-server/serving-certs",),
)

KUBERAY: Final = JobController(
    program="ray-operator",
    module=catalogue.KUBERAY_MODULE,
    health_port=6309,
    flags=lambda address: [
        f"--health-probe-bind-address={address}:6309",
        "--metrics-addr=0",
        "--enable-leader-election=false",
    ],
)


@dataclass(frozen=True, kw_only=True)
class SparkOperator(JobController):
    """Spark's operator, which runs spark-submit as in a pod of the cluster that it works in."""

    submitter: Submitter

    def start(self, fleet: Fleet, cluster: str) -> None:
        """Start the program, and wait until it works."""
        place = LocalFleet(fleet.folder).site(cluster)
        argv = [str(self.locate()), *self.flags(place.address)]
        host, _, port = self.submitter.address.rpartition(":")
        service = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        self._run(fleet, place, argv, **service, **self.submitter.environment)


def spark_operator(submitter: Submitter) -> SparkOperator:
    """Return the operator that submits so; it has no webhook, which templates of pods replace."""
    return SparkOperator(
        program="spark-operator",
        module=catalogue.SPARK_OPERATOR_MODULE,
        health_port=6310,
        flags=lambda address: [
            *("controller", "start", "--namespaces=default", "--enable-ui-service=false"),
            f"--health-probe-bind-address={address}:6310",
        ],
        submitter=submitter,
    )
