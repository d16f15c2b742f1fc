"""Small pieces of HTML that sections are made of."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any


def section(title: str, body: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{body}</section>"


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    kind: str = "grid",
    marked: Sequence[bool] = (),
) -> str:
    """A table of cells that are HTML already; heads are text. The first column names the row."""
    head = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in heads)
    body = ""
    for k, (name, *cells) in enumerate(rows):
        mark = " class=differs" if k < len(marked) and marked[k] else ""
        body += f"<tr{mark}><th scope=row>{name}</th>"
        body += "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<div class=scroll><table class={kind}>{top}<tbody>{body}</tbody></table></div>"


def text(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value)


def tile(number: str, what: str, sure: str) -> str:
    return (
        f"<div><strong>{html.escape(number)}</strong><span>{html.escape(what)}</span>"
        f"<small>{html.escape(sure)}</small></div>"
    )
