"""Finds the cluster that a command talks to, by kubectl's rules.

`--kubeconfig`, else the files of $KUBECONFIG (the first that defines a name wins), else
`~/.kube/config`, else the service account of the pod that we run in.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from vnode.api import documents
from vnode.api.errors import ConfigError
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint
from vnode.kube.kubeconfig import Kubeconfig

_HOME: Final = Path("~/.kube/config")
# Fields of a kubeconfig that may be paths relative to its own folder, by section.
_FILES: Final = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}


@dataclass(frozen=True, slots=True)
class Access:
    """The options by which the user names the cluster; None where they were left out."""

    kubeconfig: Path | None = None
    context: str | None = None

    def load(self, *, home: bool = True) -> Kubeconfig | None:
        """Load the kubeconfig, with its context; None if there is none.

        `home` allows ~/.kube/config.
        """
        if self.kubeconfig is not None:
            return self._parse(self.kubeconfig)

        listed = _listed()
        if len(listed) == 1:
            return self._parse(listed[0])

        if listed:
            present = [file for file in listed if file.exists()]
            if not present:
                names = ", ".join(map(str, listed))
                raise ConfigError(f"no file of $KUBECONFIG exists: {names}; or pass --kubeconfig")

            whole = merge(present)
            return Kubeconfig.choose(whole, self.context)

        default = _HOME.expanduser()
        return self._parse(default) if home and default.exists() else None

    def contexts(self) -> list[str]:
        """Return the names of the contexts that `--context` may be."""
        files = [self.kubeconfig] if self.kubeconfig else _listed() or [_HOME.expanduser()]
        whole = merge([file for file in files if file.exists()])
        return [str(entry.get("name")) for entry in whole["contexts"]]

    def _parse(self, file: Path) -> Kubeconfig:
        text = _read(file)
        try:
            return Kubeconfig.parse(text, self.context, file.parent)
        except ConfigError as error:
            raise ConfigError(f"{file}: {error}") from error

    def endpoint(self, *, home: bool = True) -> Endpoint:
        """Return the API server's endpoint; ConfigError names the options if there is none."""
        config = self.load(home=home)
        if config is not None:
            return endpoint.from_kubeconfig(config, trust=endpoint.OPERATOR)

        try:
            return endpoint.in_cluster()
        except ConfigError as error:
            raise ConfigError(
                f"no cluster is named, and there is no {_HOME}: pass --kubeconfig FILE, set "
                "KUBECONFIG, or run in a pod that has a service account token"
            ) from error

    def client(self, name: str = "cluster") -> Client:
        """Make a client; `name` is the cluster's name in error messages."""
        return Client(self.endpoint(), name=name)


def _listed() -> list[Path]:
    """Return the files of $KUBECONFIG."""
    return [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]


def merge(files: list[Path]) -> dict[str, Any]:
    """Merge kubeconfigs as kubectl does; ConfigError names the file at fault.

    Their paths become absolute.
    """
    whole: dict[str, Any] = {"clusters": [], "users": [], "contexts": []}
    for file in files:
        config = _parsed(file)
        if "current-context" not in whole and config.get("current-context"):
            whole["current-context"] = config["current-context"]

        for plural, known in whole.items():
            if isinstance(known, list):
                names = {entry.get("name") for entry in known}
                known += [
                    _with_absolute_paths(entry, file.absolute().parent)
                    for entry in config.get(plural) or ()
                    if isinstance(entry, dict) and entry.get("name") not in names
                ]

    return whole


def _parsed(file: Path) -> dict[str, Any]:
    try:
        config = documents.parse(_read(file).decode())
    except (ConfigError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {file} is neither YAML nor JSON: {error}") from error

    if config is not None and not isinstance(config, dict):
        raise ConfigError(f"kubeconfig {file} is not a mapping with clusters, contexts and users")

    return config or {}


def _with_absolute_paths(entry: dict[str, Any], base: Path) -> dict[str, Any]:
    changed = dict(entry)
    for section, fields in _FILES.items():
        if isinstance(values := entry.get(section), dict):
            paths = {field: str(base / str(values[field])) for field in fields if values.get(field)}
            changed[section] = {**values, **paths}

    return _with_absolute_command(changed, base)


def _with_absolute_command(entry: dict[str, Any], base: Path) -> dict[str, Any]:
    """Return a user whose exec plugin is found from anywhere; one without a "/" is in the PATH."""
    user: Any = entry.get("user")
    plugin: Any = user.get("exec") if isinstance(user, dict) else None
    command = plugin.get("command") if isinstance(plugin, dict) else None
    if not isinstance(command, str) or "/" not in command:
        return entry

    return {**entry, "user": {**user, "exec": {**plugin, "command": str(base / command)}}}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read kubeconfig {path}: {error.strerror}") from error


FILE: Final = click.Path(dir_okay=False, path_type=Path)
