"""The mirrors against the headers of the installed wheel: read as text, and compiled."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import mujoco
import pytest
from mujoco.introspect.structs import STRUCTS

from mjhost import layout
from mjhost.engine.abi import fields, structs
from mjhost.engine.abi.structs import Address

INCLUDE = Path(mujoco.__file__).parent / "include"
HEADER = re.sub(r"//[^\n]*", "", (INCLUDE / "mujoco" / "mjplugin.h").read_text())
WRITTEN = {
    "mjpPlugin": structs.Plugin,
    "mjpResourceProvider": structs.Provider,
    "mjResource": structs.Resource,
    "mjpDecoder": structs.Decoder,
    "mjpEncoder": structs.Encoder,
}
TABLES = {
    "mjpPlugin": structs.PLUGIN_PROTOTYPES,
    "mjpResourceProvider": structs.PROVIDER_PROTOTYPES,
    "mjpDecoder": structs.DECODER_PROTOTYPES,
    "mjpEncoder": structs.ENCODER_PROTOTYPES,
}
# Structs of the user interface, which nothing here touches; layout does not know their unions.
UNKNOWN = {"mjUI", "mjuiItem", "mjuiSection"}


# -- signatures ----------------------------------------------------------------------------------


def c_kind(declaration):
    """What a C type is to a calling convention."""
    if re.search(r"[*\[]", declaration):
        return "pointer"
    words = declaration.split()
    return next(word for word in words if word in {"void", "int", "mjtNum", "mjtSize"})


KINDS = {
    None: "void",
    Address: "pointer",
    ctypes.c_char_p: "pointer",
    ctypes.POINTER(ctypes.c_void_p): "pointer",
    ctypes.c_int: "int",
    ctypes.c_double: "mjtNum",
    ctypes.c_int64: "mjtSize",
}


def header_signatures(struct):
    """Slot → kinds of result and arguments, as the header has it."""
    body = re.search(rf"typedef struct {struct}_? {{(.*?)}} {struct};", HEADER, re.DOTALL)[1]
    inline = re.findall(r"([\w ]+\*?) ?\(\*(\w+)\)\((.*?)\);", body, re.DOTALL)
    named = {
        name: (result, arguments)
        for result, name, arguments in re.findall(
            r"typedef ([\w ]+\*?) ?\(\*(mjf\w+)\)\((.*?)\);", HEADER, re.DOTALL
        )
    }
    found = {slot: (result, arguments) for result, slot, arguments in inline}
    for kind, slot in re.findall(r"(mjf\w+) (\w+);", body):
        found[slot] = named[kind]
    return {
        slot: (c_kind(result), *map(c_kind, arguments.split(",")))
        for slot, (result, arguments) in found.items()
    }


@pytest.mark.parametrize("struct", TABLES)
def test_every_prototype_is_that_of_the_header(struct):
    mine = {
        slot: (KINDS[prototype._restype_], *(KINDS[kind] for kind in prototype._argtypes_))
        for slot, prototype in TABLES[struct].items()
    }
    assert mine == header_signatures(struct)


@pytest.mark.parametrize("struct", TABLES)
def test_every_prototype_has_a_member_and_every_function_a_prototype(struct):
    pointers = {
        name
        for name, kind in WRITTEN[struct]._fields_
        if kind is ctypes.c_void_p and name != "data"
    }
    assert pointers == set(TABLES[struct])


def test_no_two_structs_have_a_function_of_the_same_name():
    assert len(structs.PROTOTYPES) == sum(len(table) for table in TABLES.values())


# -- thunks --------------------------------------------------------------------------------------


def test_a_decoder_gets_a_place_for_its_reason_where_the_engine_has_one():
    seen = []
    thunk = structs.thunk("decode", lambda *arguments: seen.append(arguments) or 7)
    if structs.DECODE_REPORTS:
        result = thunk(1, 2, 3, 4)
        expected = (1, 2, 3, 4)
    else:
        result = thunk(1, 2)
        expected = (1, 2)
    assert result == 7
    assert seen == [expected]


def test_a_null_pointer_arrives_as_zero():
    seen = []
    structs.thunk("advance", lambda *arguments: seen.append(arguments))(0, 0, 0)
    assert seen == [(0, 0, 0)]


def test_a_thunk_has_an_address_that_a_struct_can_hold():
    thunk = structs.thunk("advance", lambda model, data, instance: None)
    plugin = structs.Plugin(advance=structs.address_of(thunk))
    assert plugin.advance == ctypes.cast(thunk, ctypes.c_void_p).value
    assert plugin.compute is None


def test_a_string_of_the_engine_is_readable_whatever_it_holds():
    assert structs.text(None) == ""
    assert structs.text(b"a\xff") == "a\N{REPLACEMENT CHARACTER}"


# -- the compiler's word -------------------------------------------------------------------------


def described():
    """Every struct that has a mirror: C name → mirror."""
    return WRITTEN | {name: layout.structure(name) for name in STRUCTS if name not in UNKNOWN}


def members(mirror, prefix=""):
    """Paths of all members as C writes them, and where each is: (path, offset, size)."""
    for name, kind in mirror._fields_:
        descriptor = getattr(mirror, name)
        nested = isinstance(kind, type) and issubclass(kind, ctypes.Structure | ctypes.Union)
        if not name.startswith("_anonymous"):
            yield f"{prefix}{name}", descriptor.offset, descriptor.size
        if nested:
            inner = prefix if name.startswith("_anonymous") else f"{prefix}{name}."
            for path, offset, size in members(kind, inner):
                yield path, descriptor.offset + offset, size


def mine():
    """``struct path`` → (offset, size); a struct itself has the path ``-``."""
    found = {}
    for struct, mirror in described().items():
        found[f"{struct} -"] = (ctypes.alignment(mirror), ctypes.sizeof(mirror))
        found |= {f"{struct} {path}": place for path, *place in members(mirror)}
    return {key: tuple(place) for key, place in found.items()}


def program(keys):
    lines = []
    for struct, path in (key.split() for key in keys):
        one = f"_Alignof({struct})" if path == "-" else f"offsetof({struct}, {path})"
        two = f"sizeof({struct})" if path == "-" else f"sizeof((({struct}*)0)->{path})"
        lines.append(f'printf("{struct} {path} %zu %zu\\n", {one}, {two});')
    includes = "\n".join(
        f"#include <{name}>"
        for name in ("stddef.h", "stdio.h", "mujoco/mujoco.h", "mujoco/mjplugin.h")
    )
    return f"{includes}\nint main(void) {{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"


def compiled(source, folder):
    """What a C program prints; skips where it cannot be made."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    file, binary = folder / "layout.c", folder / "layout"
    file.write_text(source)
    command = [compiler, "-std=c11", "-I", str(INCLUDE), "-o", str(binary), str(file)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert built.returncode == 0, built.stderr[:2000]
    done = subprocess.run([str(binary)], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """What the C compiler says of everything in ``mine()``."""
    output = compiled(program(mine()), tmp_path_factory.mktemp("c"))
    rows = (line.split() for line in output.splitlines())
    return {f"{struct} {path}": (int(one), int(two)) for struct, path, one, two in rows}


@pytest.mark.slow
def test_every_member_lies_where_the_compiler_puts_it(truth):
    assert len(truth) > 1500
    assert mine() == truth


@pytest.mark.slow
@pytest.mark.parametrize(
    "struct",
    ["mjModel", "mjData", "mjContact", "mjOption", "mjStatistic", "mjVisual", "mjvScene"],
)
def test_every_field_of_a_table_lies_where_the_compiler_puts_it(struct, truth):
    found = field_places(struct)
    assert found == {key: truth[key][0] for key in found}


def field_places(struct, table=None, prefix="", start=0):
    """``struct path`` → offset of every field, also of nested structs without a name."""
    found = {}
    for field in fields.fields(table or struct).values():
        path = f"{prefix}{field.name.removesuffix('_')}"
        found[f"{struct} {path}"] = start + field.offset
        if field.kind == "struct":
            found |= field_places(struct, field.struct, f"{path}.", start + field.offset)
    return found
