"""Decides which exec plugins a kubeconfig may run, and with which environment.

The author of a kubeconfig in a Secret chooses command, arguments and environment, and need not be
trusted with what runs where the agent does.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from vnode.api.errors import ConfigError
from vnode.kube import exec_credentials, exec_runs
from vnode.kube.plugin_credentials import PluginCredentials

_LOGIN_TIMEOUT: Final = 80.0  # seconds for a plugin that the operator chose, who may have to log in

_CODE_VARIABLE: Final = re.compile(
    r"(LD_|DYLD_|GLIBC_|PYTHON|PERL|RUBY|JAVA_|JDK_|_JAVA_|BASH_|CLOUDSDK_PYTHON).*"
    r"|NODE_OPTIONS|NODE_PATH|PATH|HOME|SHELL|ENV|IFS|GCONV_PATH|LOCPATH"
    r"|KUBECONFIG|AWS_CONFIG_FILE|AWS_SHARED_CREDENTIALS_FILE"
    r"|CLOUDSDK_CONFIG|AZURE_CONFIG_DIR"
    r"|(OPENSSL_|GIT_|LESS).*|PAGER|EDITOR|VISUAL|BROWSER|MALLOC_TRACE",
    re.IGNORECASE,
)
"""Names of variables by which a program loads code, or configuration that names commands."""


def allowed(
    plugin: Any,
    cluster: dict[str, Any],
    commands: Collection[str],
    setting: str,
    variables: Collection[str] | None = None,
) -> PluginCredentials:
    """Return the plugin of a kubeconfig if it runs one of the commands; `*` is any.

    It may be shown `cluster`, for which it is, and set these variables; without a list of them, all
    that decide no code.

    Raises ConfigError, which names the field of the configuration that lists the commands.
    """
    command = str(plugin.get("command", "")) if isinstance(plugin, dict) else ""
    trusted = "*" in commands
    if not trusted:
        if command not in commands:
            raise ConfigError(
                f"the kubeconfig runs the exec plugin {command!r}: a kubeconfig in a Secret may "
                f"only run commands listed in the agent's configuration ({setting})"
            )

        _check_environment(plugin, variables)

    spec = exec_credentials.spec_of(
        plugin if isinstance(plugin, dict) else {},
        cluster,
        exec_credentials.inherited(everything=trusted),
        _LOGIN_TIMEOUT if trusted else exec_runs.TIMEOUT,
    )
    return PluginCredentials(spec)


def decides_code(variable: str) -> bool:
    """Tell whether a variable decides what code a program runs."""
    return _CODE_VARIABLE.fullmatch(variable) is not None


def _check_environment(plugin: dict[str, Any], variables: Collection[str] | None) -> None:
    """Refuse variables that are not listed, or would have a command run other code."""
    entries = plugin.get("env") or []
    for entry in entries if isinstance(entries, list) else [entries]:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or entry is entries:
            raise ConfigError(
                "the kubeconfig's exec plugin has an env that is no list of names and values"
            )

        if decides_code(name):
            raise ConfigError(
                f"the kubeconfig sets {name} for its exec plugin, which decides what code that "
                "runs: set it where the agent runs, if it is needed"
            )

        if variables is not None and name not in variables:
            raise ConfigError(
                f"the kubeconfig sets {name} for its exec plugin: kubeconfigs of Targets may only "
                "set variables listed in the agent's configuration (namespacedExecVariables)"
            )


def check_list(variables: Collection[str], where: str) -> None:
    """Raise ConfigError if a list of variables that others may set has one that decides code."""
    if wrong := sorted(filter(decides_code, variables)):
        raise ConfigError(
            f"{where} lists {wrong[0]}, which decides what code a plugin runs: set it where the "
            "agent runs, if it is needed"
        )
