"""OIDC in a kubeconfig: who wrote it, and the issuer that it names, may be anybody."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.answering import Answer
from vnode.api.errors import ConfigError, Unreachable
from vnode.kube import endpoint, oidc, tls
from vnode.kube.kubeconfig import Kubeconfig

CONFIG = {"refresh-token": "first", "client-id": "it", "client-secret": "s3:cret"}
_AUTHORITY = trustme.CA()
_DISCOVERY = "/.well-known/openid-configuration"


def token(life: float, **claims: object) -> str:
    """Return an ID token that ends in so many seconds."""
    text = json.dumps({"exp": time.time() + life, **claims})
    return f"e30.{base64.urlsafe_b64encode(text.encode()).decode().rstrip('=')}.x"


def authorization(**config: object) -> Callable[[], Awaitable[str | None]]:
    """Return the credentials of a kubeconfig from a Secret that has this provider."""
    user = {"auth-provider": {"name": "oidc", "config": config}}
    text = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": "https://example.com"}}],
        "users": [{"name": "it", "user": user}],
    }
    return endpoint.from_kubeconfig(Kubeconfig.parse(json.dumps(text))).authorization


def trusting(issuer: TestServer) -> dict[str, str]:
    """Return the settings for an issuer whose authority is known."""
    authority = base64.b64encode(_AUTHORITY.cert_pem.bytes()).decode()
    url = str(issuer.make_url("/"))
    return {**CONFIG, "idp-issuer-url": url, "idp-certificate-authority-data": authority}


class Issuer:
    """Gives tokens; `asked` is what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.sent: list[dict[str, str]] = []
        self.authorized: list[str | None] = []
        self.answer: dict[str, Any] = {}
        self.status = 200
        self.redirect = ""
        self.scheme = "https"
        self.drip: Answer | None = None

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Record and answer any request."""
        self.asked.append(request.path)
        if self.drip is not None:
            return await self.drip(request)

        if request.path == self.redirect:
            raise web.HTTPTemporaryRedirect("/elsewhere")

        if request.path == _DISCOVERY:
            where = request.url.with_path("/token").with_scheme(self.scheme)
            return web.json_response({"token_endpoint": str(where)})

        self.sent.append({k: str(v) for k, v in (await request.post()).items()})
        self.authorized.append(request.headers.get("Authorization"))
        return web.json_response(self.answer, status=self.status)


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
async def server(issuer: Issuer) -> AsyncIterator[TestServer]:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", issuer.serve)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    running = TestServer(app, scheme="https")
    await running.start_server(ssl=context)
    yield running
    await running.close()


async def test_a_token_is_used_until_it_ends_and_its_issuer_is_not_asked() -> None:
    good = token(3600)
    assert await authorization(**{"id-token": good})() == f"Bearer {good}"


async def test_a_token_that_ended_is_refreshed_with_the_last_refresh_token(issuer, server) -> None:
    given = authorization(**trusting(server), **{"id-token": token(-5)})
    issuer.answer = {"id_token": token(30), "refresh_token": "second"}
    assert await given() == f"Bearer {issuer.answer['id_token']}"
    given._ends = 0  # type: ignore[attr-defined]  # the time after which it is looked at again
    await given()
    assert [form["refresh_token"] for form in issuer.sent] == ["first", "second"]
    pair = base64.b64encode(b"it:s3%3Acret").decode()
    assert issuer.authorized == [f"Basic {pair}"] * 2


async def test_a_client_without_a_secret_says_its_name(issuer, server) -> None:
    issuer.answer = {"id_token": token(3600)}
    await authorization(**{**trusting(server), "client-secret": None})()
    assert issuer.sent[0]["client_id"] == "it"
    assert issuer.authorized == [None]


@pytest.mark.parametrize("where", [_DISCOVERY, "/token"])
async def test_no_redirect_of_an_issuer_is_followed(issuer, server, where: str) -> None:
    """A refresh token and a client's secret would go along, to wherever it says."""
    issuer.redirect = where
    with pytest.raises(Unreachable, match="HTTP 307"):
        await authorization(**trusting(server))()

    assert "/elsewhere" not in issuer.asked


async def test_an_issuer_that_is_not_trusted_is_asked_for_nothing(issuer, server) -> None:
    with pytest.raises(Unreachable, match="certificate"):
        await authorization(**{**trusting(server), "idp-certificate-authority-data": None})()

    assert issuer.asked == []


async def test_an_issuer_s_own_words_are_not_passed_on_but_known_codes_are(issuer, server) -> None:
    for answer, message in (
        ({"error": "invalid_grant"}, r"HTTP 400 \(invalid_grant\)$"),
        ({"error": "the password is 1234"}, "HTTP 400$"),
        ({"error": ["x"]}, "HTTP 400$"),
    ):
        issuer.status, issuer.answer = 400, answer
        with pytest.raises(Unreachable, match=message):
            await authorization(**trusting(server))()


@pytest.mark.parametrize(
    "answer", [{}, {"id_token": 5}, {"id_token": "a\nb"}, {"id_token": "€"}], ids=str
)
async def test_an_answer_that_is_no_token_is_told(issuer, server, answer) -> None:
    issuer.answer = answer
    with pytest.raises(Unreachable, match="no id_token"):
        await authorization(**trusting(server))()


async def test_a_token_endpoint_without_tls_is_not_asked(issuer, server) -> None:
    issuer.scheme = "http"
    with pytest.raises(Unreachable, match="no token_endpoint with https://"):
        await authorization(**trusting(server))()

    assert issuer.asked == [_DISCOVERY]


@pytest.mark.parametrize(
    ("config", "cure"),
    [
        ({}, "log in again, or use an exec plugin"),
        ({"refresh-token": "x"}, "no client-id: add it"),
        ({"refresh-token": "x", "client-id": "it"}, "must start with https://"),
        ({**CONFIG, "idp-issuer-url": "http://issuer"}, "must start with https://"),
        ({**CONFIG, "idp-issuer-url": "https://issuer/secret?x="}, "no user, ? or #"),
        ({**CONFIG, "idp-issuer-url": "https://a@issuer"}, "no user, ? or #"),
        ({**CONFIG, "refresh-token": {"a": 1}}, "not a line of plain text"),
        ({"id-token": "a\nb"}, "not a line of plain text"),
        ({"id-token": "x", "idp-certificate-authority": "/etc/shadow"}, "carry its data inline"),
        ({"id-token": "x", "idp-certificate-authority-data": "eA=="}, "no PEM certificate"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_their_cure(config, cure: str) -> None:
    with pytest.raises(ConfigError, match=cure.replace("?", r"\?")):
        authorization(**config)


@pytest.mark.parametrize(
    "bad",
    ["x", "a.b.c", "a.!!!.c", f"a.{'W1tb' * 9000}.c", token(-1)],
    ids=["word", "no base64", "no letters", "deep", "ended"],
)
async def test_a_token_that_is_none_or_ended_needs_a_refresh_token(bad: str) -> None:
    with pytest.raises(ConfigError, match="log in again"):
        await authorization(**{"id-token": bad})()


def test_whom_the_machine_trusts_is_asked_for_a_certificate() -> None:
    context = tls.shared(None, False)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


async def test_an_issuer_whose_answer_trickles_in_is_not_waited_for(
    issuer: Issuer, server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b" ")
                await asyncio.sleep(0)

        return response

    issuer.drip = drip
    monkeypatch.setattr(oidc, "_TIMEOUT", aiohttp.ClientTimeout(total=0.1))
    given = authorization(**trusting(server))
    async with asyncio.timeout(20):
        with pytest.raises(Unreachable, match="no answer from the OIDC issuer: timed out"):
            await given()


async def test_an_issuer_that_fails_is_asked_once_by_all_who_wait(issuer, server) -> None:
    issuer.status = 400
    ask = authorization(**trusting(server))
    answers = await asyncio.gather(*(ask() for _ in range(50)), return_exceptions=True)
    assert {str(answer) for answer in answers} == {"the OIDC issuer answers POST with HTTP 400"}
    assert len(issuer.asked) == 2


@pytest.mark.parametrize(
    "named", ["https://", "https://[::1", "https://h:99999/", "https://secret:word@127.0.0.1:1/"]
)
async def test_what_an_issuer_names_that_is_no_address_is_not_quoted(
    issuer, server, named: str
) -> None:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"token_endpoint": named})

    issuer.drip = answer
    with pytest.raises(Unreachable, match=r"^the OIDC issuer has no address, or names none that"):
        await authorization(**trusting(server))()


@pytest.mark.parametrize("end", ["1e308", "1e400", "-1e308", "NaN", '"x"', "[]", "9" * 400])
async def test_a_token_of_an_odd_end_is_used_for_a_minute_or_for_ever(
    issuer, server, end: str
) -> None:
    claims = base64.urlsafe_b64encode(f'{{"exp": {end}}}'.encode()).decode()
    issuer.answer = {"id_token": f"e30.{claims}.x"}
    ask = authorization(**trusting(server))
    assert {await ask() for _ in range(10)} == {f"Bearer e30.{claims}.x"}
    assert len(issuer.asked) == 2
