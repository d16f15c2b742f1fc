"""The manifests in deploy/k8s: valid, closed, of one piece, and what kustomize makes of them."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import typer
import yaml
from composition import OWN, ROOT, SECRETS, load
from manifests import (
    CUSTOM,
    EXAMPLE,
    K8S,
    Object,
    Party,
    assemble,
    build,
    containers,
    copied,
    may_connect,
    parties,
    pods,
    selects,
)

from rejoinder.run.config import load_config
from rejoinder_cli.main import app

OLDEST = "1.29"  # of Kubernetes, that the manifests are meant for


@pytest.fixture(scope="module")
def built() -> list[Object]:
    return assemble(EXAMPLE)


def check(made: Object, version: str) -> None:
    """By the API's schema, with no field that it does not know."""
    schema = CUSTOM.get((made["apiVersion"], made["kind"]))
    if schema is None:
        kubernetes_validate.validate(made, version, strict=True)
    else:
        jsonschema.validate(made, schema)


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_every_manifest_fits_the_api(version: str) -> None:
    manifests = assemble(EXAMPLE)
    kinds = {made["kind"] for made in manifests}
    assert kinds >= {"StatefulSet", "Deployment", "NetworkPolicy", "ServiceMonitor", "ScaledObject"}
    for made in manifests:
        check(made, version)


def test_a_wrong_field_is_found() -> None:
    for kind, path in (("StatefulSet", ("spec", "template")), ("ScaledObject", ("spec",))):
        wrong = copy.deepcopy(next(o for o in assemble(EXAMPLE) if o["kind"] == kind))
        place: Any = wrong
        for step in path:
            place = place[step]
        place["replicaz"] = 1
        with pytest.raises((kubernetes_validate.ValidationError, jsonschema.ValidationError)):
            check(wrong, OLDEST)


def test_everything_is_in_the_namespace(built: list[Object]) -> None:
    for made in built:
        if made["kind"] != "Namespace":
            assert made["metadata"]["namespace"] == "rejoinder", made["metadata"]["name"]
    assert {"redis", *OWN} == set(pods(built))


@pytest.mark.parametrize("tls", [False, True])
def test_kustomize_makes_the_same(tmp_path: Path, tls: bool) -> None:
    example = with_tls(tmp_path) if tls else copied(tmp_path)
    expected = {_key(made): made for made in assemble(example)}
    made = {_key(made): made for made in build(example)}
    assert made.keys() == expected.keys()
    for key, one in made.items():
        assert one == expected[key]


def _key(made: Object) -> tuple[str, str]:
    return made["kind"], made["metadata"]["name"]


def with_tls(folder: Path) -> Path:
    """The example, with the component that it has in a comment."""
    example = copied(folder)
    file = example / "kustomization.yaml"
    text = file.read_text("utf-8")
    assert "  #- ../../components/redis-tls" in text
    file.write_text(text.replace("  #- ../", "  - ../"), "utf-8")
    return example


def test_the_bus_with_tls(tmp_path: Path) -> None:
    """The server has the certificates where it looks, and so has the client's URL its authority."""
    objects = assemble(with_tls(tmp_path))
    for made in objects:
        check(made, OLDEST)
    made = pods(objects)
    folder = _variables(made["redis"])["REDIS_CERTIFICATES"]
    assert _secret(made["redis"], folder) == {"secretName": "rejoinder-redis-tls"}
    secrets = (EXAMPLE / "secrets.env.example").read_text("utf-8")
    (authority,) = re.findall(r"rediss://\S*@redis:6379/0\?ssl_ca_certs=(\S+)", secrets)
    for name in ("learner", "worker"):
        secret = _secret(made[name], str(Path(authority).parent))
        assert secret["secretName"] == "rejoinder-redis-tls"
        assert [item["path"] for item in secret["items"]] == [Path(authority).name], "no key"


def _variables(pod: Object) -> dict[str, str]:
    (container,) = pod["spec"]["containers"]
    return {v["name"]: v.get("value", "") for v in container["env"]}


def _secret(pod: Object, folder: str) -> Object:
    """What is mounted there."""
    (container,) = pod["spec"]["containers"]
    (name,) = (m["name"] for m in container["volumeMounts"] if m["mountPath"] == folder)
    (secret,) = (v["secret"] for v in pod["spec"]["volumes"] if v["name"] == name)
    assert isinstance(secret, dict)
    return secret


def test_a_run_is_whatever_the_overlay_says(built: list[Object], tmp_path: Path) -> None:
    pod = pods(built)["learner"]
    (container,) = pod["spec"]["containers"]
    config = Path(container["command"][2])
    (name,) = (m["name"] for m in container["volumeMounts"] if m["mountPath"] == str(config.parent))
    (source,) = (v["configMap"]["name"] for v in pod["spec"]["volumes"] if v["name"] == name)
    (made,) = (o for o in built if _key(o) == ("ConfigMap", source))
    file = tmp_path / config.name
    file.write_text(made["data"][config.name], "utf-8")
    most = next(o for o in built if o["kind"] == "ScaledObject")["spec"]["maxReplicaCount"]
    assert load_config(file).batch == 10 * most, "ten games for each worker"


def test_the_gateway_can_be_scheduled_without_a_learner(built: list[Object]) -> None:
    for name, other in (("gateway", "learner"), ("learner", "gateway")):
        affinity = pods(built)[name]["spec"]["affinity"]["podAffinity"]
        assert affinity.keys() == {"preferredDuringSchedulingIgnoredDuringExecution"}
        (weighted,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
        selector = weighted["podAffinityTerm"]["labelSelector"]
        assert selects(selector, pods(built)[other]["metadata"]["labels"])


def test_names_lead_somewhere(built: list[Object]) -> None:
    """Config maps, secrets, claims, services and targets that are spoken of are there."""
    there = {(made["kind"], made["metadata"]["name"]): made for made in built}
    for name, pod in pods(built).items():
        for container in containers(pod):
            for source in container.get("envFrom", ()):
                assert ("ConfigMap", source["configMapRef"]["name"]) in there
            for variable in container.get("env", ()):
                if ref := variable.get("valueFrom", {}).get("secretKeyRef"):
                    assert ref["key"] in there["Secret", ref["name"]]["data"], name
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            claimed = {"runs"} if name == "learner" else set()
            assert mounted <= {volume["name"] for volume in pod["spec"]["volumes"]} | claimed
        for volume in pod["spec"]["volumes"]:
            if config := volume.get("configMap"):
                assert ("ConfigMap", config["name"]) in there
            if claim := volume.get("persistentVolumeClaim"):
                (template,) = there["StatefulSet", "learner"]["spec"]["volumeClaimTemplates"]
                assert claim["claimName"] == f"{template['metadata']['name']}-learner-0"
    assert ("Service", there["StatefulSet", "learner"]["spec"]["serviceName"]) in there
    assert (
        "Deployment",
        there["ScaledObject", "worker"]["spec"]["scaleTargetRef"]["name"],
    ) in there
    for name, pod in pods(built).items():
        service = there["Service", name]["spec"]
        assert selects({"matchLabels": service["selector"]}, pod["metadata"]["labels"])
        ports = {port["name"] for c in pod["spec"]["containers"] for port in c["ports"]}
        assert {port["targetPort"] for port in service["ports"]} <= ports


def test_prometheus_finds_everybody_under_the_usual_job(built: list[Object]) -> None:
    services = {o["metadata"]["name"]: o for o in built if o["kind"] == "Service"}
    source = ROOT / "deploy/grafana/provisioning/datasources/rejoinder.yml"
    (dashboards,) = yaml.safe_load(source.read_text("utf-8"))["datasources"]
    jobs = {}
    for monitor in (o for o in built if o["kind"] == "ServiceMonitor"):
        (found,) = (
            name
            for name, service in services.items()
            if selects(monitor["spec"]["selector"], service["metadata"].get("labels", {}))
        )
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["interval"] == dashboards["jsonData"]["timeInterval"]
        assert monitor["metadata"]["labels"]["release"]  # or kube-prometheus-stack ignores it
        assert endpoint["port"] in {port["name"] for port in services[found]["spec"]["ports"]}
        (relabelled,) = endpoint["relabelings"]
        jobs[found] = relabelled["replacement"]
    assert jobs == {name: f"rejoinder-{name}" for name in OWN}


def test_pods_are_restricted() -> None:
    for name, pod in pods(assemble(EXAMPLE)).items():
        whole = pod["spec"]["securityContext"]
        assert whole["runAsNonRoot"], name
        assert whole["runAsUser"] > 0, name
        assert whole["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["spec"]["automountServiceAccountToken"] is False, name
        for container in containers(pod):
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False, name
            assert own["readOnlyRootFilesystem"] is True, name
            assert own["capabilities"] == {"drop": ["ALL"]}, name
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), name
            assert "memory" in container["resources"]["limits"], name


def test_workers_are_scaled_by_the_queue_of_this_namespace(built: list[Object]) -> None:
    (scaled,) = (o for o in built if o["kind"] == "ScaledObject")
    (trigger,) = scaled["spec"]["triggers"]
    here = f'{{namespace="{scaled["metadata"]["namespace"]}"}}'
    assert f"rejoinder_learner_queue_depth{here}" in trigger["metadata"]["query"]


def test_pods_are_probed() -> None:
    for name, pod in pods(assemble(EXAMPLE)).items():
        for container in pod["spec"]["containers"]:
            assert {"startupProbe", "livenessProbe"} <= container.keys(), name
    (gateway,) = pods(assemble(EXAMPLE))["gateway"]["spec"]["containers"]
    asked = {kind: gateway[f"{kind}Probe"]["httpGet"] for kind in ("readiness", "liveness")}
    assert {kind: get["path"] for kind, get in asked.items()} == {
        "readiness": "/readyz",
        "liveness": "/healthz",
    }
    for get in asked.values():  # a kubelet calls a pod by its address, which the gateway refuses
        assert get["httpHeaders"] == [{"name": "Host", "value": "localhost"}]


NAME_SERVERS = (
    Party("kube-dns", "kube-system", {"k8s-app": "kube-dns"}, {"dns": 53}),
    Party("NodeLocal DNSCache", ports={"dns": 53}, address="169.254.20.10"),
    Party("OpenShift's DNS", "openshift-dns", ports={"dns": 5353}),
)
OUTSIDE = (
    *NAME_SERVERS,
    Party("Prometheus", "monitoring", ports={"web": 9090}),
    Party("ingress", "ingress-nginx", ports={"https": 443}),
    Party("PostgreSQL", ports={"sql": 5432}, address="203.0.113.5"),
    Party("somebody's server", ports={"https": 443, "redis": 6379}, address="203.0.113.6"),
    Party("neighbour", "default", {"app.kubernetes.io/name": "learner"}, {"redis": 6379}),
    Party("no name server", "kube-system", ports={"dns": 53}),
)


def test_only_what_must_talk_may(built: list[Object]) -> None:
    everybody = pods(built)
    (denied,) = (o for o in built if o["metadata"]["name"] == "rejoinder-default-deny")
    assert denied["spec"]["policyTypes"] == ["Ingress", "Egress"]
    for pod in everybody.values():
        assert selects(denied["spec"]["podSelector"], pod["metadata"]["labels"])
    own = parties(built)
    flows = {
        (source.name, target.name)
        for source in (*own, *OUTSIDE)
        for target in (*own, *OUTSIDE)
        for port in target.ports
        if (source.own or target.own) and source != target
        if may_connect(built, source, target, port)
    }
    assert flows == {
        *(("learner", "redis"), ("worker", "redis"), ("gateway", "PostgreSQL")),
        *(("Prometheus", name) for name in OWN),
        ("ingress", "gateway"),
        *((pod.name, server.name) for pod in own for server in NAME_SERVERS),
    }
    for party in own:
        for server in NAME_SERVERS:
            assert may_connect(built, party, server, "dns", "UDP"), (party.name, server.name)
    for policy in (o for o in built if o["kind"] == "NetworkPolicy"):
        ports = _named_ports(policy["spec"])
        chosen = [
            pod
            for pod in everybody.values()
            if selects(policy["spec"]["podSelector"], pod["metadata"]["labels"])
        ]
        assert chosen
        for pod in chosen:
            has = {port["name"] for c in pod["spec"]["containers"] for port in c["ports"]}
            assert ports <= has, policy["metadata"]["name"]


def _named_ports(policy: Object) -> set[str]:
    listed = (port["port"] for rule in policy.get("ingress", ()) for port in rule["ports"])
    return {port for port in listed if isinstance(port, str)}


def test_variables_are_set_before_they_are_used(built: list[Object]) -> None:
    """Kubernetes puts a variable into another only if it comes earlier."""
    maps = {o["metadata"]["name"]: o["data"] for o in built if o["kind"] == "ConfigMap"}
    for pod in pods(built).values():
        for container in containers(pod):
            known: set[str] = set()
            for source in container.get("envFrom", ()):
                known |= maps[source["configMapRef"]["name"]].keys()
            for variable in container.get("env", ()):
                used = set(re.findall(r"\$\((\w+)\)", variable.get("value", "")))
                assert used <= known, variable["name"]
                known.add(variable["name"])
            for word in container["command"]:
                assert set(re.findall(r"\$\((\w+)\)", word)) <= known, word


def test_it_runs_what_compose_runs() -> None:
    """The same commands and images, the variables that the commands know, the options they have."""
    services = load(SECRETS)["services"]
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, pod in pods(assemble(EXAMPLE)).items():
        (container,) = pod["spec"]["containers"]
        here, there = container["command"], services[name]["command"]
        if name == "redis":
            assert here == there
            assert container["image"] == services[name]["image"]
            for probe in ("readinessProbe", "livenessProbe"):
                asked = ["CMD", *container[probe]["exec"]["command"]]
                assert asked == services[name]["healthcheck"]["test"]
            continue
        assert here[:2] == there.split()[:2] == ["rejoinder", name]
        known = {option for p in commands[name].params for option in p.opts}
        assert {word for word in here if word.startswith("--")} <= known
        assert container["image"] == services[name]["image"]
        if name != "gateway":  # which is asked by HTTP
            alive = container["livenessProbe"]["exec"]["command"]
            assert ["CMD", *alive] == services[name]["healthcheck"]["test"]
            options = {option for p in commands[alive[1]].params for option in p.opts}
            assert {word for word in alive if word.startswith("--")} <= options
        ours = {v["name"] for v in container["env"]} - {"POD_IP"}
        assert ours == set(services[name]["environment"])
        limit = services[name]["mem_limit"].upper() + "i"
        assert container["resources"]["limits"]["memory"] == limit


def test_no_secret_is_in_the_repository() -> None:
    assert "secrets.env" in (ROOT / ".gitignore").read_text("utf-8").split()
    for path in K8S.rglob("*.yaml"):
        assert "kind: Secret" not in path.read_text("utf-8"), path
    asked = set()
    for pod in pods(assemble(EXAMPLE)).values():
        for container in containers(pod):
            for variable in container.get("env", ()):
                if ref := variable.get("valueFrom", {}).get("secretKeyRef"):
                    asked.add(ref["key"])
                else:
                    assert not re.search("PASSWORD|TOKEN|SECRET|DATABASE", variable["name"])
    example = (EXAMPLE / "secrets.env.example").read_text("utf-8")
    told = dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE))
    assert set(told) == asked
    assert all(not value or "PASSWORD" in value for value in told.values())


def test_every_file_is_used() -> None:
    """A manifest that no kustomization lists would be forgotten."""
    listed = set()
    for folder in (path.parent for path in K8S.rglob("kustomization.yaml")):
        listed |= {path.resolve() for path in _listed(folder)}
    manifests = {p for p in K8S.rglob("*.yaml") if p.name != "kustomization.yaml"}
    assert {path.resolve() for path in manifests} == listed


def _listed(folder: Path) -> list[Path]:
    made = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    names = [*made.get("resources", ()), *(patch["path"] for patch in made.get("patches", ()))]
    return [p for p in (folder / name for name in names) if p.is_file()]
