"""The page: templates in which every value is escaped, one style sheet, and a policy under which nothing else runs."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup

from grace_irl.report.figures import digits, fixed, line, number, share
from grace_irl.runs.provenance import short
from grace_irl.text import harmless


def _harmless(value: object) -> object:
    """Every value that a template writes: nothing of it is hidden, or turns what stands around it."""
    if isinstance(value, Markup):
        return Markup(harmless(value))
    return harmless(value) if isinstance(value, str) else value


@cache
def _environment() -> jinja2.Environment:
    # What is undefined is a mistake of ours, never an empty string.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grace_irl.report", "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    environment.filters["number"] = number
    environment.filters["share"] = share
    environment.filters["fixed"] = fixed
    environment.filters["line"] = line
    environment.filters["short"] = short
    environment.globals["digits"] = digits
    return environment


def render(**values: object) -> str:
    """The page with its values. Markup among them was made by this package, from parts that it escaped."""
    style = files("grace_irl.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = _environment().get_template("report.html.j2")
    # A style sheet holds no markup of others, and may hold no end of its own element.
    return template.render(style=Markup(style), policy=f"'sha256-{digest}'", **values) + "\n"
