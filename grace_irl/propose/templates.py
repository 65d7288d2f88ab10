"""Loader of Jinja templates for plain texts: prompts, programs, and texts of methods from other Python packages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import jinja2


@cache
def environment(package: str, folder: str = "templates") -> jinja2.Environment:
    """The templates in a folder of a package."""
    # Plain texts need no escaping. An undefined variable is a bug in our code, so it raises an error.
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def written(package: str, template: str, values: Mapping[str, object]) -> str:
    """The rendered text of a package's template. It ends with a line break."""
    return environment(package).get_template(template).render(values).strip() + "\n"


def _prompts() -> jinja2.Environment:
    return environment("grace_irl.propose", "prompts")


def from_text(text: str) -> jinja2.Template:
    """A method's own prompt template. It may begin with `{{ preamble }}`, the common part of all prompts of a run."""
    return _prompts().from_string(text)


def render(template: str | jinja2.Template, **values: object) -> str:
    """Render a prompt template, given by its name under `prompts/` or as an object; outer white space is stripped."""
    found = _prompts().get_template(f"{template}.j2") if isinstance(template, str) else template
    return found.render(**values).strip()
