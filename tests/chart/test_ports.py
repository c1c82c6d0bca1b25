"""What the chart lets call whom: ports, NetworkPolicies, and what leads to the dashboard."""

from __future__ import annotations

import yaml

from tests import kit, pages
from tests.chart.helm import one, template
from tests.chart.matrix import MATRIX, NAMESPACE
from vnode.api.objects import Object, Objects


def test_pods_are_reached_by_the_ports_in_use_and_nobody_loses_metrics(
    rendered: dict[str, Objects],
) -> None:
    def rules(name: str, part: str) -> dict[str, Object]:
        policy = one(rendered[name], "NetworkPolicy", f"vnode-{part}")["spec"]
        return {str(rule["ports"][0]["port"]): rule for rule in policy["ingress"]}

    assert rules("defaults", "agent").keys() == {"webhook", "extender", "health"}
    assert rules("defaults", "candidate-scheduler") == {"https": {"ports": [{"port": "https"}]}}
    assert "from" not in rules("defaults", "agent")["health"]
    assert "from" not in rules("defaults", "agent")["webhook"]
    [scheduler] = rules("defaults", "agent")["extender"]["from"]
    labels = scheduler["podSelector"]["matchLabels"]
    assert labels["app.kubernetes.io/component"] == "candidate-scheduler"
    assert "9446" in rules("egress", "agent")
    assert len(rules("closed", "agent")["health"]["from"]) == 2
    assert not any(obj["kind"] == "NetworkPolicy" for obj in rendered["no network policies"])


def test_a_candidate_scheduler_that_runs_elsewhere_reaches_the_extender() -> None:
    objs = template({"debug": {"candidateScheduler": True}})
    [extender] = [
        rule
        for rule in one(objs, "NetworkPolicy", "vnode-agent")["spec"]["ingress"]
        if {"port": "extender"} in rule["ports"]
    ]
    assert "from" not in extender


def test_what_pods_may_call_is_open_unless_peers_are_named(rendered: dict[str, Objects]) -> None:
    for part in ("agent", "candidate-scheduler"):
        open_ = one(rendered["defaults"], "NetworkPolicy", f"vnode-{part}")["spec"]
        assert open_["policyTypes"] == ["Ingress"]
        closed = one(rendered["egress"], "NetworkPolicy", f"vnode-{part}")["spec"]
        assert closed["policyTypes"] == ["Ingress", "Egress"]
        [rule] = closed["egress"]
        agents, *peers = rule["to"]
        assert agents["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "agent"
        assert peers == MATRIX["egress"]["networkPolicy"]["egress"]


def test_values_of_the_page_about_egress_render() -> None:
    blocks = pages.blocks(kit.ROOT / "docs" / "install.md")
    [values] = [yaml.safe_load(b.text) for b in blocks if b.file == "values-egress.yaml"]
    [rule] = one(template(values), "NetworkPolicy", "vnode-agent")["spec"]["egress"]
    assert rule["to"][1:] == values["networkPolicy"]["egress"]


def test_the_dashboard_is_reached_where_agents_serve_it(rendered: dict[str, Objects]) -> None:
    name = "vnode-dashboard"
    objs = rendered["dashboard"]
    service = one(objs, "Service", name)
    assert service["metadata"]["annotations"] == {"example.com/tls": "true"}
    [port] = service["spec"]["ports"]
    [container] = one(objs, "Deployment", "vnode-agent")["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports[port["targetPort"]] == 9445
    ingress = one(objs, "Ingress", name)["spec"]
    [rule] = ingress["rules"]
    assert (rule["host"], ingress["ingressClassName"]) == ("vnode.example.com", "outer")
    [path] = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": name, "port": {"name": port["name"]}}
    [route] = one(objs, "HTTPRoute", name)["spec"]["rules"]
    assert route["backendRefs"] == [{"name": name, "port": port["port"]}]

    behind = rendered["dashboard behind a proxy"]
    [path] = one(behind, "Ingress", name)["spec"]["rules"][0]["http"]["paths"]
    assert path["backend"]["service"] == {"name": "proxy", "port": {"number": 4180}}
    [route] = one(behind, "HTTPRoute", name)["spec"]["rules"]
    assert route["backendRefs"] == [{"name": "proxy", "port": 4180}]
    for obj in rendered["defaults"]:
        assert obj["metadata"]["name"] != name or obj["kind"] == "ClusterRole"


def test_a_changed_port_reaches_all_that_name_it(rendered: dict[str, Objects]) -> None:
    objs = rendered["configured"]
    scheduler = yaml.safe_load(
        one(objs, "ConfigMap", "vnode-candidate-scheduler")["data"]["config.yaml"]
    )
    assert scheduler["extenders"][0]["urlPrefix"] == f"https://vnode.{NAMESPACE}.svc:8444"
    assert scheduler["parallelism"] == 4
    [container] = one(objs, "Deployment", "vnode-agent")["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports.pop("streams") == 9448
    assert ports == {"webhook": 8443, "extender": 8444, "health": 8081, "kubelet": 10250}
    assert one(objs, "Service", "vnode-metrics")["spec"]["ports"][0]["port"] == 8081


def test_without_streams_nothing_names_their_port(rendered: dict[str, Objects]) -> None:
    def named(name: str) -> list[bool]:
        objs = rendered[name]
        [container] = one(objs, "Deployment", "vnode-agent")["spec"]["template"]["spec"][
            "containers"
        ]
        listed = (
            container["ports"],
            one(objs, "Service", "vnode")["spec"]["ports"],
            one(objs, "NetworkPolicy", "vnode-agent")["spec"]["ingress"][0]["ports"],
        )
        return ["streams" in {str(p.get("name", p.get("port"))) for p in each} for each in listed]

    assert named("defaults") == [True] * 3
    assert named("no streams") == [False] * 3
