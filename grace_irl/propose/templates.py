"""Templates of texts that are no pages: prompts, programs, and what methods of other distributions write."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import jinja2


@cache
def environment(package: str, folder: str = "templates") -> jinja2.Environment:
    """The templates of one room."""
    # No escaping: these are plain texts. What is undefined is a mistake of ours, never an empty string.
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def written(package: str, template: str, values: Mapping[str, object]) -> str:
    """The text of a room's template, which ends with a line's end."""
    return environment(package).get_template(template).render(values).strip() + "\n"


def _prompts() -> jinja2.Environment:
    return environment("grace_irl.propose", "prompts")


def from_text(text: str) -> jinja2.Template:
    """A template of a method's own. It may begin with `{{ preamble }}`, which all prompts of a run share."""
    return _prompts().from_string(text)


def render(template: str | jinja2.Template, **values: object) -> str:
    """A prompt's template, by its name under `prompts/` or itself, with its values, without white space at its ends."""
    found = _prompts().get_template(f"{template}.j2") if isinstance(template, str) else template
    return found.render(**values).strip()
