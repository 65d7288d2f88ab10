"""Attacks with XML: what a program parses itself is bounded by what bounds the program."""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from tests.hostile.attack import Attack, attempt, program

_LAUGHS = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
_BOMB = f'<!DOCTYPE a [<!ENTITY e0 "ha">{_LAUGHS}]><a>&e12;</a>'
_QUADRATIC = "'<!DOCTYPE a [<!ENTITY e \"' + 'x' * 100_000 + '\">]><a>' + '&e;' * 100_000 + '</a>'"
_OPEN = "huge = lxml.etree.XMLParser(huge_tree=True, resolve_entities=True, load_dtd=True, no_network=False)"

_IMPORTS = "\nimport lxml.etree, lxml.html\nimport xml.etree.ElementTree as ET\nimport xml.dom.minidom\n"


def _bounded(name: str, body: str, *statuses: str) -> Attack:
    lines = "\n        ".join(body.strip().splitlines())
    source = f"{_IMPORTS}\nclass Reward:\n    def reward_fn(self, state):\n        {lines}\n        return 0.0\n"
    return program(name, source, *statuses, memory_mb=256, wall_s=5.0)


def _read(name: str, call: str) -> Attack:
    """Tries to have a secret file come back in the text of an entity."""
    secret = f'<!DOCTYPE a [<!ENTITY e SYSTEM "file://@FOLDER@/secret">]><a>&e;</a>'  # noqa: F541
    body = f"import lxml.etree, lxml.html\nimport xml.etree.ElementTree as ET\nimport xml.dom.minidom\n{_OPEN}\nsecret = {secret!r}\nreturn bool({call})"
    return attempt(name, body)


ATTACKS = [
    _bounded("entity bomb, lxml", f"lxml.etree.fromstring({_BOMB!r})", "runtime", "memory"),
    _bounded("entity bomb, lxml without limits", f"{_OPEN}\nlxml.etree.fromstring({_BOMB!r}, huge)", "runtime", "memory", "timeout", "killed"),
    _bounded("entity bomb, xml.etree", f"ET.fromstring({_BOMB!r})", "runtime", "memory", "timeout"),
    _bounded("entity bomb, minidom", f"xml.dom.minidom.parseString({_BOMB!r})", "runtime", "memory", "timeout"),
    _bounded("quadratic entities, lxml", f"lxml.etree.fromstring({_QUADRATIC})", "runtime", "memory", "timeout"),
    _bounded("quadratic entities, xml.etree", f"ET.fromstring({_QUADRATIC})", "runtime", "memory", "timeout"),
    _bounded("a tree of 10,000 levels, lxml", "lxml.etree.fromstring('<a>' * 10_000 + '</a>' * 10_000)", "runtime"),
    _bounded(
        "a tree of 10,000 levels, lxml without limits",
        f"{_OPEN}\nlxml.etree.tostring(lxml.etree.fromstring('<a>' * 10_000 + '</a>' * 10_000, huge))",
        "runtime", "killed", "memory", "ok",
    ),
    _bounded(
        "a tree of 1,000,000 levels, xml.etree",
        "import copy\nroot = ET.fromstring('<a>' * 1_000_000 + '</a>' * 1_000_000)\ncopy.deepcopy(root)",
        "runtime", "killed", "memory", "timeout",
    ),
    _bounded("a tree of 100,000 levels, lxml.html", "lxml.html.fromstring('<div>' * 100_000).text_content()", "runtime", "killed", "memory", "ok"),
    _bounded("50 MB of XML, lxml", "lxml.etree.fromstring('<a>' + '<b/>' * 12_500_000 + '</a>')", "memory", "runtime", "timeout", "killed"),
    _bounded("50 MB of XML, xml.etree", "ET.fromstring('<a>' + '<b/>' * 12_500_000 + '</a>')", "memory", "runtime", "timeout", "killed"),
    _bounded("an XPath bomb", "lxml.etree.fromstring('<a>' + '<b/>' * 2000 + '</a>').xpath('count(' + '//b' + '[count(//b)]' * 12 + ')')\nwhile True: pass", "timeout", "runtime"),
    _read("an entity of a file, lxml", "lxml.etree.fromstring(secret, huge).text"),
    _read("an entity of a file, xml.etree", "ET.fromstring(secret).text"),
    _read("a document by its path", "lxml.etree.parse('@FOLDER@/secret')"),
    _read("a document by its path, lxml.html", "lxml.html.parse('@FOLDER@/secret')"),
    _read("an entity of an address", "lxml.etree.fromstring(secret.replace('file://@FOLDER@/secret', 'http://127.0.0.1:@TCP@/x'), huge).text"),
    _read("a document by its address", "lxml.etree.parse('http://127.0.0.1:@TCP@/x')"),
    _read("a document from an XPath", "lxml.etree.fromstring('<a/>').xpath(\"document('@FOLDER@/secret')\")"),
    _read(
        "a document from a stylesheet",
        "str(lxml.etree.XSLT(lxml.etree.XML('<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\"><xsl:template match=\"/\"><xsl:copy-of select=\"document(&quot;@FOLDER@/secret&quot;)\"/></xsl:template></xsl:stylesheet>'))(lxml.etree.XML('<a/>'))).count('s')",
    ),
    _read(
        "a file from a stylesheet",
        "lxml.etree.XSLT(lxml.etree.XML('<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\" xmlns:e=\"http://exslt.org/common\" extension-element-prefixes=\"e\"><xsl:template match=\"/\"><e:document href=\"@FOLDER@/created\">x</e:document></xsl:template></xsl:stylesheet>'))(lxml.etree.XML('<a/>')) and False",
    ),
    _read("a tree that is written to a file", "lxml.etree.ElementTree(lxml.etree.XML('<a/>')).write('@FOLDER@/created') is None"),
    _read("an inclusion", "lxml.etree.ElementTree(lxml.etree.XML('<a xmlns:x=\"http://www.w3.org/2001/XInclude\"><x:include href=\"@FOLDER@/secret\" parse=\"text\"/></a>')).xinclude() is None"),
]  # fmt: skip
