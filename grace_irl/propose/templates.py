"""The wording of prompts: Jinja templates under `prompts/`."""

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


def render(name: str, **values: object) -> str:
    """The template `prompts/NAME.j2` with its values, without white space at its ends."""
    return _environment().get_template(f"{name}.j2").render(**values).strip()
