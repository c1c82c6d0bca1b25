"""The dashboard in a browser, on a fleet: what it shows, live, with keys alone, light and dark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import aiohttp
import yaml

from tests import kit
from tests.dashboard.browser import BrowserTab
from tests.dashboard.conftest import running
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.dashboard import page as pages
from vnode.kube.client import Client

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
HAS_FOCUS = "document.activeElement"
PATHS = (
    *("", "pods", "pods/default/runs", "pods/default/refused"),
    *("targets/default/c2", "search?q=r", "policies"),
)


async def created(
    source: Client, pod: Object, condition: Callable[[Object], bool] = bool
) -> Object:
    await source.create(kinds.PODS, pod, "default")
    return await kit.until_one(source, kinds.PODS, objects.name(pod), "default", condition)


def is_running(pod: Object) -> bool:
    return kit.phase(pod) == "Running"


def is_refused(pod: Object) -> bool:
    return (objects.condition(pod, "PodScheduled") or {}).get("status") == "False"


def shows(text: str) -> str:
    """Return an expression: the page shows this text."""
    return f"document.body.innerText.includes({json.dumps(text)})"


async def test_targets_their_capacity_and_the_flow_of_pods_are_shown(
    fleet: Fleet, source: Client, address: str, page: BrowserTab
) -> None:
    pod = await created(source, kit.pod("shown"), is_running)
    name = objects.spec(pod)["nodeName"].removeprefix("admiralty-default-")
    await page.goto(address)
    await page.until(f"document.getElementById('flow-default/{name}-running')")
    text = await page.text()
    for target in ("default/c2", "default/c3"):
        assert target in text

    assert "Ready" in text
    assert "of 768 GiB" in text
    drawn = await page.evaluate("document.querySelector('.graph').textContent")
    assert "c1" in drawn
    assert "1 pod in targets" in drawn


async def test_a_pod_that_is_created_and_one_that_goes_are_seen_without_loading_the_page_again(
    source: Client, address: str, page: BrowserTab
) -> None:
    await page.goto(f"{address}pods")
    await page.until("document.getElementById('pulse').dataset.state === 'live'")
    await page.evaluate("window.stayed = true")
    await created(source, kit.pod("newcomer"), is_running)
    await page.until(shows("newcomer") + " && " + shows("Running"))
    await source.delete(kinds.PODS, "newcomer", "default")
    await page.until("!" + shows("newcomer"))
    assert await page.evaluate("window.stayed")


async def test_the_story_of_a_pod_is_reached_by_keys_alone_and_focus_stays_while_it_changes(
    source: Client, address: str, page: BrowserTab
) -> None:
    await created(source, kit.pod("keys", nodeSelector={"no": "where"}), is_refused)
    await page.goto(address)
    await page.press("Tab")
    assert await page.evaluate(f"{HAS_FOCUS}.className") == "skip"
    await _tab_to(page, f"{HAS_FOCUS}.textContent === 'Pods'")
    await _enter(page)
    await _tab_to(page, f"{HAS_FOCUS}.id === 'pod-default/keys'")
    outline = await page.evaluate(f"getComputedStyle({HAS_FOCUS}).outlineWidth")
    assert outline == "3px"
    await page.until("document.getElementById('pulse').dataset.state === 'live'")
    await created(source, kit.pod("another", nodeSelector={"no": "where"}), is_refused)
    await page.until("document.getElementById('pod-default/another')")
    assert await page.evaluate(f"{HAS_FOCUS}.id") == "pod-default/keys"
    await _enter(page)
    text = await page.text()
    assert "default/keys" in text
    assert "Unschedulable" in text
    assert "node(s) didn't match Pod's node affinity/selector" in text
    assert "What to do" in text


async def _tab_to(page: BrowserTab, condition: str) -> None:
    for _ in range(40):
        if await page.evaluate(condition):
            return

        await page.press("Tab")

    raise AssertionError(f"not reached by Tab: {condition}")


async def _enter(page: BrowserTab) -> None:
    await page.press("Enter")
    await page.loaded()


async def test_a_story_follows_its_pod(source: Client, address: str, page: BrowserTab) -> None:
    gated = kit.pod("followed", schedulingGates=[{"name": "example.com/later"}])
    await created(source, gated)
    await page.goto(f"{address}pods/default/followed")
    await page.until(shows("Gated"))
    await source.patch(kinds.PODS, "followed", {"spec": {"schedulingGates": None}}, "default")
    await page.until(shows("the pod runs in target"))


async def test_light_and_dark_differ_and_all_texts_have_enough_contrast(
    source: Client, address: str, page: BrowserTab
) -> None:
    await created(source, kit.pod("runs"), is_running)
    await created(source, kit.pod("refused", nodeSelector={"no": "where"}), is_refused)
    grounds = set()
    for scheme in ("light", "dark"):
        await page.prefer(scheme)
        for path in PATHS:
            await page.goto(address + path)
            await page.until("document.getElementById('pulse').dataset.state === 'live'")
            found = await page.evaluate(CONTRAST)
            assert found["count"] > 10
            assert found["low"] == [], f"{scheme} {path}"

        grounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert len(grounds) == 2


async def test_without_the_script_the_page_asks_for_itself_again(
    source: Client, address: str, page: BrowserTab
) -> None:
    await page.script(on=False)
    await page.goto(f"{address}pods?text=later")
    assert "No pods match" in await page.text()
    await created(source, kit.pod("later"), is_running)
    page.forget_load()
    await page.loaded()
    assert "later" in await page.text()
    assert not [one for one in page.requests if one.endswith("/events")]


async def test_a_candidate_that_waits_for_its_target_is_shown_there(
    fleet: Fleet, source: Client, address: str, page: BrowserTab
) -> None:
    fleet.run("stop", "c2", "candidate-scheduler")
    try:
        await source.create(kinds.PODS, kit.pod_in("c2", "asks"), "default")
        await page.goto(address)
        await page.until("document.getElementById('flow-default/c2-candidates')")
    finally:
        fleet.run("start", "c2", "candidate-scheduler")

    await page.until("document.getElementById('flow-default/c2-running')")


async def test_a_pod_that_crashes_is_red_and_says_why(
    fleet: Fleet, source: Client, address: str, page: BrowserTab
) -> None:
    pod = await created(source, kit.pod("crashes"), is_running)
    name = objects.spec(pod)["nodeName"].removeprefix("admiralty-default-")
    async with fleet.client(name) as target:
        await _crash(target, pod)

    for scheme in ("light", "dark"):
        await page.prefer(scheme)
        await page.goto(address)
        await page.until(f"document.getElementById('flow-default/{name}-failing')")
        assert (await page.evaluate(CONTRAST))["low"] == []
        await page.goto(f"{address}pods?stage=failing")
        await page.until(shows("OOMKilled, exit code 137"))
        badge = "document.querySelector('.badge[data-tone=failing]')"
        assert await page.evaluate(f"{badge}.textContent") == "Failing"
        assert (await page.evaluate(CONTRAST))["low"] == []

    await page.goto(f"{address}pods/default/crashes")
    await page.until(shows("Crashing"))


async def _crash(target: Client, proxy: Object) -> None:
    """Report as a kubelet does that the container of the delegate has run out of memory."""
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    [delegate] = await target.list(kinds.PODS, "default", label_selector=selector)
    [container] = objects.status(delegate)["containerStatuses"]
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    ready = {
        **container,
        "ready": False,
        "started": False,
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}},
        "lastState": {"terminated": ended},
    }
    body = {"status": {"containerStatuses": [ready]}}
    await target.patch(kinds.PODS, objects.name(delegate), body, "default", subresource="status")


async def test_texts_of_clusters_do_nothing_in_the_page(
    source: Client, address: str, page: BrowserTab
) -> None:
    script = "<img src=x onerror=alert(1)><script>document.title='broken'</script>"
    held = kit.pod("hostile", schedulingGates=[{"name": "example.com/later"}])
    await created(source, held)
    event = {
        "metadata": {"generateName": "hostile-", "namespace": "default"},
        "involvedObject": await _reference(source, "hostile"),
        "reason": "Odd",
        "message": script,
        "type": "Warning",
    }
    await source.create(kinds.EVENTS, event, "default")
    await page.goto(f"{address}pods/default/hostile")
    assert script in await page.text()
    assert await page.evaluate("document.title") == "default/hostile · c1 · vnode"


async def test_an_administrator_of_one_namespace_sees_that_one(
    fleet: Fleet, source: Client, page: BrowserTab, tmp_path: Path
) -> None:
    await created(source, kit.pod("mine"), is_running)
    fleet.kubectl("c1", "create", "serviceaccount", "owner")
    words = ["--clusterrole=admin", "--serviceaccount=default:owner"]
    fleet.kubectl("c1", "create", "rolebinding", "owner", *words)
    try:
        config = yaml.safe_load(fleet.kubeconfig("c1").read_text())
        token = fleet.kubectl("c1", "create", "token", "owner").strip()
        config["users"][0]["user"] = {"token": token}
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        refused = vnode("dashboard", "--kubeconfig", kubeconfig)
        assert refused.code == 1
        assert "pass -n NAMESPACE" in refused.err
        async with running(fleet, "-n", "default", kubeconfig=kubeconfig) as address:
            await page.goto(address)
            await page.until(shows("Nodes are not shown: no right to read them"))
            await page.goto(f"{address}pods")
            await page.until(shows("mine") + " && " + shows("Running"))
            await _finds_nothing_of_others(source, address, page)
            await page.goto("about:blank")  # before what it shows ends
    finally:
        for kind in ("rolebinding", "serviceaccount"):
            fleet.kubectl("c1", "delete", kind, "owner")


async def _finds_nothing_of_others(source: Client, address: str, page: BrowserTab) -> None:
    async with kit.namespace_in_all("hidden-team", source) as namespace:
        held = kit.pod("hidden", schedulingGates=[{"name": "example.com/later"}])
        await source.create(kinds.PODS, held, namespace)
        await page.goto(f"{address}search?q=hidden")
        assert "Nothing that you may see has it" in await page.text()
        await page.goto(address)
        assert "hidden" not in await page.text()
        await source.delete(kinds.PODS, "hidden", namespace)


async def _reference(source: Client, name: str) -> Object:
    pod = await source.get(kinds.PODS, name, "default")
    return objects.reference(pod, "Pod", "v1")


async def test_strangers_on_the_machine_and_other_names_are_kept_out(address: str) -> None:
    root = address.rsplit("/", 2)[0]
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{root}/") as answer:
            assert answer.status == 404

        async with session.get(address, headers={"Host": "attacker.example"}) as answer:
            assert answer.status == 403

        async with session.post(address) as answer:
            assert answer.status == 405

        async with session.get(f"{address}pods/default/nobody") as answer:
            assert answer.status == 404
            assert "there is no pod &#x27;nobody&#x27;" in await answer.text()
            assert answer.headers["Content-Security-Policy"] == pages.POLICY
