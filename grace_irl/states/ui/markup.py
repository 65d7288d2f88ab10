"""The XML of a screen: a safe parser for untrusted files, and a writer of canonical XML."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping

from lxml import etree

from grace_irl.errors import InputError

MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of one screen in bytes. Real screens have 10 KB to 1 MB."""

MAX_NODES = 100_000
"""Maximum number of nodes of one screen. Real screens have 10 to 2,000."""

MAX_DEPTH = 256
"""Maximum depth of nested elements, including the root. This is lxml's default limit, so reward programs can parse
every state with lxml's default parser."""

NODE_BYTES = 5_500
"""Memory of a node that `add` appends, in bytes, without the texts of its attributes. The number is rounded up from
5,028, which was measured once, by hand."""

ATTRIBUTES: dict[str, str] = {
    "index": "0",
    "text": "",
    "resource-id": "",
    "class": "",
    "package": "",
    "content-desc": "",
    "checkable": "false",
    "checked": "false",
    "clickable": "false",
    "enabled": "true",
    "focusable": "false",
    "focused": "false",
    "scrollable": "false",
    "long-clickable": "false",
    "password": "false",
    "selected": "false",
}
"""Attributes of every node in the XML of Android's tool uiautomator, in order, with their defaults. The attribute
`bounds` follows and has no default."""

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DECLARATION = re.compile(r"\s*<\?xml\s[^>]*?\?>")
_ENCODING = re.compile(r"""encoding\s*=\s*["']([^"'>]*)["']""")
_TRAILER = re.compile(r"UI hier(?:chary|archy) dumped to: [^\n<>]*\s*\Z")
"""The line that `uiautomator dump /dev/tty` prints behind the XML, in both spellings of Android's versions."""
_LONGEST_TRAILER = 500
_FAILED = re.compile(r"\s*(ERROR: [^\n<]*)")
"""The start of the text that uiautomator writes if it could not dump the screen."""
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def parse(data: bytes | str, where: str = "") -> etree._Element:
    """The tree of one screen: a `<hierarchy>` of `<node>`s, without comments and without text between the nodes.

    The parser expands no entities and opens no DTD, file or address. A screen with too many bytes or tags is refused
    before it is parsed. Bytes are UTF-8, or UTF-16 with a byte order mark.

    Args:
        data: XML, with or without a declaration. The encoding that a `str` declares is ignored, and so is the line
            that uiautomator prints behind the XML.
        where: file and step, for messages.

    Raises:
        InputError: the data is not the XML of a screen, or exceeds `MAX_BYTES`, `MAX_NODES` or `MAX_DEPTH`.
    """
    where = where or "screen"
    if len(data) > MAX_BYTES:
        raise InputError(f"{where}: a screen of {len(data):,} bytes; expected at most {MAX_BYTES:,}: drop it")
    text = data if isinstance(data, str) else _decoded(data, where)
    if "\0" in text:
        raise InputError(f"{where}: a null character at {text.index(chr(0))}; expected XML, which holds none")
    declaration = _DECLARATION.match(text)
    if declaration:
        text = text[declaration.end() :]
    trailer = _TRAILER.search(text, max(len(text) - _LONGEST_TRAILER, 0))
    if trailer:
        text = text[: trailer.start()]
    failed = _FAILED.match(text)
    if failed:
        raise InputError(
            f"{where}: {failed[1].strip()[:160]!r} instead of a screen, as uiautomator reports a dump that failed; "
            "expected XML: dump the screen again, or drop it"
        )
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(f"{where}: XML with a DOCTYPE or entities; expected a plain <hierarchy>: remove them")
    opening = text.count("<") - sum(text.count(other) for other in ("</", "<!", "<?"))
    if opening > MAX_NODES + 1:  # the root is no node
        raise InputError(f"{where}: {opening:,} opening tags; expected a screen of at most {MAX_NODES:,} nodes")
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: half a surrogate pair; expected text that is Unicode: write it again") from None
    # A new parser for every text, because a parser keeps the names and errors of all its texts.
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(encoded, parser)
    except etree.XMLSyntaxError as error:
        raise InputError(f"{where}: {_reason(error)}; expected the XML of one screen: <hierarchy>…") from None
    return _checked(root, where)


def write(root: etree._Element, where: str = "") -> str:
    """The canonical XML of a tree: no declaration, nothing between the nodes, attributes in the tree's order.

    Args:
        root: tree from `parse`, or from `hierarchy` and `add`.
        where: file and step, for messages.

    Raises:
        InputError: the written XML is longer than `MAX_BYTES`. Escapes can lengthen the parsed XML.
    """
    text = str(etree.tostring(root, encoding="unicode", with_tail=False))
    if len(text) > MAX_BYTES or (not text.isascii() and len(text.encode()) > MAX_BYTES):
        raise InputError(f"{where or 'screen'}: more than {MAX_BYTES:,} bytes as XML; expected at most that: drop it")
    return text


def hierarchy(rotation: int = 0) -> etree._Element:
    """The root of an empty screen, for file formats that describe screens in another form than XML."""
    root = etree.Element("hierarchy")
    root.set("rotation", str(rotation))
    return root


def add(parent: etree._Element, values: Mapping[str, object]) -> etree._Element:
    """Append a node with all `ATTRIBUTES` in their order, then its bounds, then all other entries of `values`.

    Args:
        parent: a node or the root.
        values: attributes by name. Booleans become "true" or "false", None stands for the default, and texts go
            through `rinse`. The default index is one more than the index of the parent's last child.
    """
    stated = {name: _spelled(value) for name, value in values.items() if value is not None}
    if "index" not in stated:
        last = next(parent.iterchildren(reversed=True), None)  # `len(parent)` is slow: lxml counts one by one
        stated["index"] = "0" if last is None else str(int(last.get("index", "0")) + 1)
    bounds = {"bounds": stated["bounds"]} if "bounds" in stated else {}
    return etree.SubElement(parent, "node", {**ATTRIBUTES, **bounds, **stated})


def rinse(text: str) -> str:
    """Replace characters that XML cannot hold by U+FFFD: controls, lone surrogates, U+FFFE and U+FFFF."""
    return _ILLEGAL.sub("\ufffd", text)


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return rinse(str(value))


def _decoded(data: bytes, where: str) -> str:
    bom, encoding = next((pair for pair in _BOMS if data.startswith(pair[0])), (b"", "utf-8"))
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: byte {error.start} is not {encoding.upper()} ({error.reason}); expected XML in UTF-8"
        ) from None
    declaration = _DECLARATION.match(text)
    declared = _ENCODING.search(declaration[0]) if declaration else None
    if declared and not encoding.startswith(declared[1].lower()) and declared[1].lower() not in ("utf8", "us-ascii"):
        raise InputError(
            f"{where}: declares the encoding {declared[1][:40]!r}; expected UTF-8, or UTF-16 with its byte order mark"
        )
    return text


def _checked(root: etree._Element, where: str) -> etree._Element:
    """Refuse a tree with other elements than nodes. Return the tree without white space between the nodes."""
    if root.tag != "hierarchy":
        raise InputError(f"{where}: root <{str(root.tag)[:80]}>; expected <hierarchy>, as uiautomator dumps it")
    for element in root.iter():
        if element is not root and re.fullmatch(r"[\w$]+(\.[\w$]+)+", str(element.tag)):  # the name of a class
            raise InputError(
                f"{where}: an element <{str(element.tag)[:80]}>, as in the page source of Appium; expected only <node> "
                "in a <hierarchy>: dump the screen by `adb shell uiautomator dump`"
            )
        if element is not root and element.tag != "node":
            raise InputError(f"{where}: an element <{str(element.tag)[:80]}>; expected only <node> in a <hierarchy>")
        for between in (element.text, element.tail):
            if between and not between.isspace():
                raise InputError(f"{where}: text {between.strip()[:40]!r} between nodes; expected it in attributes")
        element.text = element.tail = None
    return root


def _reason(error: etree.XMLSyntaxError) -> str:
    """The parser's message on one line. Long messages are cut, because they may quote very long names."""
    if "depth" in str(error.msg):
        return f"nodes nested deeper than {MAX_DEPTH}"
    if "HUGE" in str(error.msg):  # the parser's own limit for one tag, 10,000,000 bytes
        return "a tag longer than 10,000,000 bytes"
    line = " ".join(str(error.msg or "empty text").split())
    return f"not well-formed XML ({line[:160]})"
