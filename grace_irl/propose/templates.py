"""Loader of Jinja templates for plain texts, such as prompts and programs, from any Python package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import jinja2


@cache
def environment(package: str, folder: str = "templates") -> jinja2.Environment:
    """The Jinja environment for the templates in a folder of a Python package."""
    # Plain texts need no escaping. An undefined variable is a bug in our code, so it raises an error.
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def written(package: str, template: str, values: Mapping[str, object]) -> str:
    """Render a template in the folder `templates` of a Python package. The text ends with a line break."""
    return environment(package).get_template(template).render(values).strip() + "\n"


def _prompts() -> jinja2.Environment:
    return environment("grace_irl.propose", "prompts")


def from_text(text: str) -> jinja2.Template:
    """Make a prompt template from a text, for search methods with their own prompts.

    The text may begin with `{{ preamble }}`, the common part of all prompts of a run.
    """
    return _prompts().from_string(text)


def render(template: str | jinja2.Template, **values: object) -> str:
    """Render a prompt template, given by its name in `prompts/` or as an object. Strip white space at both ends."""
    found = _prompts().get_template(f"{template}.j2") if isinstance(template, str) else template
    return found.render(**values).strip()
