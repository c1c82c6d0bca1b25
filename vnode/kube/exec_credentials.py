"""Asks exec plugins for credentials, by the protocol of client.authentication.k8s.io.

A plugin finds an ExecCredential in the variable KUBERNETES_EXEC_INFO, with the cluster that it is
for, and prints one with a token or a client certificate in its status. What it prints is checked
here before anything is made of it: a command may fail in any way, and an error must name no secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from vnode.api import documents, objects
from vnode.api.errors import ConfigError, Unreachable
from vnode.kube import exec_runs
from vnode.kube.exec_runs import ExecRunner, Execution, Lane

GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
EXTENSION: Final = f"{GROUP}/exec"
"""The extension of a kubeconfig's cluster that its exec plugins find as `cluster.config`."""

_INFO: Final = "KUBERNETES_EXEC_INFO"
_TOKEN: Final = re.compile(r"[!-~]+")
_PASSED_ON: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_.*|TZ|TMPDIR|KUBECONFIG|KUBERNETES_(SERVICE|PORT).*|XDG_.*"
    r"|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|LD_LIBRARY_PATH|PYTHON(PATH|HOME)"
    r"|(AWS|AZURE|ARM|GOOGLE|CLOUDSDK|GCE|GKE|USE_GKE|OCI|IBMCLOUD|ALIBABA_CLOUD|TENCENTCLOUD)_.*",
    re.IGNORECASE,
)
"""Variables of the agent that a plugin gets: where its cluster, its cloud and its files are."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a plugin has given: a token, or a client certificate with its key, both PEM; and when
    that ends, None if it did not say."""

    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = field(default="", repr=False)
    ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExecSpec:
    """A plugin to run, as kubeconfigs and providers of ClusterProfiles describe it.

    `cluster` is shown to the plugin, if it asked for that. `environment` is complete.
    """

    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = VERSIONS[0]
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    hint: str = ""  # how to install the command
    timeout: float = exec_runs.TIMEOUT
    provider: str = ""  # of a ClusterProfile, by which runs are counted

    def execution(self) -> Execution:
        """Return the command as it is to be run."""
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = self.cluster

        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        text = msgspec.json.encode(info).decode()
        environment = {**self.environment, _INFO: text}
        return Execution(self.command, self.args, environment, self.timeout)


def inherited(
    *, everything: bool = False, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables of this process that a plugin gets; `everything` if the operator chose
    the plugin."""
    if everything:
        return dict(environ)

    return {name: value for name, value in environ.items() if _PASSED_ON.fullmatch(name)}


async def ask(spec: ExecSpec, runner: ExecRunner, *, lane: Lane = Lane.FIRST) -> ExecCredential:
    """Run a plugin, with others of its lane; Unreachable says why it gave no credential."""
    try:
        output = await runner.run(spec.execution(), lane=lane)
        return parse(output, spec.api_version, spec.command)
    except Unreachable as error:
        hint = f" ({spec.hint})" if spec.hint and "cannot be started" in str(error) else ""
        raise Unreachable(f"{error}{hint}") from error


def parse(output: bytes, api_version: str, command: str) -> ExecCredential:
    """Return the credential that a plugin has printed; Unreachable if it is none."""

    def useless(why: str) -> Unreachable:
        return Unreachable(f"exec plugin {command!r} prints no ExecCredential: {why}")

    try:
        printed = documents.decode(output)
    except (ValueError, *documents.NO_JSON):
        raise useless("it is no JSON") from None

    if not isinstance(printed, dict) or printed.get("kind") != "ExecCredential":
        raise useless("it is another kind of object")

    if printed.get("apiVersion") != api_version:
        raise useless(f"its apiVersion is not {api_version}")

    status = printed.get("status")
    if not isinstance(status, dict):
        raise useless("it has no status")

    token, certificate, key = (
        status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if not all(isinstance(text, str) for text in (token, certificate, key)):
        raise useless("token, certificate and key must be strings")

    if not token and not certificate:
        raise useless("its status has neither token nor clientCertificateData")

    if token and not _TOKEN.fullmatch(token):
        raise useless("its token has spaces, line breaks or characters beyond ASCII")

    if bool(certificate) != bool(key):
        raise useless("clientCertificateData and clientKeyData belong together")

    return ExecCredential(
        token, certificate, key, _ends(status.get("expirationTimestamp"), useless)
    )


def _ends(text: Any, useless: Any) -> datetime | None:
    if text in (None, ""):
        return None

    found = objects.parse_timestamp(text) if isinstance(text, str) else None
    if found is None:
        raise useless("its expirationTimestamp is no time as RFC 3339 has it")

    return found if found.tzinfo else found.replace(tzinfo=UTC)


def cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster of a kubeconfig, without files, as plugins are shown it."""
    names = (
        "server",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "certificate-authority-data",
        "proxy-url",
        "disable-compression",
    )
    shown = {name: cluster[name] for name in names if cluster.get(name)}
    found = extension(cluster, EXTENSION)
    return shown if found is None else {**shown, "config": found}


def extension(cluster: Mapping[str, Any], name: str) -> Any:
    """Return an extension of a kubeconfig's cluster; None if it has none of that name."""
    entries = cluster.get("extensions")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry.get("extension")

    return None


def spec_of(
    plugin: Mapping[str, Any],
    cluster: Mapping[str, Any] | None,
    environment: Mapping[str, str],
    timeout: float = exec_runs.TIMEOUT,
) -> ExecSpec:
    """Return the plugin of an `exec` section, which sees `cluster` if it asks for that.

    Raises ConfigError, which names the wrong field.
    """
    command, version = plugin.get("command"), plugin.get("apiVersion")
    if not isinstance(command, str) or not command:
        raise ConfigError("the kubeconfig's exec plugin names no command")

    if version not in VERSIONS:
        raise ConfigError(
            f"the kubeconfig's exec plugin needs an apiVersion, one of {', '.join(VERSIONS)}"
        )

    if plugin.get("interactiveMode") == "Always":
        raise ConfigError(
            "the kubeconfig's exec plugin has interactiveMode Always, and vnode has no terminal "
            "for it: use one that asks nobody"
        )

    args, entries = plugin.get("args") or [], plugin.get("env") or []
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise ConfigError("the kubeconfig's exec plugin has args that are no list of strings")

    own: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ConfigError(
                "the kubeconfig's exec plugin has an env that is no list of names and values"
            )

        own[entry["name"]] = str(entry.get("value") or "")

    return ExecSpec(
        command,
        tuple(args),
        {**environment, **own},
        str(version),
        cluster_info(cluster or {}) if plugin.get("provideClusterInfo") else None,
        str(plugin.get("installHint") or "")[:200],
        timeout,
    )
