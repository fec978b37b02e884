"""The page at /docs: the OpenAPI document as plain HTML. It loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = "body{font:16px sans-serif;max-width:60em;margin:2em auto}td,th{padding:.2em 1em .2em 0;text-align:left}"


def page(openapi: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document: routes with what they answer."""
    info = openapi["info"]
    parts = [f"<h1>{escape(info['title'])}</h1><p>{escape(info['description'])}</p>"]
    parts.append('<p>All shapes are in <a href="openapi.json">openapi.json</a>.</p>')
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            parts += _operation(f"{method.upper()} {path}", operation)
    body = "\n".join(parts)
    head = f"<meta charset=utf-8><title>{escape(info['title'])}</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>"


def _operation(name: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(name)}</code></h2><p>{escape(operation.get('description', ''))}</p>"
    yield "<table><tr><th>code<th>what it says</tr>"
    for code, response in operation["responses"].items():
        yield f"<tr><td>{escape(code)}<td>{escape(response.get('description', ''))}</tr>"
    yield "</table>"
