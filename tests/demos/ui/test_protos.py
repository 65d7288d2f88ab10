"""The protocol buffers are android_env's and TensorFlow's, and what was generated of them is current."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.demos.ui.data import ANDROID, needs_android
from tests.frame.tree import ROOT

SOURCE = ROOT / "grace_irl" / "demos" / "ui" / "androidcontrol.proto"
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s*(repeated\s+)?([\w.<>, ]+?)\s+(\w+)\s*=\s*(\d+)\s*(?:\[.*\])?;", re.MULTILINE)
COMMENT = re.compile(r"//.*")
TENSORFLOW = {"BytesList", "FloatList", "Int64List", "Feature", "Features", "Example"}


def messages(path: Path) -> dict[str, list[tuple[str, ...]]]:
    """The messages of a .proto file: every field and value of an enumeration, in order."""
    text = COMMENT.sub("", path.read_text())
    return {name: FIELD.findall(body) for name, body in MESSAGE.findall(text)}


OURS = messages(SOURCE)


@needs_android
def test_fields_are_those_of_android_env() -> None:
    theirs: dict[str, list[tuple[str, ...]]] = {}
    for path in (ANDROID / "proto_android_env").glob("*.proto"):
        theirs |= messages(path)
    ours = {name: fields for name, fields in OURS.items() if name not in TENSORFLOW}
    assert len(ours) == 7
    assert ours == {name: theirs[name] for name in ours}


def test_generated_code_is_current() -> None:
    pytest.importorskip("google.protobuf")
    from grace_irl.demos.ui.androidcontrol_pb2 import DESCRIPTOR

    assert set(OURS) == set(DESCRIPTOR.message_types_by_name)
    assert set(OURS) > TENSORFLOW
    for name, fields in OURS.items():
        assert numbers(DESCRIPTOR.message_types_by_name[name]) == {field: int(number) for *_, field, number in fields}


def numbers(message: Any) -> dict[str, int]:
    """Fields of a message and values of its enumerations, by name."""
    values = {value.name: value.number for kind in message.enum_types for value in kind.values}
    return {field.name: field.number for field in message.fields} | values


def test_the_runtime_fits_what_was_generated() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["android"]
    (asked,) = (Requirement(line) for line in extra if line.startswith("protobuf"))
    generated = SOURCE.with_name("androidcontrol_pb2.py").read_text()
    (version,) = re.findall(r"^# Protobuf Python Version: (\S+)$", generated, re.MULTILINE)
    major = int(version.split(".")[0])
    assert {str(one) for one in asked.specifier} == {f">={version}", f"<{major + 2}"}


@pytest.mark.parametrize("package", ["tensorflow", "android_env"])
def test_android_env_and_tensorflow_can_be_loaded_beside(package: str) -> None:
    """Descriptors of the same names as theirs, in the same process: ours have names of their own."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool

    from grace_irl.demos.ui.androidcontrol_pb2 import DESCRIPTOR

    theirs = descriptor_pb2.FileDescriptorProto()
    DESCRIPTOR.CopyToProto(theirs)
    assert theirs.package.startswith("grace_irl.")
    text = theirs.SerializeToString().replace(DESCRIPTOR.package.encode(), package.ljust(24, "_").encode())
    renamed = descriptor_pb2.FileDescriptorProto.FromString(text)
    renamed.name = f"{package}/{renamed.name}"
    descriptor_pool.Default().AddSerializedFile(renamed.SerializeToString())
