"""Makes an address with credentials from a kubeconfig or from a pod's own service account.

Everything after this module sees an `Endpoint` only. The author of a kubeconfig in a Secret need
not be trusted with the agent's own files: there, file references and exec plugins are refused
unless the operator's configuration names them (`Trust`).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from vnode.api.errors import ConfigError
from vnode.kube import credentials, kubeconfig, tls
from vnode.kube.kubeconfig import FieldError, Kubeconfig

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SERVER: Final = re.compile(
    r"https?://(\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]|[A-Za-z0-9._-]+)(:[0-9]+)?"
    r"(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?"
)
_HOST: Final = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_HOST_RULE: Final = (
    "write an IP address, or a DNS name, whose parts between the dots have 1 to 63 letters, digits "
    "and hyphens"
)
_IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")


@dataclass(frozen=True, slots=True)
class Trust:
    """Says what a kubeconfig may make the agent do: read local files, run these commands.

    `setting` is the field of the configuration that lists the commands; `variables` are those that
    it may set for them, None for all that decide no code.
    """

    files: bool = False
    commands: frozenset[str] = frozenset()
    setting: str = "execCommands"
    variables: frozenset[str] | None = None


OPERATOR: Final = Trust(files=True, commands=frozenset({"*"}))
"""The trust in kubeconfigs that the operator passes on the command line."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Holds the address of one API server and all that is needed to call it.

    `authorization` returns the value of the Authorization header, fresh at each call, or None where
    the client certificate in `ssl` identifies us. `authority` has the certificates that `ssl`
    trusts, for those who are told of the same API server; None where it trusts the machine's.
    """

    url: str
    ssl: ssl.SSLContext | None
    authorization: Callable[[], Awaitable[str | None]]
    namespace: str = "default"
    server_name: str | None = None
    authority: bytes | None = None


def in_cluster() -> Endpoint:
    """Return the API server of the cluster that this pod runs in; ConfigError outside a cluster."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    port = os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (_SERVICE_ACCOUNT / "token").exists():
        raise ConfigError(
            "no in-cluster configuration found: pass --kubeconfig FILE, or run in a pod that has a "
            "service account token"
        )

    host = f"[{host}]" if ":" in host else host
    namespace = (_SERVICE_ACCOUNT / "namespace").read_text().strip()
    authority = (_SERVICE_ACCOUNT / "ca.crt").read_bytes()
    return Endpoint(
        f"https://{host}:{port}",
        tls.create(authority, insecure=False, bounded=False),
        credentials.TokenFile(_SERVICE_ACCOUNT / "token"),
        namespace,
        authority=authority,
    )


def from_kubeconfig_file(path: str | Path, context: str | None = None) -> Endpoint:
    """Return the endpoint of a kubeconfig on disk, trusted with files and exec plugins."""
    path = Path(path)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read kubeconfig {path}: {error.strerror}") from error

    return from_kubeconfig(Kubeconfig.parse(text, context, path.parent), trust=OPERATOR)


def from_kubeconfig(config: Kubeconfig, *, trust: Trust = Trust()) -> Endpoint:
    """Return the endpoint of a kubeconfig's context.

    Raises ConfigError, which names the field that is missing or wrong and never quotes credentials.
    """
    return of(config.cluster, config.user, config.namespace, trust=trust, base=config.base)


def of(
    cluster: dict[str, Any],
    user: dict[str, Any],
    namespace: str = "default",
    *,
    trust: Trust = Trust(),
    base: Path = Path(),
) -> Endpoint:
    """Return the endpoint of a cluster and a user, as kubeconfigs have them; FieldError names the
    field of theirs that is wrong."""
    url = _server(cluster)
    files = _Files(base, trust)
    if unknown := [field for field in _IMPERSONATION if user.get(field)]:
        raise FieldError(
            f"user has {', '.join(unknown)}, and vnode does not impersonate: it would act with all "
            "rights of the account; use credentials of the account that it is to act as"
        )

    return Endpoint(
        url,
        _ssl_context(cluster, user, files) if url.startswith("https://") else None,
        _authorization(user, cluster, files, trust),
        namespace,
        _server_name(cluster),
        files.data(cluster, "certificate-authority"),
    )


def _server(cluster: dict[str, Any]) -> str:
    """Return the URL of the API server, to which paths are appended as they are.

    So it must not contain `?` or `#`: what is appended would be no path any more.
    """
    url = cluster.get("server")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise FieldError("cluster needs a server that starts with https://")

    try:
        parts = urlsplit(url)
        plain = _SERVER.fullmatch(url) and (parts.port or 0) >= 0
        host = parts.hostname or ""
    except ValueError:  # a port beyond 65535, brackets around no address
        plain, host = False, ""

    if not plain:
        raise FieldError(
            "server is not of the form https://HOST:PORT/PATH: remove what "
            "begins with ? or #, spaces, and characters that need escaping; user name and "
            "password belong under users"
        )

    if not _is_host(host):
        raise FieldError(f"server has a host that cannot be one: {_HOST_RULE}")

    return url.rstrip("/")


def _server_name(cluster: dict[str, Any]) -> str | None:
    """Return the name in the server's certificate, None where that is the host."""
    name = cluster.get("tls-server-name")
    if name is None or name == "":
        return None

    if not isinstance(name, str) or not _is_host(name):
        raise FieldError(f"tls-server-name is not the name of a host: {_HOST_RULE}")

    return name


def _is_host(name: str) -> bool:
    """Tell whether a name can be resolved, and sent in a TLS handshake."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return _HOST.fullmatch(name) is not None

    return True


@dataclass(frozen=True, slots=True)
class _Files:
    """Reads what a kubeconfig refers to: `FIELD-data` inline, or `FIELD` as a file if trusted."""

    base: Path
    trust: Trust

    def path(self, section: dict[str, Any], field: str) -> Path | None:
        name = section.get(field)
        if not name:
            return None

        if not self.trust.files:
            raise ConfigError(
                f"the kubeconfig refers to a file ({field}): a kubeconfig in a Secret must carry "
                f"its data inline ({kubeconfig.EXPORT})"
            )

        return self.base / str(name)

    def plugin(self, plugin: Any) -> Any:
        """Return an exec plugin whose command is found from anywhere, as kubectl finds it."""
        command = plugin.get("command") if isinstance(plugin, dict) else None
        if not self.trust.files or not isinstance(command, str) or "/" not in command:
            return plugin

        return {**plugin, "command": str((self.base / command).absolute())}

    def data(self, section: dict[str, Any], field: str) -> bytes | None:
        inline = section.get(f"{field}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except (binascii.Error, TypeError, ValueError) as error:
                raise FieldError(f"{field}-data is not base64") from error

        path = self.path(section, field)
        try:
            return path.read_bytes() if path else None
        except OSError as error:
            raise ConfigError(f"cannot read {field} {path}: {error.strerror}") from error


def _ssl_context(cluster: dict[str, Any], user: dict[str, Any], files: _Files) -> ssl.SSLContext:
    authority = files.data(cluster, "certificate-authority")
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    certificate = files.data(user, "client-certificate")
    bounded = not files.trust.files  # what the operator passes costs whatever it likes
    key = files.data(user, "client-key")
    if not certificate and not key:
        return tls.shared(authority, insecure, bounded=bounded)

    if not certificate or not key:
        raise FieldError("user needs both client-certificate and client-key")

    context = tls.create(authority, insecure, bounded=bounded)
    tls.load_client_certificate(context, certificate, key, bounded=bounded)
    return context


def _authorization(
    user: dict[str, Any], cluster: dict[str, Any], files: _Files, trust: Trust
) -> Callable[[], Awaitable[str | None]]:
    if user.get("token"):
        if not str(user["token"]).isprintable():
            raise FieldError("token has a line break or another control character")

        return credentials.Constant(f"Bearer {user['token']}")

    if token_file := files.path(user, "tokenFile"):
        return credentials.TokenFile(token_file)

    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return credentials.Constant(f"Basic {base64.b64encode(pair).decode()}")

    # Few kubeconfigs have a plugin or a provider, and commands start sooner without these modules.
    if plugin := user.get("exec"):
        from vnode.kube import exec_plugins

        plugin = files.plugin(plugin)
        return exec_plugins.allowed(plugin, cluster, trust.commands, trust.setting, trust.variables)

    if provider := user.get("auth-provider"):
        name = provider.get("name") if isinstance(provider, dict) else None
        if name != "oidc" and "*" not in trust.commands:  # others may run any command
            raise ConfigError(
                f"the kubeconfig uses the auth-provider {name!r}: a kubeconfig in a Secret may "
                "only use oidc, a token, a certificate, or an exec plugin that the agent allows"
            )

        if name != "oidc":
            return credentials.AuthProvider(user)

        from vnode.kube import oidc

        config = provider.get("config")
        section = config if isinstance(config, dict) else {}
        return oidc.Oidc(
            oidc.parse_config(section, files.data(section, "idp-certificate-authority"))
        )

    return credentials.Constant(None)
