"""Produces the Authorization header from each kind of credentials that a kubeconfig can have.

Each class is called before every request and returns the header's value; `vnode.kube.oidc` and
`vnode.kube.plugin_credentials` have one more each. kubernetes-asyncio runs the old auth providers,
and is imported only when a kubeconfig has one: its import alone costs 40 MiB.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from vnode.api.errors import ConfigError, Unreachable

_FILE_AGE: Final = 60.0  # seconds; the kubelet refreshes projected tokens long before they end
EARLY: Final = 60.0  # seconds before its end at which a token is fetched anew
LIMIT: Final = 90.0  # seconds for a new value; an OIDC issuer is asked twice, with 30 s each
_PAUSE: Final = 5.0  # seconds after a failure in which all who ask are told of it
DEFAULT_LIFE: Final = 600.0  # seconds; for plugins that give no expirationTimestamp


@runtime_checkable
class Renewable(Protocol):
    """Credentials that may be replaced before their end, if an API server refuses them."""

    async def rejected(self, header: str | None) -> bool:
        """Hear that a header was answered by 401; tell whether to try once more with another."""


class Constant:
    """Returns a fixed value, or None."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    async def __call__(self) -> str | None:
        return self._value


class TokenFile:
    """Reads a bearer token from a file, again once a minute because it is rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._value = ""
        self._read_at = float("-inf")  # monotonic; the value is younger than _FILE_AGE or re-read

    async def __call__(self) -> str | None:
        """Return `Bearer TOKEN`; ConfigError if the file cannot be read."""
        if time.monotonic() - self._read_at >= _FILE_AGE:
            try:
                token = await asyncio.to_thread(self._path.read_text)
            except OSError as error:
                raise ConfigError(f"cannot read token {self._path}: {error.strerror}") from error

            self._value = f"Bearer {token.strip()}"
            self._read_at = time.monotonic()

        return self._value


class Cached:
    """Keeps a value that expires; never fetches it twice at once, nor soon after a failure."""

    def __init__(self) -> None:
        self._value: str | None = None
        self._ends = float("-inf")  # monotonic; the value is used until EARLY before it
        self._failure = ""  # why there is no value; it counts until `_again`, monotonic
        self._again = float("-inf")
        self._lock = asyncio.Lock()

    async def __call__(self) -> str | None:
        """Return the value, fetched anew shortly before it expires; TimeoutError after LIMIT."""
        if time.monotonic() < self._ends - EARLY:
            return self._value

        async with asyncio.timeout(LIMIT), self._lock:
            if time.monotonic() < self._again:
                raise Unreachable(self._failure)

            if time.monotonic() >= self._ends - EARLY:
                await self._renew()

            return self._value

    async def _renew(self) -> None:
        try:
            self._value, life = await self._fetch()
        except Unreachable as error:
            self._failure, self._again = str(error), time.monotonic() + _PAUSE
            raise

        self._ends = time.monotonic() + max(life, 2 * EARLY)

    async def _fetch(self) -> tuple[str | None, float]:
        raise NotImplementedError


class AuthProvider(Cached):
    """Uses an old auth provider (gcp, azure) of the operator, by kubernetes-asyncio."""

    def __init__(self, user: dict[str, Any]) -> None:
        super().__init__()
        self._user = user

    async def _fetch(self) -> tuple[str | None, float]:
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config.config_exception import ConfigException
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader

        config = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": "https://unused"}}],
            "users": [{"name": "it", "user": self._user}],
        }
        configuration = Configuration()
        try:
            await KubeConfigLoader(config).load_and_set(configuration)
        except (ConfigException, OSError, ValueError, KeyError) as error:
            raise Unreachable(f"the kubeconfig's auth-provider failed: {error}") from error

        return configuration.api_key.get("BearerToken"), DEFAULT_LIFE
