"""Who a caller is, and which subresource opens which path."""

from __future__ import annotations

import pytest

from tests.certificates import issue
from vnode.kubelet.auth import authentication, authorization
from vnode.kubelet.auth.authentication import UserInfo
from vnode.kubelet.auth.cache import ExpiringCache


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time

    def now(self):
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


def test_a_certificate_names_user_and_groups():
    shown = issue("kube-apiserver-kubelet-client", groups=["system:masters", "b"])

    assert authentication.from_certificate(shown.certificate) == UserInfo(
        "kube-apiserver-kubelet-client", ("system:masters", "b", "system:authenticated")
    )


def test_a_certificate_without_a_common_name_names_nobody():
    shown = issue("", groups=["x"])

    assert authentication.from_certificate(shown.certificate) is None


def test_a_review_names_user_groups_and_extras():
    review = {
        "status": {
            "authenticated": True,
            "user": {
                "username": "prometheus",
                "uid": "1",
                "groups": ["system:authenticated"],
                "extra": {"scopes": ["a", "b"]},
            },
        }
    }

    assert authentication.from_review(review) == UserInfo(
        "prometheus", ("system:authenticated",), "1", (("scopes", ("a", "b")),)
    )


def test_a_review_that_says_no_names_nobody():
    assert authentication.from_review({"status": {"error": "invalid"}}) is None


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", ""),
        ("Bearer", ""),
        (None, ""),
        ("Bearer \udcff", ""),
    ],
)
def test_only_bearer_headers_hold_tokens(header, token):
    assert authentication.bearer_token(header) == token


@pytest.mark.parametrize(
    ("path", "subresources"),
    [
        ("/pods", ("pods", "proxy")),
        ("/pods/", ("pods", "proxy")),
        ("/podsX", ("proxy",)),
        ("/runningpods/", ("pods", "proxy")),
        ("/healthz/ping", ("healthz", "proxy")),
        ("/configz", ("configz", "proxy")),
        ("/stats/summary", ("stats",)),
        ("/metrics/resource", ("metrics",)),
        ("/logs/", ("log",)),
        ("/checkpoint/a/b/c", ("checkpoint",)),
        ("/containerLogs/a/b/c", ("proxy",)),
        ("/exec/a/b/c", ("proxy",)),
        ("/nothing", ("proxy",)),
    ],
)
def test_paths_need_the_subresources_that_a_kubelet_asks_for(path, subresources):
    assert authorization.subresources_of(path) == subresources


def test_verbs_follow_the_method():
    methods = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW")

    assert [authorization.verb_of(method, "/pods") for method in methods] == [
        "get",
        "get",
        "create",
        "update",
        "patch",
        "delete",
        "",
    ]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize(
    "path", ["/exec/a/b/c", "/attach/a/b/c", "/portForward/a/b", "/run/a/b/c", "/exec/a/b/uid/c"]
)
def test_running_a_command_takes_create_by_whatever_method(method: str, path: str):
    assert authorization.verb_of(method, path) == "create"


@pytest.mark.parametrize(
    "path", ["/containerLogs/a/b/c", "/metrics/resource", "/stats/summary", "/runningpods/"]
)
def test_reading_takes_get(path: str):
    assert authorization.verb_of("GET", path) == "get"


def test_cached_answers_expire():
    clock = Hands()
    cache: ExpiringCache[str, bool] = ExpiringCache(10, clock)
    cache.put("a", False, 10)

    assert cache.get("a") is False
    clock.time = 10
    assert cache.get("a") is None
    assert len(cache) == 0


def test_the_cache_keeps_what_is_used():
    cache: ExpiringCache[int, int] = ExpiringCache(2, Hands())
    cache.put(1, 1, 10)
    cache.put(2, 2, 10)
    cache.get(1)
    cache.put(3, 3, 10)

    assert (cache.get(1), cache.get(2), cache.get(3)) == (1, None, 3)
