"""Writes kubeconfigs for agents that run as processes: of the accounts that `vnode install` makes.

So no process has an administrator's credentials. A token ends; whoever runs the command again gets
another one, and restarts the process.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from vnode.api.errors import ConfigError
from vnode.cli import kubeconfigs
from vnode.cli.access import Access
from vnode.kube import account_tokens
from vnode.kube.client import Client


async def write(
    client: Client,
    where: Access,
    account: tuple[str, str],
    file: Path,
    seconds: float,
    tell: Callable[[str], None],
) -> None:
    """Write a kubeconfig of a service account (namespace and name), for its owner only to read.

    Raises ConfigError if it cannot be written.
    """
    config = where.load()
    if config is None:
        raise ConfigError("a kubeconfig file is needed, which says where the API server is")

    await asyncio.to_thread(_check, file)
    namespace, name = account
    granted = await account_tokens.request(
        client, namespace, name, {"expirationSeconds": int(seconds)}
    )
    endpoint, _name = kubeconfigs.cluster_of(config)
    content = kubeconfigs.build(endpoint, granted.text, namespace)
    await asyncio.to_thread(_replace, file, content)
    end = f"{granted.ends:%Y-%m-%d %H:%M} UTC" if granted.ends else "a time that is not known"
    tell(
        f"{file}: kubeconfig of serviceaccount/{name}; its token ends on {end}: run the same again "
        "before that, and restart what uses it"
    )


def _check(file: Path) -> None:
    """Raise ConfigError for a kubeconfig that no earlier run has written, such as a user's own."""
    try:
        contexts = Access(file).contexts()
    except ConfigError:  # it is none
        return

    if contexts not in ([], [kubeconfigs.CONTEXT]):
        raise ConfigError(
            f"{file} is a kubeconfig that vnode install has not written (its contexts: "
            f"{', '.join(contexts)}): name another file, or remove it"
        )


def _replace(file: Path, content: bytes) -> None:
    """Write a file that only we may read, whole or not at all."""
    fresh = file.with_name(f".{file.name}.new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(content)

        fresh.replace(file)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error
