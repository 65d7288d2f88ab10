"""The documentation as a site: built without a network, whole, and with nothing of another host."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from urllib.parse import urljoin, urlsplit

import lxml.html
import nbformat
import pytest
import yaml

import grace_irl
from grace_irl.pages import BASE
from tests.frame.pages import READER
from tests.frame.test_addresses import SOURCES, asked
from tests.frame.tree import ROOT, files
from tests.report.browser import Browser, needs_browser

PAGES = [path for path in files(ROOT / "docs") if path.suffix in (".md", ".ipynb")]
AS_WRITTEN = [path for path in PAGES if path.suffix == ".md" and path.name != "api.md"]
"""Pages to which the site adds nothing. To that of the API it adds docstrings."""
LOADED = (
    "//script/@src",
    "//link[not(@rel='canonical' or @rel='next' or @rel='prev')]/@href",
    "//img/@src",
    "//iframe/@src",
    "//source/@src",
    "//image/@href",
)
"""What a browser loads without being asked to."""
IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
COUNTED = ["h1", "h2", "h3", "h4", "ul", "ol", "li", "table", "tr", "td", "pre", "blockquote", "img", "em", "strong"]


def address(page: Path) -> str:
    """The address of a page, relative to that of the site."""
    inner = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
    return "" if inner == "README" else f"{inner}/"


def alone() -> list[str]:
    """A command that runs another one without a network, if this machine lets a user do that."""
    command = ["unshare", "--map-root-user", "--net"]
    able = shutil.which("unshare") and not subprocess.run([*command, "true"], capture_output=True).returncode
    return command if able else []


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a warning is an error."""
    out = tmp_path_factory.mktemp("site") / "site"
    surroundings = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    surroundings |= {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", out]
    done = subprocess.run([*alone(), *build], cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return out


@cache
def read(page: Path) -> lxml.html.HtmlElement:
    """A page of the built site."""
    return lxml.html.fromstring(page.read_text(encoding="utf-8"))


def hooks() -> ModuleType:
    """docs/site_hooks.py."""
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_comes_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    loaded = {(page.name, str(each)) for page in pages for path in LOADED for each in read(page).xpath(path)}
    styles = [*pages, *site.rglob("*.css")]
    for style in styles:
        text = style.read_text(encoding="utf-8")
        if style.suffix == ".html":
            text = "\n".join(map(str, read(style).xpath("//style/text() | //@style")))
        loaded |= {(style.name, "".join(found)) for found in IN_STYLE.findall(text)}
    assert len(loaded) > 5
    assert not [each for each in loaded if urlsplit(each[1]).netloc]


def test_every_page_is_in_the_navigation(site: Path) -> None:
    """At its address, from the home page."""
    links = read(site / "index.html").xpath("//nav[contains(@class, 'md-nav--primary')]//a/@href")
    found = {urljoin(BASE, link.split("#")[0]) for link in links}
    assert {urljoin(BASE, address(page)) for page in PAGES} == found
    assert all((site / address(page) / "index.html").is_file() for page in PAGES)


def test_addresses_in_messages_are_pages_of_the_site(site: Path) -> None:
    names = {name for text in SOURCES.values() for name in asked(text)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names |= {each.removeprefix(BASE) for each in project["urls"].values()}
    assert len(names) > 5
    assert not [name for name in names if not (site / name / "index.html").is_file()]
    canonical = read(site / "settings" / "index.html").xpath("//link[@rel='canonical']/@href")
    assert canonical == [f"{BASE}settings/"]


def test_the_host_of_the_pages_builds_as_this_test_does() -> None:
    asked_of = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())["build"]
    (install,), (build,) = asked_of["jobs"]["install"], asked_of["jobs"]["build"]["html"]
    assert install.endswith("--no-deps --require-hashes -r requirements/full.lock")
    assert build.startswith("mkdocs build --strict ")


def test_the_page_of_the_api_describes_every_public_name(site: Path) -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    names = re.findall(r"^\| `(grace_irl\.[\w.]+)` \|", page, re.MULTILINE)
    public = {f"grace_irl.{name}" for name in grace_irl.__all__ if not name.startswith("__")}
    suites = {
        f"grace_irl.testing.{path.stem}.{name}"
        for path in files(ROOT / "grace_irl" / "testing", ".py")
        for name in re.findall(r"^class (\w+Suite)\b", path.read_text(), re.MULTILINE)
    }
    assert len(suites) >= 8
    assert public | suites <= set(names)
    shown = set(read(site / "api" / "index.html").xpath("//article//*[contains(@class, 'doc-heading')]/@id"))
    assert not set(names) - shown
    assert "`grace_irl.__version__`" in page


def test_the_api_shows_arguments_and_what_docstrings_cite(site: Path) -> None:
    article = read(site / "api" / "index.html").xpath("//article")[0]
    text = article.text_content()
    assert "max_memory: int | str | None" in text
    assert "All trajectories count as expert trajectories, whatever their role in the data." in " ".join(text.split())
    assert ":::" not in text
    assert "docs/" not in text
    assert article.xpath(".//p//a[@href='../contract/']")


def test_links_show_titles_and_no_paths(site: Path) -> None:
    shown = [link.text_content() for page in PAGES for link in read(site / address(page) / "index.html").iter("a")]
    assert "Demonstrations" in shown
    assert not [text for text in shown if re.fullmatch(r"[\w/.-]+\.md", text)]


@pytest.mark.parametrize("page", AS_WRITTEN, ids=address)
def test_the_site_reads_a_page_as_forges_do(page: Path, site: Path) -> None:
    """Its Markdown wants an empty line before a list, and four spaces before a list inside a list."""
    forge = lxml.html.fromstring(READER.render(page.read_text()))
    (article,) = read(site / address(page) / "index.html").xpath("//article")
    counts = [Counter(each.tag for each in tree.iter(*COUNTED)) for tree in (forge, article)]
    wrong = {tag: (counts[0][tag], counts[1][tag]) for tag in COUNTED if counts[0][tag] != counts[1][tag]}
    assert not wrong


def test_links_that_leave_the_pages_become_text_or_lead_to_the_repository() -> None:
    inside = hooks().inside
    text = "See [the file](../examples/lighter_bodies.py#L3), [`tests/`](../tests/README.md), [here](compare.md#one)."
    plain = "See the file (`examples/lighter_bodies.py`), `tests/`, [here](compare.md#one)."
    assert inside(text, "training.md", "") == plain
    led = inside(text, "training.md", "https://forge.example/them/it/")
    assert "[the file](https://forge.example/them/it/blob/HEAD/examples/lighter_bodies.py#L3)" in led
    assert "[here](compare.md#one)" in led
    assert inside("[fitness](../fitness.md)", "methods/forge.md", "") == "[fitness](../fitness.md)"
    assert inside("[all](../../README.md)", "methods/forge.md", "") == "all (`README.md`)"


def test_a_notebook_becomes_a_page(tmp_path: Path) -> None:
    v4 = nbformat.v4
    outputs = [
        v4.new_output("stream", name="stdout", text="said\n```\n"),
        v4.new_output("display_data", {"text/html": "<table>\n\n<td>*</td></table>", "text/plain": "plain"}),
        v4.new_output("display_data", {"image/png": "AAAA\n"}),
        v4.new_output("execute_result", {"text/plain": "2"}),
        v4.new_output("error", ename="ValueError", evalue="wrong", traceback=[]),
    ]
    cells = [v4.new_markdown_cell("# Title"), v4.new_code_cell("f()", outputs=outputs), v4.new_code_cell("")]
    path = tmp_path / "mine.ipynb"
    nbformat.write(v4.new_notebook(cells=cells), path)
    assert hooks().markdown_of(path) == "\n\n".join(
        [
            "# Title",
            "```python\nf()\n```",
            "````text\nsaid\n```\n````",
            '<div class="output">\n<table>\n\n<td>*</td></table>\n</div>',
            '<img alt="" src="data:image/png;base64,AAAA">',
            "```text\n2\n```",
            "```text\nValueError: wrong\n```",
            "[This page as a script](mine.py)\n",
        ]
    )


@needs_browser
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("page", ["", "settings/", "results/", "api/", "python/"])
def test_no_page_is_wider_than_the_window(page: str, width: int, site: Path, browser: Browser) -> None:
    """Wide tables and code scroll in themselves."""
    browser.open(site / page / "index.html", width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    shown = (
        "[...document.querySelectorAll('article :is(table, pre)')].every(each => each.getBoundingClientRect().width)"
    )
    assert browser.evaluate(shown)
    assert all(urlsplit(request).scheme == "file" for request in browser.requests)
