"""Validate deployment files with the tools that read them: Docker, GitHub and Kubernetes."""

import ipaddress
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from uvicorn.middleware.proxy_headers import _TrustedHosts

from deploy.proxy.program import haproxy

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent
COMPOSE, SPACE = "vendor.compose-spec", "deploy/space/front_matter.yaml"
CHECKS = {
    "Dockerfile": ("hadolint", "Dockerfile"),
    "compose": ("check-jsonschema", "--builtin-schema", COMPOSE, "compose.yaml"),
    "compose for a GPU": ("check-jsonschema", "--builtin-schema", COMPOSE, "compose.gpu.yaml"),
    "workflows": (
        "check-jsonschema", "--builtin-schema", "vendor.github-workflows",
        *(str(file.relative_to(ROOT)) for file in sorted(ROOT.glob(".github/workflows/*.yml"))),
    ),
    "manifests": ("kubernetes-validate", "--strict", "deploy/k8s/attention-lab.yaml"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHECKS)
def test_its_own_tool_accepts_it(what: str):
    tool, *arguments = CHECKS[what]
    result = subprocess.run(
        [TOOLS / tool, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_all_files_agree_on_port_and_user():
    [port], [user] = (
        re.findall(rf"^{word} (\d+)$", read("Dockerfile"), re.M) for word in ("EXPOSE", "USER")
    )
    deployment, service = yaml.safe_load_all(read("deploy/k8s/attention-lab.yaml"))
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["ports"] == [{"name": "http", "containerPort": int(port)}]
    assert service["spec"]["ports"][0]["targetPort"] == "http"
    # the user ID on Hugging Face Spaces
    assert pod["securityContext"]["runAsUser"] == int(user) == 1000
    assert f"--uid {user}" in read("Dockerfile")
    assert next(yaml.safe_load_all(read(SPACE)))["app_port"] == int(port)
    sites = [f"{name}:{port}" for name in ("site", "second-site")]
    proxy = yaml.safe_load(read("compose.yaml"))["services"]["proxy"]["environment"]
    assert [proxy["FIRST_SITE"], proxy["SECOND_SITE"]] == sites
    assert set(re.findall(r"\$\{(\w+)\}", read("deploy/proxy/haproxy.cfg"))) == set(proxy)
    [job] = yaml.safe_load(read("deploy/prometheus/prometheus.yaml"))["scrape_configs"]
    assert job["static_configs"] == [{"targets": sites}]


def test_writable_paths_are_volumes_in_read_only_containers():
    writable = re.findall(r"(?:HF_HUB_CACHE|HOME)=(\S+)", read("Dockerfile"))
    assert len(writable) == 2
    services = yaml.safe_load(read("compose.yaml"))["services"]
    for name in ("site", "second-site"):
        service = services[name]
        assert service["read_only"]
        mounted = [*service["tmpfs"], *(volume.split(":")[1] for volume in service["volumes"])]
        assert {*writable, "/tmp"} == set(mounted)
    deployment = next(yaml.safe_load_all(read("deploy/k8s/attention-lab.yaml")))
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {*writable, "/tmp"}


def test_image_defaults_are_safe():
    """No visitor can download models, and no container can use the whole machine."""
    assert re.findall(r"ATTENTION_LAB_DOWNLOADS=(\S+) \\", read("Dockerfile")) == ["off"]
    services = yaml.safe_load(read("compose.yaml"))["services"]
    for name in ("site", "second-site", "ray-head", "ray-worker"):
        assert services[name]["mem_limit"]
        assert services[name]["cpus"] == "${CPUS:-0}"
        assert 1_000 <= services[name]["pids_limit"] < 10_000


def test_scale_profile_sites_use_its_model_server():
    variables = dict(re.findall(r"^(\w+)=(.*)$", read("deploy/scale.env"), re.M))
    compose = yaml.safe_load(read("compose.yaml"))
    services = compose["services"]
    passed_on = set(re.findall(r"\$\{(\w+)", read("compose.yaml")))
    assert set(variables) <= passed_on
    server = urlsplit(variables["ATTENTION_LAB_SERVE_URL"])
    assert server.hostname == "ray-head"
    assert f"http://127.0.0.1:{server.port}/healthz" in str(services["ray-head"]["healthcheck"])
    assert f'"--port", type=int, default={server.port}' in read("deploy/ray/__main__.py")
    # nodes without the token are rejected, and the image's own health check is for a site
    for name in ("ray-head", "ray-worker"):
        assert services[name]["environment"]["RAY_AUTH_MODE"].startswith("${RAY_AUTH_MODE:-")
        assert services[name]["healthcheck"]
    assert variables["RAY_AUTH_MODE"] == "token"


def test_proxy_starts_before_its_sites_have_an_address():
    program = haproxy()
    assert program is not None
    names = {"FIRST_SITE": "first.invalid:8501", "SECOND_SITE": "second.invalid:8501"}
    result = subprocess.run(
        [program, "-c", "-f", "deploy/proxy/haproxy.cfg"],
        cwd=ROOT,
        env={**os.environ, **names, "BIND": "127.0.0.1:8080"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr


def test_only_compose_proxy_is_trusted():
    """Trust neither visitors on the private network nor Docker's gateway, which many may share."""
    variables = dict(re.findall(r"^(\w+)=(.*)$", read("deploy/scale.env"), re.M))
    trusted = _TrustedHosts(variables["FORWARDED_ALLOW_IPS"])
    composition = yaml.safe_load(read("compose.yaml"))
    proxy = composition["services"]["proxy"]["networks"]["default"]["ipv4_address"]
    [network] = composition["networks"]["default"]["ipam"]["config"]
    inside = ipaddress.ip_network(network["subnet"])
    assert ipaddress.ip_address(proxy) in inside
    assert "127.0.0.1" in trusted
    assert [str(address) for address in inside if str(address) in trusted] == [proxy]
    assert "203.0.113.9" not in trusted
