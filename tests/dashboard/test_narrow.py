"""What is wrong, targets and search, in a browser: on a phone, by keys, and without the script."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests import kit
from tests.dashboard.browser import BrowserTab
from tests.dashboard.test_pages import CONTRAST, HAS_FOCUS, _tab_to, created, is_refused, is_running
from vnode.api import kinds, objects
from vnode.kube.client import Client

PATHS = ("", "pods", "pods/default/refused", "targets/default/c2", "search?q=default", "policies")
PHONE = 400  # pixels
SIDEWAYS = "document.documentElement.scrollWidth"
CELLS = "[...document.querySelectorAll('td')].filter(each => each.checkVisibility())"
UNNAMED = (
    "[...document.querySelectorAll('input, select, a, button')].filter(each => "
    "!each.ariaLabel && !each.labels?.length && !each.textContent.trim()).length"
)
LEVELS = "[...document.querySelectorAll('h1, h2, h3')].map(each => each.localName)"


@pytest.fixture
async def pods(source: Client) -> None:
    """Make a pod that runs in c2, and one that no target takes."""
    await created(source, kit.pod_in("c2", "runs"), is_running)
    await created(source, kit.pod("refused", nodeSelector={"no": "where"}), is_refused)


async def opened(page: BrowserTab, address: str) -> None:
    await page.goto(address)
    await page.until("document.getElementById('pulse').dataset.state === 'live'")


@pytest.mark.usefixtures("pods")
async def test_a_phone_shows_all_pages_without_scrolling_sideways(
    address: str, page: BrowserTab
) -> None:
    await page.width(PHONE)
    for scheme in ("light", "dark"):
        await page.prefer(scheme)
        for path in PATHS:
            await opened(page, address + path)
            assert await page.evaluate(SIDEWAYS) <= PHONE, path
            outside = f"{CELLS}.filter(each => each.getBoundingClientRect().right > {PHONE})"
            assert await page.evaluate(f"{outside}.length") == 0, path
            unlabelled = (
                f"{CELLS}.filter(each => parseFloat(getComputedStyle(each).paddingLeft) < 99)"
            )
            assert await page.evaluate(f"{unlabelled}.length") == 0, path
            found = await page.evaluate(CONTRAST)
            assert found["count"] > 10
            assert found["low"] == [], f"{scheme} {path}"
            assert await page.evaluate(UNNAMED) == 0, path
            levels = await page.evaluate(LEVELS)
            assert levels.count("h1") == 1
            assert levels[0] == "h1", path

    await opened(page, f"{address}pods?text=refused")
    title = f"getComputedStyle({CELLS}[0], '::before').content"
    assert await page.evaluate(title) == '"Namespace"'
    assert await page.evaluate("getComputedStyle(document.querySelector('tr')).display") != "table"


@pytest.mark.usefixtures("pods")
async def test_what_is_wrong_stands_first_and_leads_to_the_pod(
    source: Client, address: str, page: BrowserTab
) -> None:
    event = {
        "metadata": {"generateName": "told-", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "gone"},
        "reason": "FailedOver",
        "message": "c9 was lost",
        "type": "Warning",
        "reportingComponent": "vnode",
        "lastTimestamp": objects.timestamp(datetime.now(UTC)),
    }
    await source.create(kinds.EVENTS, event, "default")
    await opened(page, address)
    text = await page.text()
    assert text.index("Needs attention") < text.index("Clusters")
    assert "node(s) didn't match Pod's node affinity/selector" in text
    assert "c9 was lost" in text[text.index("Last hour") :]
    await _tab_to(page, f"{HAS_FOCUS}.id === 'trouble-default/refused'")
    await page.press("Enter")
    await page.loaded()
    assert "What to do" in await page.text()


@pytest.mark.usefixtures("pods")
async def test_a_target_is_found_and_says_what_it_has_free(address: str, page: BrowserTab) -> None:
    await page.script(on=False)
    await page.goto(f"{address}search?q=DEFAULT/C2")
    await page.evaluate("document.getElementById('found-default/c2').focus()")
    await page.press("Enter")
    await page.loaded()
    text = await page.text()
    for expected in ("Target default/c2", "Free nodes", "GiB", "CredentialsLast", "runs"):
        assert expected in text

    assert "refused" not in text
