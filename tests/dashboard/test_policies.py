"""The page of policies in a browser: plans and what came of them, live, in light and dark."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.dashboard.browser import BrowserTab
from tests.dashboard.test_pages import CONTRAST, created, is_running, shows
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

SCRIPT = "<img src=x onerror=alert(1)><script>document.title='broken'</script>"


def built(kind: Kind, name: str, **spec: object) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


@pytest.fixture
async def policies(source: Client) -> AsyncIterator[None]:
    """Make a placement policy that is in force, one that is not, and an override policy."""
    placement, overrides = kinds.PLACEMENT_POLICIES, kinds.OVERRIDE_POLICIES
    targets = [{"cluster": "c2", "weight": 2}, {"cluster": "c3", "weight": 1}]
    rules = [{"labels": {"example.com/a": "b"}}]
    await source.create(placement, built(placement, "web", targets=targets), "default")
    await source.create(
        placement, built(placement, "lost", targets=[{"cluster": "moon"}]), "default"
    )
    await source.create(overrides, built(overrides, "mirror", rules=rules), "default")
    yield
    for kind, name in ((placement, "web"), (placement, "lost"), (overrides, "mirror")):
        await source.delete(kind, name, "default")


@pytest.mark.usefixtures("policies")
async def test_plans_are_shown_and_follow_what_happens(
    source: Client, address: str, page: BrowserTab
) -> None:
    await page.goto(f"{address}policies")
    await page.until("document.getElementById('pulse').dataset.state === 'live'")
    await page.until(shows("there is no Target or ClusterTarget moon"))
    await page.evaluate("window.stayed = true")
    pod = await created(source, kit.pod("web"), is_running)
    await page.until(shows("pod/default/web"))
    row = "[...document.querySelectorAll('tr')].map(row => row.textContent)"
    await page.until(f"{row}.includes('pod/default/web1default/c2110')")
    assert await page.evaluate("window.stayed")
    text = await page.text()
    for expected in ("default/placementpolicy/web", "Spread", "UnknownCluster", "In force"):
        assert expected in text

    assert "overridepolicy/default/mirror" in text
    for scheme in ("light", "dark"):
        await page.prefer(scheme)
        found = await page.evaluate(CONTRAST)
        assert found["count"] > 10
        assert found["low"] == [], scheme

    await page.goto(f"{address}pods/default/web")
    await page.until(shows(objects.annotations(pod)[keys.PLACED]))
    await page.until(shows("pod/default/web has 1 replicas: "))


async def test_the_words_of_a_policy_do_nothing_in_the_page(
    source: Client, address: str, page: BrowserTab
) -> None:
    kind = kinds.PLACEMENT_POLICIES
    await source.create(kind, built(kind, "hostile", targets=[{"cluster": SCRIPT}]), "default")
    try:
        await page.goto(f"{address}policies")
        await page.until(shows(f"there is no Target or ClusterTarget {SCRIPT}"))
        assert await page.evaluate("document.title") == "Policies · c1 · vnode"
    finally:
        await source.delete(kind, "hostile", "default")
