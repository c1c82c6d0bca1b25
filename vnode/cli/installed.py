"""Reads the settings of an earlier `vnode install`, so that another run does not undo them. Pure.

The webhook configuration holds the agent's address and its secret, namespace, and timeout; a
binding says whether Targets with `self: true` were asked for. `vnode install` keeps what its flags
do not change, and `vnode doctor` names the flags of a cluster in its cures.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from vnode.api import objects, webhook_paths
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli import manifests


@dataclass(frozen=True, slots=True)
class InstallSettings:
    """The settings of `vnode install`. `url` is None where the webhook calls the Service."""

    namespace: str = manifests.NAMESPACE
    url: str | None = None
    reinvocation: str = "Never"
    timeout: int = 10
    secret: str = ""
    """At the end of the webhook's paths; the agents have written it."""
    self_targets: bool = False
    """Whether the agent has the rights that Targets with `self: true` take."""
    named: tuple[str, ...] = ()
    """The namespaces to which the agent is held; none means all."""


@dataclass(frozen=True, slots=True)
class InstallFlags:
    """The flags of one run; None where they were left out."""

    namespace: str | None = None
    url: str | None = None
    to_service: bool = False
    reinvocation: str | None = None
    timeout: int | None = None
    self_targets: bool | None = None
    named: tuple[str, ...] | None = None
    all_namespaces: bool = False

    def __post_init__(self) -> None:
        if self.named and self.all_namespaces:
            raise ConfigError("--namespaces and --all-namespaces exclude each other: pass one")

        if self.url and self.to_service:
            raise ConfigError("--webhook-url and --webhook-service exclude each other: pass one")

    def applied_to(self, present: InstallSettings) -> InstallSettings:
        """Return the settings after this run, from those before."""
        url = None if self.to_service else self.url or present.url
        namespace = self.namespace or present.namespace
        if self.named and namespace in self.named:
            raise ConfigError(
                f"--namespaces has {namespace}, the agent's own, whose pods never go to targets: "
                "leave it out"
            )

        return InstallSettings(
            namespace,
            url,
            self.reinvocation or present.reinvocation,
            self.timeout or present.timeout,
            present.secret,
            present.self_targets if self.self_targets is None else self.self_targets,
            () if self.all_namespaces else self.named or present.named,
        )


def read(webhook: Object | None, *, self_targets: bool = False) -> InstallSettings:
    """Read the settings from the webhook configuration of a cluster; the defaults without one."""
    hook, *_ = (webhook or {}).get("webhooks") or [None]
    if hook is None:
        return InstallSettings(self_targets=self_targets)

    default, config = InstallSettings(), hook.get("clientConfig") or {}
    address, secret = webhook_paths.split(webhook_paths.address_of(config))
    return InstallSettings(
        _namespace(hook) or default.namespace,
        address if config.get("url") else None,
        str(hook.get("reinvocationPolicy") or default.reinvocation),
        int(hook.get("timeoutSeconds") or default.timeout),
        secret or "",
        self_targets,
        tuple(_expressed(hook, "In")),
    )


def _namespace(hook: Object) -> str:
    """Return the agent's namespace: the one that the webhook is not called for."""
    return next(_expressed(hook, "NotIn"), "")


def _expressed(hook: Object, operator: str) -> Iterator[str]:
    """Yield the namespaces that a webhook is called for by their names (In), or not (NotIn)."""
    for expression in (hook.get("namespaceSelector") or {}).get("matchExpressions") or ():
        key = expression.get("key")
        if key == manifests.NAMESPACE_NAME and expression.get("operator") == operator:
            yield from map(str, expression.get("values") or ())


def hook(settings: InstallSettings) -> Object:
    """Build the webhook configuration with these settings."""
    return manifests.webhook(
        settings.namespace,
        settings.url,
        reinvocation=settings.reinvocation,
        timeout=settings.timeout,
        secret=settings.secret,
        named=settings.named,
    )


def kept_settings(flags: InstallFlags, present: InstallSettings) -> Iterator[str]:
    """Yield a line for each setting that is kept without a flag, and differs from the default."""
    default, wanted = InstallSettings(), flags.applied_to(present)
    if present.namespace != default.namespace and flags.namespace is None:
        yield f"the agent's namespace {present.namespace} is kept; --namespace changes it"

    if wanted.url and flags.url is None:
        yield (
            f"the webhook's address {wanted.url} is kept; --webhook-url changes it, and "
            "--webhook-service makes it the Service of an agent in the cluster"
        )

    if present.reinvocation != default.reinvocation and flags.reinvocation is None:
        policy = present.reinvocation
        yield f"the reinvocation policy {policy} is kept; --reinvocation-policy changes it"

    if present.timeout != default.timeout and flags.timeout is None:
        yield f"the webhook's timeout of {present.timeout} s is kept; --webhook-timeout changes it"

    if present.self_targets and flags.self_targets is None:
        yield (
            "the agent's rights for Targets with self: true are kept; --no-self-targets takes them "
            "away"
        )

    if wanted.named and flags.named is None:
        yield (
            f"the agent stays held to {', '.join(wanted.named)}; --namespaces changes that, and "
            "--all-namespaces ends it"
        )


def command(settings: InstallSettings) -> str:
    """Return the `vnode install` command with these settings."""
    default, arguments = InstallSettings(), ["vnode", "install"]
    if settings.namespace != default.namespace:
        arguments += ["--namespace", settings.namespace]

    if settings.url:
        arguments += ["--webhook-url", settings.url.removesuffix(webhook_paths.PODS)]

    if settings.reinvocation != default.reinvocation:
        arguments += ["--reinvocation-policy", settings.reinvocation]

    if settings.timeout != default.timeout:
        arguments += ["--webhook-timeout", str(settings.timeout)]

    if settings.self_targets:
        arguments.append("--self-targets")
    if settings.named:
        arguments += ["--namespaces", ",".join(settings.named)]

    return shlex.join(arguments)


def helm_release(obj: Object | None) -> str:
    """Return `namespace/name` of the Helm release that an object belongs to, "" if to none."""
    annotations = objects.annotations(obj or {})
    release = annotations.get("meta.helm.sh/release-name", "")
    return f"{annotations.get('meta.helm.sh/release-namespace', '')}/{release}" if release else ""


def own_release(obj: Object | None) -> str:
    """Return the same as `helm_release`, if the release is one of vnode's chart; else ""."""
    is_ours = objects.labels(obj or {}).get("helm.sh/chart", "").startswith("vnode-")
    return helm_release(obj) if is_ours else ""


def helm_upgrade(release: str) -> str:
    """Return the command that repairs and upgrades a release, named as by `helm_release`."""
    namespace, _slash, name = release.partition("/")
    arguments = ["helm", "upgrade", name, "charts/vnode", "--namespace", namespace]
    return shlex.join([*arguments, "--reset-then-reuse-values"])
