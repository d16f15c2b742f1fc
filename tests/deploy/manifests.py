"""The Kubernetes manifests: as files, and as kustomize puts them together."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
K8S = DEPLOY / "k8s"
EXAMPLE = K8S / "overlays/example"

Object = dict[str, Any]


def collect(folder: Path) -> list[Object]:
    """What a kustomization and those below it list, as it is in the files."""
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    found: list[Object] = []
    for name in (*listed.get("resources", ()), *listed.get("components", ())):
        path = folder / name
        found += collect(path) if path.is_dir() else read(path.read_text("utf-8"))
    return found


def read(text: str) -> list[Object]:
    return [made for made in yaml.safe_load_all(text) if made]


def build(folder: Path) -> list[Object]:
    """What kustomize makes of the example, with secrets, in a copy in `folder`."""
    copy = folder / "deploy"
    shutil.copytree(DEPLOY / "k8s", copy / "k8s")
    shutil.copytree(DEPLOY / "redis", copy / "redis")
    example = copy / "k8s/overlays/example"
    shutil.copy(example / "secrets.env.example", example / "secrets.env")
    made = subprocess.run([*_kustomize(), example], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return read(made.stdout)


def _kustomize() -> list[str]:
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    pytest.skip("neither kustomize nor kubectl here")


def pods(objects: list[Object]) -> dict[str, Object]:
    """The pod templates by the name of what makes them."""
    kinds = ("Deployment", "StatefulSet")
    return {o["metadata"]["name"]: o["spec"]["template"] for o in objects if o["kind"] in kinds}


def containers(pod: Object) -> list[Object]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Whether a label selector means a pod with these labels."""
    wanted = selector.get("matchLabels", {})
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    for rule in selector.get("matchExpressions", ()):
        assert rule["operator"] == "In"
        if labels.get(rule["key"]) not in rule["values"]:
            return False
    return True


def may_connect(objects: list[Object], source: str, target: str, port: str) -> bool:
    """Whether the network policies let one pod of this namespace call another's named port."""
    made = pods(objects)
    number = next(
        p["containerPort"]
        for c in made[target]["spec"]["containers"]
        for p in c["ports"]
        if p["name"] == port
    )
    out = _allowed(objects, "egress", "to", made[source], made[target], {port, number})
    return out and _allowed(objects, "ingress", "from", made[target], made[source], {port, number})


def _allowed(
    objects: list[Object], way: str, whom: str, pod: Object, other: Object, port: set[Any]
) -> bool:
    labels, others = pod["metadata"]["labels"], other["metadata"]["labels"]
    policies = [
        o["spec"]
        for o in objects
        if o["kind"] == "NetworkPolicy"
        and selects(o["spec"]["podSelector"], labels)
        and way.capitalize() in o["spec"]["policyTypes"]
    ]
    if not policies:
        return True  # nobody has forbidden anything
    return any(
        {p["port"] for p in rule["ports"]} & port
        and any(
            "namespaceSelector" not in peer and selects(peer["podSelector"], others)
            for peer in rule.get(whom, [{"podSelector": {}}])
        )
        for policy in policies
        for rule in policy.get(way, ())
    )


# Custom resources, of which no API schema comes with Kubernetes: the documented fields that are
# used here (KEDA's ScaledObject specification, the Prometheus operator's API), and no others.


def _object(required: list[str], **fields: Any) -> Object:
    return {
        "type": "object",
        "required": required,
        "properties": fields,
        "additionalProperties": False,
    }


_TEXT = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "string", "pattern": r"^\d+(\.\d+)?$"}
_LABELS = {"type": "object", "additionalProperties": _TEXT}
_METADATA = _object(["name"], name=_TEXT, namespace=_TEXT, labels=_LABELS, annotations=_LABELS)
_SCALING_RULES = _object(
    [],
    stabilizationWindowSeconds={"type": "integer", "minimum": 0, "maximum": 3600},
    selectPolicy={"enum": ["Max", "Min", "Disabled"]},
    policies={
        "type": "array",
        "items": _object(
            ["type", "value", "periodSeconds"],
            type={"enum": ["Pods", "Percent"]},
            value={"type": "integer", "minimum": 1},
            periodSeconds={"type": "integer", "minimum": 1, "maximum": 1800},
        ),
    },
)
_PROMETHEUS = _object(
    ["type", "metadata"],
    type={"const": "prometheus"},
    name=_TEXT,
    metricType={"enum": ["AverageValue", "Value"]},
    metadata=_object(
        ["serverAddress", "query", "threshold"],
        serverAddress={"type": "string", "pattern": "^https?://"},
        query=_TEXT,
        threshold=_NUMBER,
        activationThreshold=_NUMBER,
        ignoreNullValues={"enum": ["true", "false"]},
    ),
)
CUSTOM: dict[tuple[str, str], Object] = {
    ("keda.sh/v1alpha1", "ScaledObject"): _object(
        ["apiVersion", "kind", "metadata", "spec"],
        apiVersion=_TEXT,
        kind=_TEXT,
        metadata=_METADATA,
        spec=_object(
            ["scaleTargetRef", "triggers"],
            scaleTargetRef=_object(["name"], apiVersion=_TEXT, kind=_TEXT, name=_TEXT),
            pollingInterval=_COUNT,
            cooldownPeriod=_COUNT,
            minReplicaCount=_COUNT,
            maxReplicaCount=_COUNT,
            fallback=_object(
                ["failureThreshold", "replicas"], failureThreshold=_COUNT, replicas=_COUNT
            ),
            advanced=_object(
                [],
                horizontalPodAutoscalerConfig=_object(
                    [], behavior=_object([], scaleUp=_SCALING_RULES, scaleDown=_SCALING_RULES)
                ),
            ),
            triggers={"type": "array", "minItems": 1, "items": _PROMETHEUS},
        ),
    ),
    ("monitoring.coreos.com/v1", "ServiceMonitor"): _object(
        ["apiVersion", "kind", "metadata", "spec"],
        apiVersion=_TEXT,
        kind=_TEXT,
        metadata=_METADATA,
        spec=_object(
            ["selector", "endpoints"],
            selector=_object(["matchLabels"], matchLabels=_LABELS),
            endpoints={
                "type": "array",
                "minItems": 1,
                "items": _object(
                    ["port"],
                    port=_TEXT,
                    path=_TEXT,
                    interval={"type": "string", "pattern": r"^\d+(s|m)$"},
                    relabelings={
                        "type": "array",
                        "items": _object(
                            ["targetLabel"],
                            targetLabel=_TEXT,
                            replacement=_TEXT,
                            action=_TEXT,
                        ),
                    },
                ),
            },
        ),
    ),
}
