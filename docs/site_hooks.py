"""Hooks of the site (mkdocs.yml): links that leave docs/, notebooks as pages, and the page of the API."""

from __future__ import annotations

import posixpath
import re
from functools import cached_property
from pathlib import Path

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"(?<!!)\[(?P<label>[^][]+)\]\((?P<target>\.\./[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
BY_PATH = re.compile(r"\[(?:docs/)?(?P<label>[\w/-]+\.md)\](?=\((?P<target>[\w./-]+\.md)(?:#[^)]*)?\))")
DIRECTIVE = re.compile(r"^<!-- (?P<directive>::: .*?) -->$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"(<pre\b.*?</pre>)", re.DOTALL)
CITED = re.compile(r"\bdocs/(?P<page>[\w/-]+\.md)\b")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Notebooks become pages under their own names, so that links to them hold on a forge and on the site."""
    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        files.remove(file)
        files.append(Notebook(file.src_uri, file.src_dir, config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page as the site needs it: no links to files that it does not hold, titles for paths, and directives."""

    def titled(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), found["target"]))
        title = _title(files.get_file_from_path(target))
        return f"[{title}]" if title and target.endswith(found["label"].removeprefix("../")) else found[0]

    kept = inside(markdown, page.file.src_uri, config.repo_url or "")
    return DIRECTIVE.sub(r"\g<directive>", BY_PATH.sub(titled, kept))


def on_page_content(html: str, page: Page, files: Files, **_: object) -> str:
    """Docstrings and notebooks cite pages by their paths, which become links."""
    if page.file.src_uri != "api.md" and not isinstance(page.file, Notebook):
        return html

    def linked(found: re.Match[str]) -> str:
        cited = files.get_file_from_path(found["page"])
        title = _title(cited)
        return f'"<a href="{cited.url_relative_to(page.file)}">{title}</a>"' if cited and title else found[0]

    parts = BLOCK.split(html)  # every second one is a block of code
    return "".join(part if number % 2 else CITED.sub(linked, part) for number, part in enumerate(parts))


def _title(file: File | None) -> str:
    """The title of a page in the navigation."""
    return str(file.page.title) if file is not None and file.page is not None and file.page.title else ""


def inside(markdown: str, source: str, repository: str) -> str:
    """A page whose links stay inside docs/: others lead to the repository, or become the path of their target.

    Args:
        markdown: text of the page.
        source: path of the page, relative to docs/.
        repository: address of the repository; "" if nobody knows one.
    """

    def replaced(found: re.Match[str]) -> str:
        label, target = found["label"], posixpath.join("docs", posixpath.dirname(source), found["target"])
        path = posixpath.normpath(target)
        if path.startswith("docs/"):
            return found[0]
        if repository:
            return f"[{label}]({repository.rstrip('/')}/blob/HEAD/{path}{found['anchor'] or ''})"
        return label if label.strip("`/") in (path, posixpath.dirname(path)) else f"{label} (`{path}`)"

    return LINK.sub(replaced, markdown)


class Notebook(File):
    """An executed notebook as a page of the site."""

    def is_documentation_page(self) -> bool:
        return True

    @cached_property
    def content_string(self) -> str:  # type: ignore[override]
        return markdown_of(Path(self.src_dir or "", self.src_uri))


def markdown_of(path: Path) -> str:
    """A notebook as Markdown: its text, its code, and what the code gave."""
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code" and cell.source.strip():
            parts += [fenced(cell.source, "python"), *map(shown, cell.outputs)]
    parts.append(f"[This page as a script]({path.stem}.py)")
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(output: nbformat.NotebookNode) -> str:
    """An output as Markdown: the richest of its forms that a page can hold."""
    if output.output_type == "stream":
        return fenced(output.text, "text")
    if output.output_type == "error":
        return fenced(f"{output.ename}: {output.evalue}", "text")
    data = output.data
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return f'<div class="output">\n{data[kind].strip()}\n</div>'
    for kind in ("image/png", "image/jpeg"):
        if kind in data:
            return f'<img alt="" src="data:{kind};base64,{data[kind].strip()}">'
    return data.get("text/markdown") or fenced(data.get("text/plain", ""), "text")


def fenced(text: str, language: str) -> str:
    """A code block that holds any text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
