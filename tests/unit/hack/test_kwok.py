"""What kwok is told to play, and the certificates and kubeconfigs of a cluster."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from hack.fleetlib import certificates, commands, kubeconfigs, kwok


def test_kwok_plays_nodes_and_pods_and_serves_their_logs():
    found = list(yaml.safe_load_all(kwok.configuration("c1", Path("/f/c1"))))
    kinds = [document["kind"] for document in found]
    stages = {d["metadata"]["name"] for d in found if d["kind"] == "Stage"}
    assert {"node-ready", "pod-ready", "pod-ready-again", "pod-complete", "pod-delete"} <= stages
    assert {"ClusterLogs", "ClusterExec", "ClusterAttach", "ClusterPortForward"} <= set(kinds)
    logs = next(d for d in found if d["kind"] == "ClusterLogs")["spec"]["logs"]
    assert logs[0]["logsFile"] == "/f/c1/pods.log"
    assert logs[1] == {"containers": ["loud"], "logsFile": "/f/c1/loud.log"}


def test_log_lines_have_the_form_of_a_container_runtime():
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    line = kwok.log_line("hello there", at)
    assert line == "2026-01-02T03:04:05.000006000Z stdout F hello there\n"
    assert re.match(r"\S+T\S+\.\d{9}Z (stdout|stderr) [FP] ", line)


def test_a_node_is_kwoks_and_has_the_size_that_was_asked_for():
    node = kwok.node("c1-node-0", "c1", "10.0.0.1", kwok.NodeSize("4", "8Gi", "500"), "a")
    assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "c1-a"
    for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
        assert (amounts["cpu"], amounts["memory"], amounts["pods"]) == ("4", "8Gi", "500")


def test_a_client_certificate_names_user_and_groups():
    authority = certificates.authority("ca")
    certificate = authority.client("me", "system:masters").certificate
    subject = certificate.subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "me"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"
    certificate.verify_directly_issued_by(authority.pair.certificate)


def test_a_serving_certificate_names_addresses_and_hosts():
    pair = certificates.authority("ca").server("x", ["10.0.0.1", "kubernetes.default"])
    names = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes.default"]


def test_a_kubeconfig_is_whole_and_private(tmp_path):
    authority = certificates.authority("ca")
    text = kubeconfigs.render("c1", "10.0.0.1", "admin", authority, authority.client("admin"))
    kubeconfigs.write(tmp_path / "k", text)
    found = yaml.safe_load((tmp_path / "k").read_text())
    assert found["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"
    assert found["current-context"] == "c1"
    assert (tmp_path / "k").stat().st_mode & 0o077 == 0


def test_a_candidate_schedulers_own_settings_are_kept():
    config = {"clientConnection": {"kubeconfig": "/mine"}, "profiles": [{"schedulerName": "x"}]}
    found = commands.tuned(config, "/default")
    assert found["clientConnection"]["kubeconfig"] == "/mine"
    assert found["clientConnection"]["qps"] == commands.CLIENT_QPS
    assert found["leaderElection"] == {"leaderElect": False}
    assert found["profiles"] == config["profiles"]


def test_kwok_tells_usage_only_where_it_is_asked_for():
    def kinds(*, usage: bool) -> set[str]:
        text = kwok.configuration("c1", Path("/f/c1"), usage=usage)
        return {document["kind"] for document in yaml.safe_load_all(text)}

    assert kinds(usage=True) - kinds(usage=False) == {"Metric", "ClusterResourceUsage"}


def test_a_node_names_the_path_of_its_own_metrics():
    (metric,) = (
        document
        for document in yaml.safe_load_all(kwok.configuration("c1", Path("/f"), usage=True))
        if document["kind"] == "Metric"
    )
    node = kwok.node("n-1", "c1", "10.0.0.1", kwok.NodeSize(), "a")
    path = node["metadata"]["annotations"]["metrics.k8s.io/resource-metrics-path"]
    assert path == metric["spec"]["path"].replace("{nodeName}", "n-1")
