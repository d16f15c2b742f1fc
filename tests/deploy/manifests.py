"""The Kubernetes manifests: put together as kustomize does, and who may talk to whom in them."""

from __future__ import annotations

import base64
import copy
import ipaddress
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
K8S = DEPLOY / "k8s"
EXAMPLE = K8S / "overlays/example"

Object = dict[str, Any]

_KNOWN = {  # what `assemble` can do
    *("apiVersion", "kind", "resources", "components", "configMapGenerator", "secretGenerator"),
    *("patches", "labels", "namespace", "images"),
}
_WORKLOADS = ("Deployment", "StatefulSet")


def assemble(folder: Path, objects: Iterable[Object] = ()) -> list[Object]:
    """What kustomize makes of a folder, as far as it is used here; generated names have no hash.

    A component changes what is there already: `objects`.
    """
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    assert listed.keys() <= _KNOWN, f"{folder}: teach this function what kustomize would do"
    made = list(objects)
    for name in listed.get("resources", ()):
        path = folder / name
        made += assemble(path) if path.is_dir() else read(path.read_text("utf-8"))
    for generator in listed.get("configMapGenerator", ()):
        _generate(made, "ConfigMap", generator, _data(folder, generator))
    for generator in listed.get("secretGenerator", ()):
        encoded = {k: _base64(v) for k, v in _data(folder, generator).items()}
        _generate(made, "Secret", generator, encoded)
    for name in listed.get("components", ()):
        made = assemble(folder / name, made)
    for patch in listed.get("patches", ()):
        steps = yaml.safe_load((folder / patch["path"]).read_text("utf-8"))
        targets = [o for o in made if _is_target(o, patch["target"])]
        assert targets, f"{folder}: {patch} is for nothing"
        for target in targets:
            _change(target, steps)
    for added in listed.get("labels", ()):
        assert added["includeTemplates"]
        for one in made:
            _label(one, added["pairs"])
    for one in made:
        if "namespace" in listed and one["kind"] != "Namespace":
            one["metadata"]["namespace"] = listed["namespace"]
    tags = {image["name"]: image["newTag"] for image in listed.get("images", ())}
    for pod in pods(made).values():
        for container in containers(pod):
            if tag := tags.get(container["image"]):
                container["image"] += f":{tag}"
    return made


def _data(folder: Path, generator: Object) -> dict[str, str]:
    found = dict(pair.split("=", 1) for pair in generator.get("literals", ()))
    for name in generator.get("files", ()):
        found[name] = (folder / name).read_text("utf-8")
    for name in generator.get("envs", ()):
        lines = (folder / f"{name}.example").read_text("utf-8").splitlines()
        found |= dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    return found


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _generate(made: list[Object], kind: str, generator: Object, data: dict[str, str]) -> None:
    if generator.get("behavior") == "merge":
        (one,) = (
            o for o in made if o["kind"] == kind and o["metadata"]["name"] == generator["name"]
        )
        one["data"] |= data
        return
    about = {"apiVersion": "v1", "kind": kind, "metadata": {"name": generator["name"]}}
    made.append(about | {"data": data} | ({"type": "Opaque"} if kind == "Secret" else {}))


def _is_target(one: Object, target: dict[str, str]) -> bool:
    assert target.keys() <= {"kind", "name"}
    is_kind = re.fullmatch(target["kind"], one["kind"])
    return bool(is_kind and re.fullmatch(target.get("name", ".*"), one["metadata"]["name"]))


def _change(target: Object, steps: list[Object]) -> None:
    """A JSON patch (RFC 6902) that only adds."""
    for step in steps:
        assert step["op"] == "add"
        *way, last = step["path"].removeprefix("/").split("/")
        place: Any = target
        for name in way:
            place = place[int(name)] if isinstance(place, list) else place[name]
        value = copy.deepcopy(step["value"])
        if isinstance(place, list):
            assert last == "-"
            place.append(value)
        else:
            place[last] = value


def _label(one: Object, pairs: dict[str, str]) -> None:
    labelled = [one]
    if one["kind"] in _WORKLOADS:
        labelled += [one["spec"]["template"], *one["spec"].get("volumeClaimTemplates", ())]
    for thing in labelled:
        thing["metadata"]["labels"] = thing["metadata"].get("labels", {}) | pairs


def read(text: str) -> list[Object]:
    return [made for made in yaml.safe_load_all(text) if made]


def copied(folder: Path) -> Path:
    """The example in a copy of everything that it is made from, to be changed."""
    for name in ("k8s", "redis"):
        shutil.copytree(DEPLOY / name, folder / name)
    return folder / EXAMPLE.relative_to(DEPLOY)


def build(example: Path) -> list[Object]:
    """What kustomize itself makes of a copy of the example, with secrets; names without hashes."""
    shutil.copy(example / "secrets.env.example", example / "secrets.env")
    made = subprocess.run([*_kustomize(), example], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    objects = read(re.sub(r"\b(rejoinder-[a-z]+)-[a-z0-9]{10}\b", r"\1", made.stdout))
    for one in objects:
        if one["kind"] == "Secret":  # long ones are folded
            one["data"] = {name: "".join(value.split()) for name, value in one["data"].items()}
    return objects


def _kustomize() -> list[str]:
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    pytest.skip("neither kustomize nor kubectl here; put one of them on the PATH")


def pods(objects: list[Object]) -> dict[str, Object]:
    """The pod templates by the name of what makes them."""
    return {
        o["metadata"]["name"]: o["spec"]["template"] for o in objects if o["kind"] in _WORKLOADS
    }


def containers(pod: Object) -> list[Object]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Whether a label selector means something with these labels."""
    wanted = selector.get("matchLabels", {})
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    for rule in selector.get("matchExpressions", ()):
        assert rule["operator"] == "In"
        if labels.get(rule["key"]) not in rule["values"]:
            return False
    return True


# Who may talk to whom


@dataclass(frozen=True)
class Party:
    """Something that calls or is called: a pod, here or in another namespace, or an address."""

    name: str
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    address: str = ""
    own: bool = False  # the policies are about it


def parties(objects: list[Object]) -> list[Party]:
    """The installation's own pods."""
    found = []
    for name, pod in pods(objects).items():
        ports = {
            p["name"]: p["containerPort"] for c in pod["spec"]["containers"] for p in c["ports"]
        }
        labels = pod["metadata"]["labels"]
        found.append(Party(name, "rejoinder", labels, ports, own=True))
    return found


def may_connect(
    objects: list[Object], source: Party, target: Party, port: str, protocol: str = "TCP"
) -> bool:
    """Whether the network policies let one call the other's named port."""
    by = ({port, target.ports[port]}, protocol)
    return _lets(objects, "egress", "to", source, target, *by) and _lets(
        objects, "ingress", "from", target, source, *by
    )


def _lets(
    objects: list[Object],
    way: str,
    whom: str,
    party: Party,
    other: Party,
    port: set[Any],
    protocol: str,
) -> bool:
    policies = [
        o["spec"]
        for o in objects
        if party.own
        and o["kind"] == "NetworkPolicy"
        and selects(o["spec"]["podSelector"], party.labels)
        and way.capitalize() in o["spec"]["policyTypes"]
    ]
    if not policies:
        return True  # nobody has forbidden anything
    return any(
        any(p["port"] in port and p["protocol"] == protocol for p in rule["ports"])
        and (whom not in rule or any(_is_meant(peer, party, other) for peer in rule[whom]))
        for policy in policies
        for rule in policy.get(way, ())
    )


def _is_meant(peer: Object, party: Party, other: Party) -> bool:
    if block := peer.get("ipBlock"):
        network = ipaddress.ip_network(block["cidr"])
        return bool(other.address) and ipaddress.ip_address(other.address) in network
    if other.address:
        return False
    if "namespaceSelector" in peer:
        name = {"kubernetes.io/metadata.name": other.namespace}
        if not selects(peer["namespaceSelector"], name):
            return False
    elif other.namespace != party.namespace:
        return False
    return selects(peer.get("podSelector", {}), other.labels)


# Custom resources, of which no schema comes with Kubernetes or with a package; the projects' own
# are not copied here. These have the fields that are used and no others, compared by hand with the
# published schemas (datreeio/CRDs-catalog: keda.sh/scaledobject_v1alpha1.json and
# monitoring.coreos.com/servicemonitor_v1.json); look up there what is to be added.


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
            pollingInterval={"type": "integer", "minimum": 1},
            cooldownPeriod=_COUNT,
            minReplicaCount=_COUNT,
            maxReplicaCount={"type": "integer", "minimum": 1},
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
