"""The XML of a screen is read without harm, refused in one line, and has one spelling."""

from __future__ import annotations

import codecs
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from grace_irl.errors import InputError
from grace_irl.states.ui import markup
from tests.demos.ui.data import DUMPS, needs_android

BOMB = (
    '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    + ']><hierarchy><node text="&j;"/></hierarchy>'
)
QUADRATIC = f'<!DOCTYPE a [<!ENTITY a "{"a" * 100_000}">]><hierarchy><node text="{"&a;" * 100_000}"/></hierarchy>'


def nested(depth: int) -> str:
    """A screen whose innermost node is so deep, the root included."""
    return f"<hierarchy>{'<node>' * (depth - 1)}{'</node>' * (depth - 1)}</hierarchy>"


REFUSED = {
    "entity bomb": (BOMB, "DOCTYPE"),
    "quadratic bomb": (QUADRATIC, "DOCTYPE"),
    "parameter entities": (
        '<!DOCTYPE a SYSTEM "http://localhost:1/a.dtd" [<!ENTITY % b "c">%b;]><hierarchy/>',
        "DOCTYPE",
    ),
    "entity that nobody declares": ('<hierarchy><node text="&nbsp;"/></hierarchy>', "not well-formed"),
    "10,000 deep": (nested(10_000), "deeper than 256"),
    "1,000,000 deep": (nested(1_000_000), "tags"),
    "one too deep": (nested(markup.MAX_DEPTH + 1), "deeper than 256"),
    "too many nodes": (f"<hierarchy>{'<node/>' * 200_001}</hierarchy>", "tags"),
    "one node too many": (f"<hierarchy>{'<node/>' * (markup.MAX_NODES + 1)}</hierarchy>", "tags"),
    "a long text": (f'<hierarchy><node text="{"a" * 12_000_000}"/></hierarchy>', "longer than 10,000,000 bytes"),
    "50 MB": (f'<hierarchy><node text="{"a" * 50_000_000}"/></hierarchy>', "bytes"),
    "50 MB of nodes": (f"<hierarchy>{'<node/>' * 7_000_000}</hierarchy>", "bytes"),
    "broken UTF-8": (b'<hierarchy><node text="\xff\xfe"/></hierarchy>', "byte 23 is not UTF-8"),
    "cut UTF-8": (b'<hierarchy><node text="\xe4\xb8', "byte 23 is not UTF-8"),
    "surrogate in UTF-8": (b'<hierarchy text="\xed\xa0\x80"/>', "not UTF-8"),
    "half a surrogate pair": ('<hierarchy text="\ud800"/>', "surrogate"),
    "null character": (b'<hierarchy text="a\0b"/>', "null character at 18"),
    "control character": (b'<hierarchy text="a\x01b"/>', "not well-formed"),
    "control character by number": ('<hierarchy text="&#1;"/>', "not well-formed"),
    "another encoding": (b'<?xml version="1.0" encoding="ISO-8859-1"?><hierarchy/>', "'ISO-8859-1'"),
    "UTF-7": (b'<?xml version="1.0" encoding="UTF-7"?><hierarchy/>', "'UTF-7'"),
    "UTF-16 without its mark": ("<hierarchy/>".encode("utf-16-le"), "null character"),
    "half a UTF-16 character": (codecs.BOM_UTF16_LE + b"<", "not UTF-16"),
    "several roots": ("<hierarchy/><hierarchy/>", "Extra content"),
    "another root": ("<html/>", "root <html>"),
    "a root in a name space": ('<hierarchy xmlns="a"/>', "root <{a}hierarchy>"),
    "another element": ('<hierarchy><button text="a"/></hierarchy>', "<button>"),
    "a root within": ("<hierarchy><hierarchy/></hierarchy>", "<hierarchy>"),
    "text between nodes": ("<hierarchy>hello</hierarchy>", "'hello'"),
    "text behind a node": ("<hierarchy><node/>\n hello</hierarchy>", "'hello'"),
    "CDATA": ("<hierarchy><![CDATA[<node/>]]></hierarchy>", "between nodes"),
    "a processing instruction of XInclude": (
        '<hierarchy xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="/etc/hostname"/></hierarchy>',
        "XInclude",
    ),
    "an attribute twice": ('<hierarchy><node text="a" text="b"/></hierarchy>', "redefined"),
    "cut off": ("<hierarchy><node", "not well-formed"),
    "empty": ("", "not well-formed"),
    "blanks": (" \n", "not well-formed"),
    "a long name": (f"<{'a' * 60_000}/>", "not well-formed"),
    "a long name that ends wrong": (f"<hierarchy><{'a' * 40_000}></b></hierarchy>", "not well-formed"),
    "JSON": ('{"text": 1}', "not well-formed"),
}


@pytest.mark.parametrize(("data", "word"), REFUSED.values(), ids=REFUSED)
def test_hostile_xml_is_refused_in_one_short_line(data: str | bytes, word: str) -> None:
    with pytest.raises(InputError) as caught:
        markup.parse(data, "dump.xml, step 3")
    message = str(caught.value)
    assert message.startswith("dump.xml, step 3: ")
    assert word in message
    assert "expected" in message
    assert "\n" not in message
    assert len(message) < 400


def test_no_entity_reads_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    for text in (
        f'<!DOCTYPE a [<!ENTITY x SYSTEM "file://{secret}">]><hierarchy><node text="&x;"/></hierarchy>',
        f'<!DOCTYPE a [<!ENTITY x SYSTEM "file://{secret}">]><hierarchy>&x;</hierarchy>',
        f'<!DOCTYPE hierarchy SYSTEM "file://{secret}"><hierarchy/>',
        f'<!ENTITY x SYSTEM "file://{secret}"><hierarchy>&x;</hierarchy>',
    ):
        for data in (text, text.encode(), text.encode("utf-16")):
            with pytest.raises(InputError) as caught:
                markup.parse(data)
            assert "the secret" not in str(caught.value)


PARSE_ALL = """
import resource, sys, time
from grace_irl.states.ui import markup
from grace_irl.errors import InputError
from tests.demos.ui.test_markup import REFUSED
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
for data, _ in REFUSED.values():
    try:
        markup.parse(data)
    except InputError:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_hostile_xml_takes_little_memory_and_no_stack() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PARSE_ALL], capture_output=True, text=True, cwd=Path(__file__).parents[3], timeout=60
    )
    assert done.returncode == 0, done.stderr
    kilobytes = int(done.stdout)
    assert kilobytes < 300_000  # the texts themselves are 100 MB; ten times that would be a tree of what was refused


def test_the_largest_screens_that_are_taken() -> None:
    assert len(list(markup.parse(nested(markup.MAX_DEPTH)).iter())) == markup.MAX_DEPTH
    for node in ("<node/>", "<node></node>", "<node/><!-- no node -->"):
        assert len(markup.parse(f"<hierarchy>{node * markup.MAX_NODES}</hierarchy>")) == markup.MAX_NODES
    assert etree.fromstring(nested(markup.MAX_DEPTH)) is not None  # by lxml's own defaults, as programs parse
    long = markup.write(markup.parse(f'<hierarchy><node text="{"a" * 9_000_000}"/></hierarchy>'))
    assert etree.fromstring(long)[0].get("text") == "a" * 9_000_000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("declared", ["UTF-8", "utf-16", "", None])
def test_encodings(encoding: str, declared: str | None) -> None:
    said = "" if declared is None else f"<?xml version='1.0' encoding='{declared}' standalone='yes' ?>\r\n"
    data = f'{said}<hierarchy rotation="0"><node text="8:25 – 日 \U0001f552"/></hierarchy>'.encode(encoding)
    if (declared == "utf-16" and encoding != "utf-16") or (declared == "UTF-8" and encoding == "utf-16"):
        with pytest.raises(InputError, match="encoding"):
            markup.parse(data)
    else:
        assert (
            markup.write(markup.parse(data))
            == '<hierarchy rotation="0"><node text="8:25 – 日 \U0001f552"/></hierarchy>'
        )


def test_one_spelling() -> None:
    text = """<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>
    <!-- a comment --><?a processing instruction?>
    <hierarchy rotation='1'>
      <node index='0' text='&quot;8&#58;25&quot; &lt;b&gt; &amp; &#10;it&apos;s' NAF="true"><!-- another --></node>
      <node></node>
    </hierarchy>
    <!-- the end -->"""
    spelled = markup.write(markup.parse(text))
    assert spelled == (
        '<hierarchy rotation="1"><node index="0" text="&quot;8:25&quot; &lt;b&gt; &amp; &#10;it\'s" NAF="true"/>'
        "<node/></hierarchy>"
    )
    assert markup.write(markup.parse(spelled)) == spelled


def test_a_text_that_grows_beyond_the_limit_is_not_written() -> None:
    root = markup.parse(f"<hierarchy><node text='{chr(34) * 3_000_000}'/></hierarchy>")
    with pytest.raises(InputError, match="16,777,216 bytes as XML"):
        markup.write(root, "dump.xml")


@needs_android
@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_a_real_dump_keeps_its_nodes_their_order_and_all_attributes(path: Path) -> None:
    expected = etree.parse(path).getroot()
    root = markup.parse(path.read_bytes(), str(path))
    text = markup.write(root)
    again = markup.parse(text)
    for found in (root, again):
        assert [node.tag for node in found.iter()] == [node.tag for node in expected.iter()]
        assert [list(node.attrib.items()) for node in found.iter()] == [
            list(node.attrib.items()) for node in expected.iter()
        ]
        assert [len(node) for node in found.iter()] == [len(node) for node in expected.iter()]
    assert markup.write(again) == text
    assert "> <" not in text
    assert "\n" not in text


@st.composite
def screens(draw: st.DrawFn) -> etree._Element:
    root = markup.hierarchy(draw(st.integers(0, 3)))
    places = [root]
    for _ in range(draw(st.integers(0, 12))):
        parent = places[draw(st.integers(0, len(places) - 1))]
        values = draw(
            st.dictionaries(
                st.sampled_from(["text", "resource-id", "class", "hint", "bounds", "checked", "NAF"]),
                st.text() | st.booleans() | st.none() | st.integers(),
            )
        )
        places.append(markup.add(parent, values))
    return root


@given(screens())
def test_what_is_built_is_read_back_whatever_its_texts(root: etree._Element) -> None:
    text = markup.write(root)
    found = markup.parse(text)
    assert [dict(node.attrib) for node in found.iter()] == [dict(node.attrib) for node in root.iter()]
    assert markup.write(found) == text
    assert markup.write(markup.parse(text.encode())) == text


@given(st.text(st.characters()))
def test_rinsed_text_is_kept_where_xml_can_hold_it(text: str) -> None:
    rinsed = markup.rinse(text)
    assert len(rinsed) == len(text)
    element = etree.Element("node")
    for old, new in zip(text, rinsed, strict=True):
        try:
            element.set("text", old)
            legal = True
        except (ValueError, UnicodeEncodeError):
            legal = False
        # lxml takes U+FFFE and U+FFFF, which its own parser refuses
        assert new == (old if legal and old not in "\ufffe\uffff" else "\ufffd")


def test_a_node_has_every_attribute_in_its_order_and_then_the_others() -> None:
    root = markup.hierarchy()
    markup.add(root, {"hint": "Search", "text": "a\0b", "checked": True, "class": None, "bounds": "[0,1][2,3]"})
    node = markup.add(root, {"index": 7})
    assert list(root[0].attrib) == [*markup.ATTRIBUTES, "bounds", "hint"]
    assert root[0].get("text") == "a\ufffdb"
    assert (root[0].get("checked"), root[0].get("class"), root[0].get("index")) == ("true", "", "0")
    assert list(node.attrib) == list(markup.ATTRIBUTES)
    assert node.get("index") == "7"
