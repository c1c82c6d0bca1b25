"""The alert rules, by promtool: they parse, and fire when they should and only then."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import kit
from tests.chart.helm import CHART, one, template
from tests.chart.situations import AT, ONE, SITUATIONS
from vnode.agent import replica  # declares what lives in single modules
from vnode.telemetry import metrics

RULES = CHART / "files" / "alerts.yaml"
N = 'namespace="vnode"'
PLUGIN = "vnode_exec_plugin_run_duration_seconds_count"

# Alert -> series in which it fires, and the same in which it must not, at 30 minutes.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "VnodeNoLeader": (
        {f'vnode_leader{{{N},pod="a"}}': "0x30", f'vnode_leader{{{N},pod="b"}}': "0x30"},
        {f'vnode_leader{{{N},pod="a"}}': "0x30", f'vnode_leader{{{N},pod="b"}}': "1x30"},
    ),
    "VnodeAgentAbsent": ({}, {f'vnode_build_info{{{N},version="1"}}': "1x30"}),
    "VnodeTargetUnhealthy": (
        # The leader's word counts: it makes the virtual node NotReady.
        {
            f'vnode_leader{{{N},pod="a"}}': "1x30",
            f'vnode_leader{{{N},pod="b"}}': "0x30",
            f'vnode_target_healthy{{{N},target="t",pod="a"}}': "0x30",
            f'vnode_target_healthy{{{N},target="t",pod="b"}}': "1x30",
        },
        {
            f'vnode_leader{{{N},pod="a"}}': "0x30",
            f'vnode_leader{{{N},pod="b"}}': "1x30",
            f'vnode_target_healthy{{{N},target="t",pod="a"}}': "0x30",
            f'vnode_target_healthy{{{N},target="t",pod="b"}}': "1x30",
        },
    ),
    "VnodeTargetCredentialsEnding": (
        # The leader knows more than the others.
        {
            f'vnode_target_credentials_last{{{N},target="t",pod="a"}}': "1x30",
            f'vnode_target_credentials_last{{{N},target="t",pod="b"}}': "0x30",
        },
        {f'vnode_target_credentials_last{{{N},target="t"}}': "1x30"},
    ),
    "VnodeExecPluginFailing": (
        {f'{PLUGIN}{{{N},provider="p",outcome="failed"}}': "0+1x60"},
        # It works for other Targets.
        {
            f'{PLUGIN}{{{N},provider="p",outcome="failed"}}': "0+1x60",
            f'{PLUGIN}{{{N},provider="p",outcome="succeeded"}}': "0+1x60",
        },
    ),
    "VnodeIssuedTokenEnded": (
        # The leader knows more than the others.
        {
            f'vnode_issued_token_expiry_timestamp_seconds{{{N},pod="a"}}': "0x30",
            f'vnode_issued_token_expiry_timestamp_seconds{{{N},pod="b"}}': "600x30",
        },
        {
            f'vnode_issued_token_expiry_timestamp_seconds{{{N},pod="a"}}': "0x30",
            f'vnode_issued_token_expiry_timestamp_seconds{{{N},pod="b"}}': "6000x30",
        },
    ),
    "VnodeRemovalHeld": (
        {f'vnode_target_set_removal_held{{{N},set="gpu"}}': "1x60"},
        # Confirmed, or the profiles are back.
        {f'vnode_target_set_removal_held{{{N},set="gpu"}}': "0x60"},
    ),
    "VnodePodsPending": (
        # An agent that has bound none since it began has no such series.
        {f'vnode_pending_pods{{{N},queue="unschedulable"}}': "3x60"},
        {
            f'vnode_pending_pods{{{N},queue="unschedulable"}}': "3x60",
            f'vnode_scheduling_attempts_total{{{N},result="bound"}}': "0+1x60",
        },
    ),
    "VnodeCandidatesSilent": (
        {f'vnode_candidate_duration_seconds_count{{{N},target="t",outcome="silent"}}': "0+1x60"},
        {f'vnode_candidate_duration_seconds_count{{{N},target="t",outcome="reserved"}}': "0+1x60"},
    ),
    "VnodeSchedulingErrors": (
        {f'vnode_scheduling_attempts_total{{{N},result="error"}}': "0+1x60"},
        {f'vnode_scheduling_attempts_total{{{N},result="bound"}}': "0+1x60"},
    ),
    "VnodeFeedbackSlow": (
        {
            f'vnode_feedback_lag_seconds_bucket{{{N},le="10"}}': "0x60",
            f'vnode_feedback_lag_seconds_bucket{{{N},le="30"}}': "0+9x60",
            f'vnode_feedback_lag_seconds_bucket{{{N},le="+Inf"}}': "0+9x60",
        },
        {
            f'vnode_feedback_lag_seconds_bucket{{{N},le="10"}}': "0+9x60",
            f'vnode_feedback_lag_seconds_bucket{{{N},le="30"}}': "0+9x60",
            f'vnode_feedback_lag_seconds_bucket{{{N},le="+Inf"}}': "0+9x60",
        },
    ),
    "VnodeInformerSilent": (
        {f'vnode_informer_silence_seconds{{{N},pod="a",api_server="t",resource="x"}}': "0+60x60"},
        {f'vnode_informer_silence_seconds{{{N},pod="a",api_server="t",resource="x"}}': "61x60"},
    ),
    "VnodeApiErrors": (
        {
            f'vnode_api_requests_total{{{N},api_server="t",verb="GET",code="none"}}': "0+2x60",
            f'vnode_api_requests_total{{{N},api_server="t",verb="GET",code="200"}}': "0+8x60",
        },
        {
            f'vnode_api_requests_total{{{N},api_server="t",verb="GET",code="404"}}': "0+5x60",
            f'vnode_api_requests_total{{{N},api_server="t",verb="GET",code="200"}}': "0+5x60",
        },
    ),
    "VnodeReconcileErrors": (
        {
            f'vnode_reconciles_total{{{N},controller="c",result="error"}}': "0+9x60",
            f'vnode_reconciles_total{{{N},controller="c",result="done"}}': "0+1x60",
        },
        {
            f'vnode_reconciles_total{{{N},controller="c",result="error"}}': "0+1x60",
            f'vnode_reconciles_total{{{N},controller="c",result="done"}}': "0+9x60",
        },
    ),
    "VnodeCertificateExpiring": (
        {f'vnode_certificate_expiry_timestamp_seconds{{{N},certificate="ca"}}': "400000x120"},
        {f'vnode_certificate_expiry_timestamp_seconds{{{N},certificate="ca"}}': "900000x120"},
    ),
    "VnodeEventsDropped": (
        {f'vnode_events_dropped_total{{{N},api_server="local"}}': "0+1x60"},
        {f'vnode_events_dropped_total{{{N},api_server="local"}}': "5x60"},
    ),
}
_WHEN = {"VnodeCertificateExpiring": "90m"}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_the_rules_are_valid() -> None:
    printed = kit.run(
        [kit.program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", str(RULES)]
    )
    assert f"SUCCESS: {len(rules())} rules found" in printed


def test_the_operators_object_has_the_same_rules_about_its_own_namespace() -> None:
    objs = template({"monitoring": {"prometheusRule": {"enabled": True}}}, namespace="agents")
    text = RULES.read_text()
    own = text.replace("vnode_build_info", 'vnode_build_info{namespace="agents"}')
    assert own != text
    assert one(objs, "PrometheusRule")["spec"] == yaml.safe_load(own)


def test_links_to_runbooks_open_where_the_user_says_they_are() -> None:
    where = "https://git.example.com/vnode/docs/runbooks/"
    values = {"monitoring": {"prometheusRule": {"enabled": True, "runbooks": where}}}
    (group,) = one(template(values), "PrometheusRule")["spec"]["groups"]
    pages = {path.name for path in (CHART.parents[1] / "docs" / "runbooks").iterdir()}
    for rule in group["rules"]:
        start, _, page = rule["annotations"]["runbook_url"].rpartition("/")
        assert start == where.rstrip("/")
        assert page in pages


def test_every_alert_has_a_case() -> None:
    assert CASES.keys() == {rule["alert"] for rule in rules()}


@pytest.mark.parametrize("alert", CASES)
def test_it_fires_when_it_should_and_only_then(alert: str, tmp_path: Path) -> None:
    """Fired ones are counted by the series ALERTS, so that texts need not be repeated here."""
    tests = []
    for series, firing in zip(CASES[alert], ([{"value": 1}], []), strict=True):
        labels = 'ALERTS{alertstate="firing"}'
        samples = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for _ in firing]
        tests.append(
            {
                "interval": "1m",
                "input_series": [{"series": k, "values": v} for k, v in series.items()],
                "promql_expr_test": [
                    {
                        "expr": f'count by (alertname) ({labels[:-1]},alertname="{alert}"}})',
                        "eval_time": _WHEN.get(alert, "30m"),
                        "exp_samples": samples,
                    }
                ],
            }
        )

    file = tmp_path / "test.yaml"
    body = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(body))
    kit.run([kit.program("promtool"), "test", "rules", str(file)])


@pytest.mark.parametrize("name", SITUATIONS)
def test_in_a_situation_these_alerts_fire_and_no_others(name: str, tmp_path: Path) -> None:
    series, expected = SITUATIONS[name]
    test = {
        "interval": "1m",
        "input_series": [{"series": k, "values": v} for k, v in series.items()],
        "promql_expr_test": [
            {
                "expr": 'group by (alertname, cluster) (ALERTS{alertstate="firing"})',
                "eval_time": AT,
                "exp_samples": [{"labels": _labels(alert), "value": 1} for alert in expected],
            }
        ],
    }
    body = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(body))
    kit.run([kit.program("promtool"), "test", "rules", str(file)])


def _labels(alert: str) -> str:
    name, _, cluster = alert.partition(" ")
    return f'{{alertname="{name}",cluster="{cluster}"}}' if cluster else f'{{alertname="{name}"}}'


def test_every_alert_fires_in_a_situation() -> None:
    fired = {alert.split()[0] for _series, alerts in SITUATIONS.values() for alert in alerts}
    assert fired == {rule["alert"] for rule in rules()}


def test_a_situation_has_every_metric_that_a_rule_asks_for() -> None:
    """A rule whose series are missing is silent, which would prove nothing."""
    asked = {name for rule in rules() for name in re.findall(r"\bvnode_\w+", rule["expr"])}
    assert asked == {series.partition("{")[0] for series in ONE.healthy()}


def test_every_rule_tells_clusters_apart() -> None:
    """One Prometheus may see several: a healthy one must not hide another."""
    for rule in rules():
        for labels in re.findall(r"\b(?:by|on) \(([^)]+)\)", rule["expr"]):
            assert labels.startswith("cluster, namespace"), rule["alert"]


def test_the_exposition_passes_prometheus_lint() -> None:
    assert replica
    exposed = metrics.render().decode()
    ours = [line for line in exposed.splitlines() if line.split(" ")[-1] and "vnode_" in line]
    kit.run([kit.program("promtool"), "check", "metrics"], input="\n".join([*ours, ""]))
