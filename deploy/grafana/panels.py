"""The kinds of panels, and how a dashboard is put together from them, in Grafana's JSON.

A dashboard is a list of rows. A row has a title, a text that says how to read it, and panels, which
are set from left to right until they fill the width.
"""

from __future__ import annotations

from itertools import count
from typing import Any

Json = dict[str, Any]

SOURCE = {"type": "prometheus", "uid": "rejoinder-prometheus"}
SCHEMA = 39  # of Grafana 11; newer ones read it and bring it up to date by themselves
WIDTH = 24  # of the page, in columns
ALERTS = 'ALERTS{alertname=~"Rejoinder.+",alertstate="firing"}'

GREEN, YELLOW, RED, BLUE = "green", "yellow", "red", "blue"
Steps = tuple[tuple[float | None, str], ...]  # from this value on, this colour; None: from below
PLAIN: Steps = ((None, BLUE),)
NONE_IS_GOOD: Steps = ((None, GREEN), (1, RED))
SOME_ARE_NEEDED: Steps = ((None, RED), (1, GREEN))

_OF_ALL = ("sum", "(sum", "count")  # how expressions begin that leave no run to name


def dashboard(uid: str, title: str, about: str, variables: list[Json], rows: list[Json]) -> Json:
    numbers, panels, y = count(1), list[Json](), 0
    for row in rows:
        for panel in _laid_out(row, y):
            panels.append({"id": next(numbers), **panel})
            y = max(y, panel["gridPos"]["y"] + panel["gridPos"]["h"])
    return {
        "uid": uid,
        "title": title,
        "description": about,
        "tags": ["rejoinder"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "graphTooltip": 1,  # one crosshair for all panels
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "timezone": "browser",
        "links": [],
        "annotations": {"list": [_alerts()]},
        "templating": {"list": variables},
        "panels": panels,
    }


def _laid_out(row: Json, y: int) -> list[Json]:
    x, tallest = 0, 0
    title = {"type": "row", "title": row["title"], "collapsed": False, "panels": []}
    placed = [title | {"gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}}]
    y += 1
    for panel in row["panels"]:
        w, h = panel.pop("size")
        if x + w > WIDTH:
            x, y, tallest = 0, y + tallest, 0
        placed.append(panel | {"gridPos": {"x": x, "y": y, "w": w, "h": h}})
        x, tallest = x + w, max(tallest, h)
    return placed


def row(title: str, how_to_read: str, *panels: Json) -> Json:
    text = {
        "type": "text",
        "title": "",
        "size": (WIDTH, 3),
        "options": {"mode": "markdown", "content": how_to_read},
    }
    return {"title": title, "panels": [text, *panels]}


def links(others: list[tuple[str, str]]) -> list[Json]:
    """To other dashboards (uid and title), with the time and the run, but not the instance."""
    return [
        {
            "type": "link",
            "title": title,
            "url": f"/d/{uid}?${{run:queryparam}}",
            "icon": "dashboard",
            "keepTime": True,
            "includeVars": False,
            "targetBlank": False,
            "tags": [],
        }
        for uid, title in others
    ]


def variable(name: str, label: str, values: str, hidden: bool = False) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "definition": values,
        "query": {"query": values, "refId": "StandardVariableQuery"},
        "refresh": 2,  # when the time range changes
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": ["All"], "value": ["$__all"]},
        "options": [],
        "hide": 2 if hidden else 0,
    }


def _alerts() -> Json:
    return {
        "name": "Alerts",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": RED,
        "expr": ALERTS,
        "step": "10s",
        "titleFormat": "{{alertname}}",
        "textFormat": "{{run}} {{instance}}",
    }


def graph(
    title: str,
    about: str,
    *queries: tuple[str, str],
    unit: str = "short",
    w: int = 12,
    low: float | None = 0,
    high: float | None = None,
    stacked: bool = False,
    line_at: Steps = (),
) -> Json:
    """Lines over time; each query is an expression and the name of its lines."""
    custom: Json = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 30 if stacked else 10,
        "showPoints": "auto",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "line" if line_at else "off"},
    }
    legend = {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "mean"]}
    return {
        "type": "timeseries",
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "size": (w, 8),
        "fieldConfig": _fields(unit, line_at or PLAIN, "palette-classic", low, high, custom),
        "options": {
            "legend": {"showLegend": True, **legend},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": _targets(queries),
    }


def stat(
    title: str,
    about: str,
    expr: str,
    unit: str = "short",
    steps: Steps = PLAIN,
    w: int = 4,
    decimals: int | None = None,
) -> Json:
    """The latest value, as a big number with its course behind it; one for each run, or of all."""
    fields = _fields(unit, steps, "thresholds")
    fields["defaults"]["noValue"] = "–"
    if decimals is not None:
        fields["defaults"]["decimals"] = decimals
    looks = {"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "textMode": "auto"}
    return _latest("stat", title, about, expr, w, fields, looks)


def gauge(title: str, about: str, expr: str, w: int = 4) -> Json:
    """A share of a whole, as a dial."""
    fields = _fields("percentunit", ((None, BLUE), (1, GREEN)), "thresholds", 0, 1)
    looks = {"showThresholdLabels": False, "showThresholdMarkers": False}
    return _latest("gauge", title, about, expr, w, fields, looks)


def _latest(
    kind: str, title: str, about: str, expr: str, w: int, fields: Json, looks: Json
) -> Json:
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "size": (w, 4),
        "fieldConfig": fields,
        "options": {"reduceOptions": reduced, **looks},
        "targets": _targets([(expr, "" if expr.startswith(_OF_ALL) else "{{run}}")]),
    }


def heatmap(title: str, about: str, buckets: str, w: int = 12) -> Json:
    """How often which duration: one column a moment, one line a bucket."""
    return {
        "type": "heatmap",
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "size": (w, 8),
        "fieldConfig": {"defaults": {}, "overrides": []},
        "options": {
            "calculate": False,
            "cellGap": 1,
            "color": {"mode": "scheme", "scheme": "Blues", "steps": 64, "exponent": 0.5},
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "showValue": "never",
            "tooltip": {"mode": "single", "yHistogram": False},
            "yAxis": {"axisPlacement": "left", "unit": "s"},
        },
        "targets": [target | {"format": "heatmap"} for target in _targets([(buckets, "{{le}}")])],
    }


def table(title: str, about: str, by: str, *columns: tuple[str, str, str], w: int = 24) -> Json:
    """One line for each value of the label `by`; a column is an expression, a name and a unit."""
    targets = _targets([(expr, "") for expr, _, _ in columns])
    for target in targets:
        target |= {"format": "table", "instant": True, "range": False}
    refs = [target["refId"] for target in targets]
    names = {f"Value #{ref}": name for ref, (_, name, _) in zip(refs, columns, strict=True)}
    order = [by, *names]
    return {
        "type": "table",
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "size": (w, 8),
        "fieldConfig": {
            "defaults": {"custom": {"align": "auto", "filterable": True}},
            "overrides": [
                {
                    "matcher": {"id": "byName", "options": name},
                    "properties": [{"id": "unit", "value": unit}],
                }
                for _, name, unit in columns
            ],
        },
        "options": {"showHeader": True, "sortBy": [{"displayName": by, "desc": False}]},
        "transformations": [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True},
                    "indexByName": {name: i for i, name in enumerate(order)},
                    "renameByName": names,
                },
            },
        ],
        "targets": targets,
    }


def _fields(
    unit: str,
    steps: Steps,
    colours: str,
    low: float | None = None,
    high: float | None = None,
    custom: Json | None = None,
) -> Json:
    limits = {name: value for name, value in (("min", low), ("max", high)) if value is not None}
    levels = [{"value": value, "color": colour} for value, colour in steps]
    defaults: Json = {
        "unit": unit,
        **limits,
        "color": {"mode": colours},
        "thresholds": {"mode": "absolute", "steps": levels},
    }
    return {"defaults": defaults | ({"custom": custom} if custom else {}), "overrides": []}


def _targets(queries: Any) -> list[Json]:
    return [
        {
            "refId": chr(ord("A") + i),
            "datasource": SOURCE,
            "expr": expr,
            "legendFormat": legend,
            "range": True,
        }
        for i, (expr, legend) in enumerate(queries)
    ]
