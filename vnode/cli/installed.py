"""What an earlier `vnode install` was told, so that another run does not undo it. Pure.

The webhook configuration holds all of it: where it calls the agent, in whose namespace that is, and
how patient it is. `vnode install` keeps what its flags do not change, and `vnode doctor` names the
flags of a cluster in its cures.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from vnode.api import objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli import manifests

_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class InstallSettings:
    """What `vnode install` can be told. `url` is None where the webhook calls the Service."""

    namespace: str = manifests.NAMESPACE
    url: str | None = None
    reinvocation: str = "Never"
    timeout: int = 10


@dataclass(frozen=True, slots=True)
class Given:
    """The flags of one run; None where they were left out."""

    namespace: str | None = None
    url: str | None = None
    to_service: bool = False
    reinvocation: str | None = None
    timeout: int | None = None

    def __post_init__(self) -> None:
        if self.url and self.to_service:
            raise ConfigError("--webhook-url and --webhook-service exclude each other: pass one")

    def over(self, present: InstallSettings) -> InstallSettings:
        """What holds after this run, by what held before."""
        url = None if self.to_service else self.url or present.url
        return InstallSettings(
            self.namespace or present.namespace,
            url,
            self.reinvocation or present.reinvocation,
            self.timeout or present.timeout,
        )


def read(webhook: Object | None) -> InstallSettings:
    """The settings by the webhook configuration in a cluster; the defaults if there is none."""
    [hook] = (webhook or {}).get("webhooks") or [None]
    if hook is None:
        return InstallSettings()

    default = InstallSettings()
    return InstallSettings(
        _namespace(hook) or default.namespace,
        (hook.get("clientConfig") or {}).get("url"),
        str(hook.get("reinvocationPolicy") or default.reinvocation),
        int(hook.get("timeoutSeconds") or default.timeout),
    )


def _namespace(hook: Object) -> str:
    """The agent's namespace is the one that the webhook is not called for."""
    for expression in (hook.get("namespaceSelector") or {}).get("matchExpressions") or ():
        if expression.get("key") == _NAMESPACE_LABEL and expression.get("operator") == "NotIn":
            return str(next(iter(expression.get("values") or ()), ""))

    return ""


def hook(settings: InstallSettings) -> Object:
    """The webhook configuration with these settings."""
    return manifests.webhook(
        settings.namespace,
        settings.url,
        reinvocation=settings.reinvocation,
        timeout=settings.timeout,
    )


def kept(given: Given, present: InstallSettings) -> Iterator[str]:
    """A line for each setting that holds on without a flag, and is none of the defaults."""
    default, wanted = InstallSettings(), given.over(present)
    if present.namespace != default.namespace and given.namespace is None:
        yield f"the agent's namespace {present.namespace} is kept; --namespace changes it"

    if wanted.url and given.url is None:
        yield (
            f"the webhook's address {wanted.url} is kept; --webhook-url changes it, and "
            "--webhook-service makes it the Service of an agent in the cluster"
        )

    if present.reinvocation != default.reinvocation and given.reinvocation is None:
        policy = present.reinvocation
        yield f"the reinvocation policy {policy} is kept; --reinvocation-policy changes it"

    if present.timeout != default.timeout and given.timeout is None:
        yield f"the webhook's timeout of {present.timeout} s is kept; --webhook-timeout changes it"


def command(settings: InstallSettings) -> str:
    """The `vnode install` that makes a cluster so."""
    default, words = InstallSettings(), ["vnode", "install"]
    if settings.namespace != default.namespace:
        words += ["--namespace", settings.namespace]

    if settings.url:
        words += ["--webhook-url", settings.url.removesuffix(manifests.WEBHOOK_PATH)]

    if settings.reinvocation != default.reinvocation:
        words += ["--reinvocation-policy", settings.reinvocation]

    if settings.timeout != default.timeout:
        words += ["--webhook-timeout", str(settings.timeout)]

    return shlex.join(words)


def helm_release(obj: Object | None) -> str:
    """`namespace/name` of the Helm release that an object belongs to, "" if to none."""
    annotations = objects.annotations(obj or {})
    release = annotations.get("meta.helm.sh/release-name", "")
    return f"{annotations.get('meta.helm.sh/release-namespace', '')}/{release}" if release else ""


def own_release(obj: Object | None) -> str:
    """The same, if it is a release of vnode's chart and not, say, of Admiralty's."""
    is_ours = objects.labels(obj or {}).get("helm.sh/chart", "").startswith("vnode-")
    return helm_release(obj) if is_ours else ""


def helm_upgrade(release: str) -> str:
    """The command that repairs and upgrades a release, which has the name of `helm_release`."""
    namespace, _slash, name = release.partition("/")
    words = ["helm", "upgrade", name, "charts/vnode", "--namespace", namespace]
    return shlex.join([*words, "--reset-then-reuse-values"])
