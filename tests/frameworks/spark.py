"""Applications of Apache Spark, submitted as users do: real drivers and executors in busybox.

There is no image of Spark here. Its containers see Spark, Java and Python of this machine, and an
entry point in a ConfigMap does what that of Spark's images does. The rest of their pods is what
spark-submit and the driver make of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from hack.fleetlib import kubeconfigs
from hack.fleetlib.tools import spark
from tests import kit
from tests.kit import Fleet
from vnode.api import keys
from vnode.api.objects import Object
from vnode.kube import endpoint

ACCOUNT: Final = "spark"
_HOME: Final = "/opt/spark-home"  # Spark's own pods have /opt/spark/conf
_PROGRAMS: Final = "/opt/programs"
APPLICATION: Final = f"local://{_PROGRAMS}/count.py"

MASTER: Final = {
    "spark.kubernetes.driver.master": (
        "https://${env:KUBERNETES_SERVICE_HOST}:${env:KUBERNETES_SERVICE_PORT}"
    )
}
"""The one setting of Spark: its driver would call kubernetes.default.svc, which is the target's."""

_ENTRY_POINT: Final = f"""
role=$1
shift
if [ $role = driver ]; then
    exec {_HOME}/bin/spark-submit --deploy-mode client \
        --conf spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS "$@"
fi
readarray -t options < <(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p')
exec $JAVA_HOME/bin/java "${{options[@]}}" -Xmx$SPARK_EXECUTOR_MEMORY \
    -cp "$SPARK_CONF_DIR:{_HOME}/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url $SPARK_DRIVER_URL --executor-id $SPARK_EXECUTOR_ID \
    --cores $SPARK_EXECUTOR_CORES --app-id $SPARK_APPLICATION_ID \
    --hostname $SPARK_EXECUTOR_POD_IP --resourceProfileId $SPARK_RESOURCE_PROFILE_ID \
    --podName $SPARK_EXECUTOR_POD_NAME
"""

_APPLICATION: Final = '''
"""Runs tasks until so many executors have run some; prints the name of each."""

import os
import sys
import time

from pyspark import SparkContext


def run(_number):
    time.sleep(0.2)
    return os.environ["SPARK_EXECUTOR_POD_NAME"]


context = SparkContext()
seen = set()
while len(seen) < int(sys.argv[1]):
    for name in set(context.parallelize(range(8), 8).map(run).collect()) - seen:
        print("executor", name, flush=True)
        seen.add(name)

context.stop()
'''

PROGRAMS: Object = {
    "metadata": {"name": "spark-programs"},
    "data": {"entry-point": _ENTRY_POINT, "count.py": _APPLICATION},
}


def template(where: spark.Spark, **container: Any) -> Object:
    """Return the pod that spark-submit and the driver add to."""
    folders = {str(folder): str(folder) for folder in where.folders} | {_HOME: str(where.home)}
    volumes: list[Object] = [
        {"name": f"machine-{number}", "hostPath": {"path": path}}
        for number, path in enumerate(folders.values())
    ]
    mounts: list[Object] = [
        {"name": volume["name"], "mountPath": path, "readOnly": True}
        for volume, path in zip(volumes, folders, strict=True)
    ]
    volumes.append({"name": "programs", "configMap": {"name": PROGRAMS["metadata"]["name"]}})
    mounts.append({"name": "programs", "mountPath": _PROGRAMS})
    environment = {
        "PATH": "/usr/bin:/bin",
        "JAVA_HOME": str(where.java_home),
        "SPARK_HOME": _HOME,
        "PYSPARK_PYTHON": "/usr/bin/python3",
    }
    main = {
        "name": "main",
        "image": "busybox",
        "command": ["/usr/bin/bash", f"{_PROGRAMS}/entry-point"],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "volumeMounts": mounts,
        **container,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [main], "volumes": volumes, "terminationGracePeriodSeconds": 1},
    }


@dataclass(frozen=True)
class Submitter:
    """Who runs spark-submit on this machine, with a kubeconfig that Spark can read.

    Its client takes no keys of elliptic curves, such as an administrator has here.
    """

    fleet: Fleet
    where: spark.Spark

    @property
    def server(self) -> str:
        """Return the address of the source's API server."""
        return endpoint.from_kubeconfig_file(self.fleet.kubeconfig("c1")).url

    @property
    def address(self) -> str:
        """Return its host and port."""
        return urlsplit(self.server).netloc

    @property
    def environment(self) -> dict[str, str]:
        """Return what spark-submit has in its environment."""
        return {
            "KUBECONFIG": str(self._kubeconfig),
            "SPARK_HOME": str(self.where.home),
            "JAVA_HOME": str(self.where.java_home),
        }

    @property
    def _kubeconfig(self) -> Path:
        return self.fleet.folder / "kubeconfig-spark"

    def prepare(self) -> None:
        """Make the account that submits."""
        name = "submitter"
        self.fleet.kubectl("c1", "create", "serviceaccount", name)
        rights = ("--clusterrole=cluster-admin", f"--serviceaccount=default:{name}")
        self.fleet.kubectl("c1", "create", "clusterrolebinding", name, *rights)
        token = self.fleet.kubectl("c1", "create", "token", name, "--duration=3h").strip()
        config = yaml.safe_load(self.fleet.kubeconfig("c1").read_text())
        config["users"][0]["user"] = {"token": token}
        kubeconfigs.write(self._kubeconfig, yaml.safe_dump(config))

    def submit(
        self, name: str, executors: int, wanted: int, executor: Object, **settings: str
    ) -> str:
        """Submit an application that ends after so many executors; return the driver's name."""
        files = {"driver": template(self.where), "executor": executor}
        driver = f"{name}-driver"
        chosen = {
            "spark.app.name": name,
            "spark.executor.instances": str(executors),
            "spark.kubernetes.container.image": "busybox",
            "spark.kubernetes.driver.pod.name": driver,
            "spark.kubernetes.authenticate.driver.serviceAccountName": ACCOUNT,
            "spark.kubernetes.submission.waitAppCompletion": "false",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            **MASTER,
            **settings,
        }
        for role, made in files.items():
            file = self.fleet.folder / f"{name}-{role}.json"
            file.write_text(json.dumps(made))
            chosen[f"spark.kubernetes.{role}.podTemplateFile"] = str(file)
            chosen[f"spark.kubernetes.{role}.request.cores"] = "10m"
            chosen[f"spark.kubernetes.{role}.annotation.{keys.ELECT}"] = ""

        options = [word for key, value in chosen.items() for word in ("--conf", f"{key}={value}")]
        program = str(self.where.home / "bin" / "spark-submit")
        command = [program, "--master", f"k8s://{self.server}", "--deploy-mode", "cluster"]
        environment = [f"{key}={value}" for key, value in self.environment.items()]
        kit.run(["env", *environment, *command, *options, APPLICATION, str(wanted)])
        return driver
