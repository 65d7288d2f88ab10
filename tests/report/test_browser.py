"""The report in a real Chromium: it asks for nothing, runs nothing, fits the window, and shows its pictures."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.report.write import write_report
from grace_irl.states.texts import pack
from tests.report.browser import Browser, needs_browser
from tests.report.conftest import Given, fitted, program

pytestmark = needs_browser

RUNS = ("grid_run", "vector_run", "image_run", "android_run", "expansion", "hostile_run")

ATTACKS = (
    "{{ 7 * 7 }} {% raw %} &lt;b&gt; ]]> --> \u202e\u0007",
    "<script>document.title = 'ran'</script>",
    '"><img src=x onerror="document.title=\'ran\'">',
    "</pre></code><svg onload=document.title='ran'>",
    "</style><style>body { display: none }</style>",
    "<a href=\"javascript:document.title='ran'\">x</a>",
    "<iframe src=https://example.com></iframe><link rel=stylesheet href=https://example.com/x.css>",
)


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every text that comes from others tries to be more than a text."""
    folder = tmp_path_factory.mktemp("hostile")
    plain = [each.replace("\u0007", "") for each in ATTACKS]  # which XML cannot hold

    def screen(goal: bool, number: int) -> str:
        nodes = [
            f"<node text={quoteattr(text)} content-desc={quoteattr(text)} resource-id={quoteattr(text)} "
            f'package={quoteattr(text)} class={quoteattr(text)} bounds="[0,{50 * at}][300,{50 * at + 40}]"/>'
            for at, text in enumerate([*plain, f"{goal} {number}"])
        ]
        return f"<hierarchy>{''.join(nodes)}</hierarchy>"

    items = [
        Demonstration(
            Trajectory(pack([screen(False, number), screen(role == "expert", number)]), extra_info=ATTACKS[number]),
            role,  # type: ignore[arg-type]
            plain[number % 2],
        )
        for number in range(len(ATTACKS))
        for role in ("expert", "negative")
    ]
    save(
        Demonstrations(Metadata("ui", environment=plain[0]), tuple(items)),
        folder / f"{plain[4][:9].strip('</')}.parquet",
    )
    seen = [each.replace("\u202e", "") for each in plain]  # a program that hides something is refused
    comments = "".join(f"# {text}\n" for text in seen)
    source = f'"""{seen[0]}"""\n{comments}TEXT = {json.dumps(plain)}\n' + program("float('True' in state)")
    flags = {"data.label": "last", "data.held_out": 0.0}
    return fitted(folder / "run", next(folder.glob("*.parquet")), Given(source, *(f"{t} (" for t in plain)), **flags)


def test_images_are_drawn_as_large_squares(image_run: Path, browser: Browser, tmp_path: Path) -> None:
    browser.open(write_report(image_run, tmp_path / "report.html"))
    browser.screenshot(tmp_path / "report.png")
    images = "[...document.querySelectorAll('svg[role=img] image')]"
    assert browser.evaluate(f"{images}.length") >= 4
    assert browser.evaluate(f"Math.min(...{images}.map(each => each.getBoundingClientRect().width))") > 100
    decoded = (
        "(() => { const i = new Image(); i.src = IMAGES[0].href.baseVal; return i.decode().then(() => i.width) })()"
    )
    assert browser.evaluate(decoded.replace("IMAGES", images)) == 20


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("run", RUNS)
def test_a_page_stands_alone_and_fits(
    run: str, width: int, dark: bool, browser: Browser, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path = write_report(request.getfixturevalue(run), tmp_path / "report.html")
    browser.open(path, width=width, dark=dark)
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.title").startswith("Reward from ")
    broken = "[...document.images].filter(image => !image.complete || !image.naturalWidth).length"
    assert browser.evaluate(broken) == 0
    assert browser.evaluate("document.querySelectorAll('script, iframe, object, embed, link, form').length") == 0
    assert browser.evaluate("document.querySelectorAll('style').length") == 1
    outside = "[...document.querySelectorAll('a')].filter(a => !a.getAttribute('href').startsWith('#')).length"
    assert browser.evaluate(outside) == 0
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
    assert browser.evaluate("getComputedStyle(document.body).display") == "block"


def test_texts_of_others_are_only_texts(hostile_run: Path, browser: Browser, tmp_path: Path) -> None:
    path = write_report(hostile_run, tmp_path / "report.html")
    browser.open(path)
    page = browser.evaluate("document.body.textContent")
    for text in ("<script>document.title = 'ran'</script>", "{{ 7 * 7 }}", "</style><style>body { display: none }"):
        assert page.count(text) >= 3  # source, instruction, screen
    assert "told: “{{ 7 * 7 }} {% raw %} &lt;b&gt; ]]> --> \\u202e\\x07”" in page
    with_handlers = "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => /^on/i.test(a.name)))"
    assert browser.evaluate(f"{with_handlers}.length") == 0


def test_the_policy_holds_where_escaping_would_not(grid_run: Path, browser: Browser, tmp_path: Path) -> None:
    """What an attacker would get into the page if a value were not escaped still does nothing."""
    path = write_report(grid_run, tmp_path / "report.html")
    path.write_text(path.read_text().replace("<main>", f"<main>{''.join(ATTACKS)}"))
    browser.open(path)
    assert browser.evaluate("document.title") != "ran"
    assert browser.evaluate("getComputedStyle(document.body).display") == "block"
    assert not [address for address in browser.requests if "example.com" in address and "blocked" in address]
    assert len([text for text in browser.complaints if "Content Security Policy" in text]) >= 4


@pytest.mark.parametrize("run", ["vector_run", "android_run"])
def test_letters_stand_out(run: str, browser: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Contrast of at least 4.5 between letters and what lies behind them (WCAG 2, AA)."""
    path = write_report(request.getfixturevalue(run), tmp_path / "report.html")
    for dark in (False, True):
        browser.open(path, dark=dark)
        low = browser.evaluate(CONTRAST)
        assert low == []


CONTRAST = """
(() => {
  const part = (text) => (text.match(/[0-9.]+/g) || []).map(Number);
  const light = (c) => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = part(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const drawn = e instanceof SVGElement;
    const [a, b] = [light(part(drawn ? getComputedStyle(e).fill : getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = `${e.tagName}.${e.className.baseVal ?? e.className} ${ratio}`;
    if (ratio < 4.5 && !e.closest('.grid, .legend')) low.add(name);
  }
  return [...low];
})()
"""


def test_a_page_has_an_order_that_can_be_heard(android_run: Path, browser: Browser, tmp_path: Path) -> None:
    browser.open(write_report(android_run, tmp_path / "report.html"))
    levels = browser.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(h => Number(h.tagName[1]))")
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert browser.evaluate("document.documentElement.lang") == "en"
    silent = (
        "[...document.images].filter(i => !i.alt).length + document.querySelectorAll('svg:not([aria-label])').length"
    )
    assert browser.evaluate(silent) == 0
    assert browser.evaluate("[...document.querySelectorAll('table')].filter(t => !t.caption).length") == 0
    assert browser.evaluate("document.querySelectorAll('th:not([scope])').length") == 0
    targets = (
        "[...document.querySelectorAll('nav a')].filter(a => !document.querySelector(a.getAttribute('href'))).length"
    )
    assert browser.evaluate(targets) == 0


def test_paper_is_white_and_shows_what_is_folded(android_run: Path, browser: Browser, tmp_path: Path) -> None:
    path = write_report(android_run, tmp_path / "report.html")
    browser.open(path, media="print", dark=True)
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    folded = "[...document.querySelectorAll('details:not([open]) pre')]"
    assert browser.evaluate(f"{folded}.length") > 0
    assert browser.evaluate(f"{folded}.filter(e => !e.checkVisibility({{contentVisibilityAuto: true}})).length") == 0
