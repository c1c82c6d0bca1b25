"""Defines `vnode scheduler-config`: configures a kube-scheduler as the candidate scheduler.

The file has one profile, `admiralty-candidate`, and names the agent as the extender that binds
pods: a call to bind is what reserves a candidate, and the agent answers it once the source has
decided. It is asked as well before a candidate preempts others. Further extenders may say which
nodes can take a candidate, as HAMi's does for memory and cores of GPUs; they never bind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import yaml

from vnode.api import keys, names, resources
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli import manifests, terminal
from vnode.nodes.candidate_scheduler import LEASE

CREDENTIALS: Final = Path("/var/run/secrets/vnode.dev/extender")  # the chart's mount path
TIMEOUT: Final = "90s"  # the agent answers within 30 s, so this never cuts a decision short


def build(
    extender: str,
    *,
    credentials: Path = CREDENTIALS,
    kubeconfig: Path | None = None,
    leader_elect: bool = True,
    namespace: str = manifests.NAMESPACE,
    extra_extenders: Sequence[str] = (),
) -> Object:
    """Build the KubeSchedulerConfiguration; `credentials` has tls.crt, tls.key and ca.crt.

    Raises ConfigError if `extender` is not an https address, or one of the `extra_extenders` is not
    of the form that `--extra-extender` takes.
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
            *map(_extra_extender, extra_extenders),
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
            },
        ],
    }


def _extra_extender(text: str) -> Object:
    """Return an extender that filters: of `URL,managed=NAME,ignored=NAME,ca=FILE,verb=NAME`."""
    url, *parts = text.split(",")
    where = f"--extra-extender {text!r}"
    if not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", url):
        raise ConfigError(f"{where} must start with an address, e.g. https://192.0.2.1:443")

    found: Object = {"urlPrefix": url.rstrip("/"), "filterVerb": "filter"}
    found |= {"weight": 1, "enableHTTPS": url.startswith("https://"), "httpTimeout": "30s"}
    found |= {"nodeCacheCapable": True, "ignorable": False}
    managed: list[Object] = []
    for part in parts:
        field, _, value = part.partition("=")
        if field in ("managed", "ignored") and _is_device(value):
            managed.append({"name": value, "ignoredByScheduler": field == "ignored"})
        elif field == "ca" and value and url.startswith("https://"):
            found["tlsConfig"] = {"caFile": value}
        elif field == "verb" and value:
            found["filterVerb"] = value
        else:
            raise ConfigError(
                f"{where}: {part!r} is none of managed=RESOURCE, ignored=RESOURCE, verb=VERB, and, "
                "for https, ca=FILE; a resource is one like nvidia.com/gpu"
            )

    if not managed:
        raise ConfigError(
            f"{where} names no resource: all candidates would be asked for; add managed=RESOURCE, "
            "or ignored=RESOURCE for one that nodes do not list"
        )

    return {**found, "managedResources": managed}


def _is_device(name: str) -> bool:
    return bool(names.QUALIFIED_NAME.fullmatch(name)) and resources.is_extended(name)


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
    @click.option(
        "--extra-extender",
        multiple=True,
        metavar="URL,managed=NAME,ignored=NAME",
        help="An extender that filters nodes for candidates with these resources; of those that "
        "are ignored no node has to have any. May be repeated.",
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
        extra_extender: tuple[str, ...],
    ) -> None:
        """Print the KubeSchedulerConfiguration for kube-scheduler --config FILE.

        \b
        With HAMi in the same cluster, whose extender knows memory and cores of GPUs:
          HAMI=https://hami-scheduler.kube-system:443
          vnode scheduler-config --extender https://192.0.2.1:9444 \\
            --extra-extender $HAMI,managed=nvidia.com/gpu,ignored=nvidia.com/gpumem
        """
        config = build(
            extender,
            credentials=credentials_dir.absolute(),
            kubeconfig=kubeconfig.absolute() if kubeconfig else None,
            leader_elect=leader_elect,
            namespace=namespace,
            extra_extenders=extra_extender,
        )
        terminal.say(yaml.safe_dump(config, sort_keys=False), newline=False)

    return scheduler_config_command
