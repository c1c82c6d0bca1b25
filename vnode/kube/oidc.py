"""Implements the auth provider `oidc` of a kubeconfig: an ID token, and a refresh token for more.

The address to ask comes from the kubeconfig, or from the server that is named there. Neither need
be honest: so requests go over verified TLS, redirects are not followed, and of an issuer's answers
only the error codes of RFC 6749 are passed on.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import msgspec

from vnode.api import documents
from vnode.api.errors import ConfigError, TooLarge, Unreachable
from vnode.kube import answer_limits, answers, decoding, tls
from vnode.kube.answer_heads import BoundedConnector
from vnode.kube.credentials import DEFAULT_LIFE, EARLY, Cached

_DISCOVERY: Final = "/.well-known/openid-configuration"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, sock_connect=5)  # seconds
_NO_ADDRESS: Final = "the OIDC issuer has no address, or names none that can be asked"
_ERRORS: Final = frozenset(  # RFC 6749, 5.2
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client"),
        *("unsupported_grant_type", "invalid_scope"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """Holds a kubeconfig's settings of `oidc`; the issuer matters only with a refresh token."""

    id_token: str
    refresh_token: str
    issuer: str
    client: str
    secret: str
    authority: bytes | None  # PEM; None: those that the machine trusts


def parse_config(config: dict[str, Any], authority: bytes | None) -> OidcConfig:
    """Parse a provider's `config`; ConfigError for settings that cannot work."""
    parsed = OidcConfig(
        id_token=_text(config, "id-token"),
        refresh_token=_text(config, "refresh-token"),
        issuer=_text(config, "idp-issuer-url").rstrip("/"),
        client=_text(config, "client-id"),
        secret=_text(config, "client-secret"),
        authority=authority,
    )
    if not parsed.id_token and not parsed.refresh_token:
        raise ConfigError(
            "the kubeconfig's auth-provider oidc has neither id-token nor refresh-token: log in "
            "again, or use an exec plugin"
        )

    if parsed.refresh_token:
        if not parsed.client:
            raise ConfigError("the kubeconfig's auth-provider oidc has no client-id: add it")

        if not _secure(parsed.issuer) or set("?#@") & set(parsed.issuer):
            raise ConfigError(
                "the kubeconfig's idp-issuer-url must start with https://, and have no user, ? or #"
            )

    tls.shared(authority, False)  # so that a wrong authority is an error here
    return parsed


def _text(config: dict[str, Any], field: str) -> str:
    value = config.get(field) or ""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise ConfigError(f"the kubeconfig's {field} is not a line of plain text")

    return value


def _secure(url: object) -> bool:
    return isinstance(url, str) and url.startswith("https://")


class Oidc(Cached):
    """Returns `Bearer ID-TOKEN`, refreshed when it ends; new tokens are kept in memory only."""

    def __init__(self, config: OidcConfig) -> None:
        super().__init__()
        self._config = config
        self._token = config.id_token
        self._refresh_token = config.refresh_token

    async def _fetch(self) -> tuple[str | None, float]:
        life = _life(self._token)
        if life <= 0 or (life <= EARLY and self._refresh_token):
            await self._refresh()
            life = _life(self._token)

        return f"Bearer {self._token}", life

    async def _refresh(self) -> None:
        if not self._refresh_token:
            raise ConfigError(
                "the kubeconfig's id-token has ended, and there is no refresh-token: log in again, "
                "or use an exec plugin"
            )

        connector = BoundedConnector(ssl=tls.shared(self._config.authority, False))
        async with aiohttp.ClientSession(
            connector=connector, timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            discovered = await _ask(session, "GET", self._config.issuer + _DISCOVERY)
            url = discovered.get("token_endpoint")
            if not isinstance(url, str) or not _secure(url):
                raise Unreachable("the OIDC issuer names no token_endpoint with https://")

            answer = await _ask(session, "POST", url, self._form(), self._headers())

        token, renewed = answer.get("id_token"), answer.get("refresh_token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise Unreachable("the OIDC issuer gave no id_token")

        self._token = token
        if renewed and isinstance(renewed, str):
            self._refresh_token = renewed

    def _form(self) -> dict[str, str]:
        form = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}
        return form if self._config.secret else {**form, "client_id": self._config.client}

    def _headers(self) -> dict[str, str]:
        if not self._config.secret:
            return {}

        pair = f"{quote(self._config.client, safe='')}:{quote(self._config.secret, safe='')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


async def _ask(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    form: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the JSON object of an answer 200; Unreachable for all others."""
    try:
        async with session.request(
            method, url, data=form, headers=headers, allow_redirects=False
        ) as response:
            payload = await answers.read(response, answer_limits.STATUS.size)
    except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, TooLarge) as error:
        raise Unreachable("the OIDC issuer's answer is not HTTP, or too large") from error
    except aiohttp.InvalidURL as error:  # which may be the issuer's own words
        raise Unreachable(_NO_ADDRESS) from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unreachable(f"no answer from the OIDC issuer: {str(error) or 'timed out'}") from error
    except ValueError as error:  # a URL with a user, for one
        raise Unreachable(_NO_ADDRESS) from error

    try:
        decoded = decoding.decode_at_once(payload, answer_limits.STATUS)
    except Unreachable:
        decoded = None

    answer = decoded if isinstance(decoded, dict) else {}
    if response.status != 200:
        code = answer.get("error")
        reason = f" ({code})" if isinstance(code, str) and code in _ERRORS else ""
        raise Unreachable(f"the OIDC issuer answers {method} with HTTP {response.status}{reason}")

    return answer


def _life(token: str) -> float:
    """Return the seconds until an ID token ends; 0 for any other text."""
    try:
        part = token.split(".")[1]
        claims = documents.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        ends = msgspec.convert(claims, _Claims).exp
    except (IndexError, ValueError, *documents.NO_JSON):
        return 0.0

    return DEFAULT_LIFE if ends is None else ends - time.time()


class _Claims(msgspec.Struct):
    exp: float | None = None
