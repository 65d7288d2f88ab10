"""The protocol buffers are android_env's and TensorFlow's, and what was generated of them is current."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.demos.ui.data import ANDROID, needs_android
from tests.frame.tree import ROOT

PROTOS = ROOT / "grace_irl" / "demos" / "ui" / "protos"
SOURCES = sorted(PROTOS.glob("*.proto"))
FIELD = re.compile(r"^\s*(repeated\s+)?([\w.<>, ]+?)\s+(\w+)\s*=\s*(\d+)\s*(?:\[.*\])?;", re.MULTILINE)
COMMENT = re.compile(r"//.*")


def stated(path: Path) -> list[tuple[str, ...]]:
    """What a .proto file says: every field and value of an enumeration, in order."""
    return FIELD.findall(COMMENT.sub("", path.read_text()))


@needs_android
@pytest.mark.parametrize("path", [path for path in SOURCES if path.stem != "example"], ids=lambda path: path.stem)
def test_fields_are_those_of_android_env(path: Path) -> None:
    theirs = stated(ANDROID / "proto_android_env" / path.name)
    assert theirs
    assert stated(path) == theirs


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_generated_code_is_current(path: Path) -> None:
    pytest.importorskip("google.protobuf")
    module = importlib.import_module(f"grace_irl.demos.ui.protos.{path.stem}_pb2")
    found = {name: number for _, _, name, number in stated(path)}
    assert found
    assert names(module.DESCRIPTOR) == {name: int(number) for name, number in found.items()} | (
        {"key": 1} if path.stem == "example" else {}
    )


def names(file: Any) -> dict[str, int]:
    """Fields and values of a file descriptor, by name."""
    found: dict[str, int] = {}
    todo = list(file.message_types_by_name.values())
    while todo:
        message = todo.pop()
        found |= {field.name: field.number for field in message.fields}
        found |= {value.name: value.number for kind in message.enum_types for value in kind.values}
        todo += message.nested_types
    return found


def test_the_runtime_fits_what_was_generated() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["android"]
    (asked,) = (Requirement(line) for line in extra if line.startswith("protobuf"))
    for path in PROTOS.glob("*_pb2.py"):
        (version,) = re.findall(r"^# Protobuf Python Version: (\S+)$", path.read_text(), re.MULTILINE)
        major = int(version.split(".")[0])
        assert {str(one) for one in asked.specifier} == {f">={version}", f"<{major + 2}"}


def test_android_env_and_tensorflow_can_be_loaded_beside() -> None:
    """Descriptors of the same names as theirs, in the same process: ours have names of their own."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool

    from grace_irl.demos.ui.protos import example_pb2, rect_pb2

    pool = descriptor_pool.Default()
    for module, name in ((example_pb2, "tensorflow"), (rect_pb2, "android_env")):
        theirs = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(theirs)
        assert theirs.package.startswith("grace_irl.")
        theirs.name, theirs.package = f"{name}/{theirs.name}", name
        for message in theirs.message_type:
            for field in [*message.field, *(field for nested in message.nested_type for field in nested.field)]:
                if field.type_name:
                    field.type_name = field.type_name.replace(module.DESCRIPTOR.package, name)
        pool.AddSerializedFile(theirs.SerializeToString())
