"""Defines `vnode scheduler-config`: configures a kube-scheduler as the candidate scheduler.

The file has one profile, `admiralty-candidate`, and names the agent as the extender that binds
pods: a call to bind is what reserves a candidate, and the agent answers it once the source has
decided. It is asked as well before a candidate preempts others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
import yaml

from vnode.api import keys
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli import manifests, terminal

LEASE: Final = "vnode-candidate-scheduler"  # as the Role in the manifests names it
CREDENTIALS: Final = Path("/var/run/secrets/vnode.dev/extender")  # the chart's mount path
TIMEOUT: Final = "90s"  # the agent answers within 30 s, so this never cuts a decision short


def build(
    extender: str,
    *,
    credentials: Path = CREDENTIALS,
    kubeconfig: Path | None = None,
    leader_elect: bool = True,
    namespace: str = manifests.NAMESPACE,
) -> Object:
    """Build the KubeSchedulerConfiguration; `credentials` has tls.crt, tls.key and ca.crt.

    Raises ConfigError if `extender` is not an https address.
    """
    if not extender.startswith("https://"):
        raise ConfigError(
            f"--extender {extender!r} must start with https://, e.g. https://192.0.2.1:9444"
        )

    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            **({"kubeconfig": str(kubeconfig)} if kubeconfig else {}),
            "qps": 1000,
            "burst": 2000,
        },
        "leaderElection": {
            "leaderElect": leader_elect,
            "resourceLock": "leases",
            "resourceName": LEASE,
            "resourceNamespace": namespace,
        },
        "profiles": [{"schedulerName": keys.CANDIDATE_SCHEDULER}],
        "extenders": [
            {
                "urlPrefix": extender.rstrip("/"),
                "preemptVerb": "preempt",
                "bindVerb": "bind",
                "weight": 1,
                "enableHTTPS": True,
                "httpTimeout": TIMEOUT,
                "nodeCacheCapable": False,  # or victims would be UIDs without their priorities
                "ignorable": False,
                "tlsConfig": {
                    "certFile": str(credentials / "tls.crt"),
                    "keyFile": str(credentials / "tls.key"),
                    "caFile": str(credentials / "ca.crt"),
                },
            }
        ],
    }


def command() -> click.Command:
    """Return the click command."""

    @click.command("scheduler-config")
    @click.option(
        "--extender", required=True, metavar="https://HOST:PORT", help="The agent's extender."
    )
    @click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        help="The scheduler's kubeconfig; without it, its service account.",
    )
    @click.option(
        "--credentials-dir",
        type=click.Path(path_type=Path),
        default=CREDENTIALS,
        show_default=True,
        help="Folder with tls.crt, tls.key and ca.crt, as vnode agent --credentials-dir writes it.",
    )
    @click.option("--leader-elect/--no-leader-elect", default=True, show_default=True)
    @click.option(
        "--namespace", default=manifests.NAMESPACE, show_default=True, help="Of the lease."
    )
    def scheduler_config_command(
        extender: str,
        kubeconfig: Path | None,
        credentials_dir: Path,
        leader_elect: bool,
        namespace: str,
    ) -> None:
        """Print the KubeSchedulerConfiguration for kube-scheduler --config FILE."""
        config = build(
            extender,
            credentials=credentials_dir.absolute(),
            kubeconfig=kubeconfig.absolute() if kubeconfig else None,
            leader_elect=leader_elect,
            namespace=namespace,
        )
        terminal.say(yaml.safe_dump(config, sort_keys=False), newline=False)

    return scheduler_config_command
