"""The wording of prompts: Jinja templates under `prompts/`, and those of other distributions."""

from __future__ import annotations

from functools import cache

import jinja2


@cache
def _environment() -> jinja2.Environment:
    # No escaping: prompts are plain text. What is undefined is a mistake of ours, never an empty string.
    return jinja2.Environment(
        loader=jinja2.PackageLoader("grace_irl.propose", "prompts"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )


def from_text(text: str) -> jinja2.Template:
    """A template of a method's own. It may begin with `{{ preamble }}`, which all prompts of a run share."""
    return _environment().from_string(text)


def render(template: str | jinja2.Template, **values: object) -> str:
    """A template, by its name under `prompts/` or itself, with its values, without white space at its ends."""
    found = _environment().get_template(f"{template}.j2") if isinstance(template, str) else template
    return found.render(**values).strip()
