"""Machine-code frames between the engine and Python, which let a failing method end the step.

Owns: one small function per slot and plugin name, compiled with llvmlite (extra ``fast``): it tries
the compiled method if there is one, else calls the thunk; and when the thunk left something to
raise, it is this function, with no Python below it on the stack, that gives the engine an error.

    status = compiled(...)              if there is one, and no failure is pending for the data
    if status == 0: return
    out = NULL;  thunk(..., &out, status)
    if out: free what the call was making, give back the engine's stack,
            set Python's error, raise the engine's

Invariants: the engine's error function does not come back, so that nothing but machine code may
lie between it and who waits for it: a Python frame there would be left half-way. It is called only
where somebody waits (``contexts``). What ``out`` leads to is looked at before the thread can fail
again.
Threads: any. Calls that are inside Python, or wait to get in, are counted.
Failure: ``build`` raises ``ImportError`` without llvmlite; afterwards nothing can fail.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping
from functools import cache
from threading import get_ident
from typing import Any, Final

from mjhost.callbacks.native import immortal
from mjhost.engine import contexts, failures, jump_buffers
from mjhost.engine.abi.structs import Address, address_of
from mjhost.engine.abi.symbols import engine_text, symbol_address
from mjhost.engine.contexts import Context
from mjhost.errors import EnginePluginError
from mjhost.layout import offset_of

_SHOWN: Final = 900  # bytes of a message; the engine cuts at 1023

# Slot → result, parameters (p: pointer, i: int), index of the data among them.
_SLOTS: Final[Mapping[str, tuple[str, str, int]]] = {
    "init": ("i32", "ppi", 1),
    "destroy": ("void", "pi", 0),
    "copy": ("void", "pppi", 0),
    "reset": ("void", "pppi", -1),
    "compute": ("void", "ppii", 1),
    "advance": ("void", "ppi", 1),
    "visualize": ("void", "ppppi", 1),
    "actuator_act_dot": ("void", "ppi", 1),
    "sdf_distance": ("double", "ppi", 1),
    "sdf_gradient": ("void", "pppi", 2),
    "sdf_staticdistance": ("double", "pp", -1),
}
# Compiled entries take these instead: a step has a capability, a distance has a place for it.
_COMPILED_PARAMETERS: Final = {"advance": ", i32 0", "actuator_act_dot": ", i32 0"}

_counter: Final = immortal(ctypes.c_int64(0))


def available() -> bool:
    """Whether frames can be made."""
    return importlib.util.find_spec("llvmlite") is not None


def inside() -> int:
    """How many calls of the engine are in Python now, or wait to get in."""
    return int(_counter.value)


# -- what a thunk leaves -------------------------------------------------------------------------


class _Cell(ctypes.Structure):
    """What to raise, read by ``@finish``; zero means not to do it."""

    _fields_ = (
        ("type", ctypes.c_uint64),
        ("value", ctypes.c_uint64),  # an own reference
        ("message", ctypes.c_uint64),
        ("unwound", ctypes.c_uint64),  # data whose stack is given back
        ("deleted", ctypes.c_uint64),  # data that nobody has got yet
    )


# One per thread and replaced by the next: it has been used by then. Not a ``threading.local``: the
# Python state of a thread of the engine may be gone when the thunk has returned.
_cells: Final[dict[int, tuple[_Cell, Any]]] = {}


def can_abort(out: int) -> bool:
    """Whether somebody waits for an engine error of this thread.

    Args:
        out: what the frame handed to the thunk; what it has saved comes after it.
    """
    context, module = contexts.current_with_module()
    saved = out + 8 if jump_buffers.is_needed() else 0
    return context is Context.ENGINE or (
        context is Context.BINDING and jump_buffers.intact(module, saved)
    )


def abort(out: int, error: EnginePluginError, data: int, fresh: int) -> bool:
    """Leaves ``error`` for the frame to raise; false if it could not be.

    Args:
        out: what the frame handed to the thunk.
        error: what to raise.
        data: address of the data of the call.
        fresh: the same if the call is making the data, else 0.
    """
    if not can_abort(out):
        return False
    in_engine = contexts.current() is Context.ENGINE
    if in_engine:
        failures.carried(error)
    cell = _cell(None if in_engine else failures.surface(error), str(error))
    if fresh:
        cell.deleted = fresh
    else:
        cell.unwound = data
    ctypes.c_uint64.from_address(out).value = ctypes.addressof(cell)
    return True


def refuse(out: int, error: BaseException | None) -> None:
    """Has ``init`` return -1, with ``error`` as what the binding raises of it."""
    cell = _cell(error, "")
    ctypes.c_uint64.from_address(out).value = ctypes.addressof(cell)


def _cell(error: BaseException | None, message: str) -> _Cell:
    cell, text = _Cell(), None
    if error is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(error))
        cell.type, cell.value = id(type(error)), id(error)
    if message:
        encoded = engine_text(message)[:_SHOWN].replace(b"%", b"%%")
        text = ctypes.create_string_buffer(encoded)
        cell.message = ctypes.addressof(text)
    _cells[get_ident()] = cell, text
    return cell


# -- code ----------------------------------------------------------------------------------------


def build(
    thunks: Mapping[str, Any],
    retries: Mapping[str, Any],
    compiled: Mapping[str, ctypes.c_uint64],
) -> dict[str, int]:
    """Compiles the frames of one plugin name; slot → address, for ever.

    Args:
        thunks: slot → Python function.
        retries: the same for slots with a compiled method, called instead if that was tried.
        compiled: slot → cell with the address of a compiled method, or 0.

    Raises:
        ImportError: llvmlite is not installed.
    """
    source = [_common()]
    made = tuple(slot for slot in thunks if slot in _SLOTS)
    for slot in made:
        first = _closure(slot, thunks[slot])
        again = _closure(slot, retries[slot], retries=True) if slot in retries else first
        cell = compiled.get(slot)
        source.append(_frame(slot, first, again, 0 if cell is None else ctypes.addressof(cell)))
    return _compile("\n".join(source), made)


def _closure(slot: str, function: Any, *, retries: bool = False) -> int:
    """The address of a C function around ``function``, for ever."""
    result, parameters, _ = _SLOTS[slot]
    arguments = [Address if letter == "p" else ctypes.c_int for letter in parameters]
    if slot == "sdf_staticdistance":
        return address_of(immortal(ctypes.CFUNCTYPE(ctypes.c_double, *arguments)(function)))
    place = (Address,) if result == "double" else ()
    status = (ctypes.c_int,) if retries else ()
    prototype = ctypes.CFUNCTYPE(None, *arguments, *place, Address, *status)
    return address_of(immortal(prototype(function)))


_COMMON: Final = """
define internal void @zero(i64 %data, i64 %offset) alwaysinline {{
  %at = add i64 %data, %offset
  %p = inttoptr i64 %at to ptr
  store i64 0, ptr %p
  ret void
}}

define internal void @finish(i64 %cell) noinline {{
  %c = inttoptr i64 %cell to ptr
  %type = load i64, ptr %c
  %valuep = getelementptr i64, ptr %c, i64 1
  %value = load i64, ptr %valuep
  %messagep = getelementptr i64, ptr %c, i64 2
  %message = load i64, ptr %messagep
  %unwoundp = getelementptr i64, ptr %c, i64 3
  %unwound = load i64, ptr %unwoundp
  %deletedp = getelementptr i64, ptr %c, i64 4
  %deleted = load i64, ptr %deletedp
  %has_stack = icmp ne i64 %unwound, 0
  br i1 %has_stack, label %unwind, label %unwound_now
unwind:
  call void @zero(i64 %unwound, i64 {pstack})
  call void @zero(i64 %unwound, i64 {pbase})
  br label %unwound_now
unwound_now:
  %has_new = icmp ne i64 %deleted, 0
  br i1 %has_new, label %delete, label %deleted_now
delete:
  %deletef = inttoptr i64 {delete_data} to ptr
  call void %deletef(i64 %deleted)
  br label %deleted_now
deleted_now:
  %has_error = icmp ne i64 %type, 0
  br i1 %has_error, label %set, label %set_now
set:
  %ensure = inttoptr i64 {ensure} to ptr
  %release = inttoptr i64 {release} to ptr
  %setobject = inttoptr i64 {set_object} to ptr
  %decref = inttoptr i64 {decref} to ptr
  %state = call i32 %ensure()
  call void %setobject(i64 %type, i64 %value)
  call void %decref(i64 %value)
  call void %release(i32 %state)
  br label %set_now
set_now:
  %has_message = icmp ne i64 %message, 0
  br i1 %has_message, label %raise, label %end
raise:
  %error = inttoptr i64 {error} to ptr
  call void (ptr, ...) %error(ptr %messageptr)
  br label %end
end:
  ret void
}}
""".replace("ptr %messageptr", "i64 %message").replace("(ptr, ...)", "(i64, ...)")


@cache
def _python_functions() -> dict[str, int]:
    names = {
        "ensure": "PyGILState_Ensure",
        "release": "PyGILState_Release",
        "set_object": "PyErr_SetObject",
        "fetch": "PyErr_Fetch",
        "restore": "PyErr_Restore",
        "decref": "Py_DecRef",
    }
    return {key: address_of(getattr(ctypes.pythonapi, name)) for key, name in names.items()}


@cache
def _common() -> str:
    return _COMMON.format(
        pstack=offset_of("mjData", "pstack"),
        pbase=offset_of("mjData", "pbase"),
        delete_data=symbol_address("mj_deleteData"),
        error=symbol_address("mju_error"),
        **_python_functions(),
    )


_FRAME: Final = """
define {type} @{slot}({parameters}) {{
entry:
  %frame = alloca {{ i64, {saved} }}
  %out = getelementptr {{ i64, {saved} }}, ptr %frame, i32 0, i32 0
  %saved = getelementptr {{ i64, {saved} }}, ptr %frame, i32 0, i32 1
  store i64 0, ptr %out
  %result = alloca double
  store double {far}, ptr %result
  {compiled}
python:
  %status = phi i32 {statuses}
  %counter = inttoptr i64 {counter} to ptr
  %before = atomicrmw add ptr %counter, i64 1 seq_cst
  {save}
  %thunk = inttoptr i64 {thunk} to ptr
  {call}
  {restore}
  %after = atomicrmw sub ptr %counter, i64 1 seq_cst
  %cell = load i64, ptr %out
  %fine = icmp eq i64 %cell, 0
  br i1 %fine, label %done, label %failed, !prof !0
failed:
  call void @finish(i64 %cell)
  {failed}
done:
  {done}
}}
"""

_TRY: Final = """
  %fastcell = inttoptr i64 {cell} to ptr
  %fast = load atomic i64, ptr %fastcell acquire, align 8
  %some = icmp ne i64 %fast, 0
  br i1 %some, label %look, label %python
look:
  {look}
run:
  %fastf = inttoptr i64 %fast to ptr
  %tried = call i32 %fastf({arguments})
  %worked = icmp eq i32 %tried, 0
  br i1 %worked, label %done, label %python, !prof !0
"""

_LOOK: Final = """
  %markat = add i64 %a{data}, {mark_offset}
  %markp = inttoptr i64 %markat to ptr
  %mark = load i32, ptr %markp
  %quiet = icmp ne i32 %mark, {mark}
  br i1 %quiet, label %run, label %python, !prof !0
"""

_CHOOSE: Final = """
  %untried = icmp eq i32 %status, 0
  %chosen = select i1 %untried, i64 {first}, i64 {again}
  %chosenf = inttoptr i64 %chosen to ptr
  """

# `destroy` of other instances runs while the error of a failed `init` is on its way to the binding.
_SET_ASIDE: Final = """
  %aside = alloca [3 x i64]
  %aside1 = getelementptr i64, ptr %aside, i64 1
  %aside2 = getelementptr i64, ptr %aside, i64 2
  %ensure = inttoptr i64 {ensure} to ptr
  %state = call i32 %ensure()
  %fetch = inttoptr i64 {fetch} to ptr
  call void %fetch(ptr %aside, ptr %aside1, ptr %aside2)
"""
_PUT_BACK: Final = """
  %type = load i64, ptr %aside
  %value = load i64, ptr %aside1
  %trace = load i64, ptr %aside2
  %put = inttoptr i64 {restore} to ptr
  call void %put(i64 %type, i64 %value, i64 %trace)
  %release = inttoptr i64 {release} to ptr
  call void %release(i32 %state)
"""

_METADATA: Final = '!0 = !{!"branch_weights", i32 2000, i32 1}'


def _frame(slot: str, first: int, again: int, cell: int) -> str:
    """The code of one slot.

    Args:
        slot: its name.
        first: address of the closure around the thunk.
        again: the same for after the compiled method; equal to ``first`` if there is none.
        cell: address of the cell with the compiled method; 0 if there cannot be one.
    """
    result, letters, _ = _SLOTS[slot]
    types = ["i64" if letter == "p" else "i32" for letter in letters]
    listed = ", ".join(f"{kind} %a{index}" for index, kind in enumerate(types))
    compiled, statuses = _tried(slot, listed, cell)
    return _FRAME.format(
        type=result,
        slot=slot,
        parameters=listed,
        far="1.0e3",
        compiled=compiled,
        statuses=statuses,
        counter=ctypes.addressof(_counter),
        thunk=first,
        call=_call(slot, listed, first, again),
        **_endings(result),
        **_buffers(guarded=jump_buffers.is_needed() and slot != "sdf_staticdistance"),
    )


def _call(slot: str, listed: str, first: int, again: int) -> str:
    """Code that calls the thunk."""
    if slot == "sdf_staticdistance":
        return f"%far = call double %thunk({listed})\n  store double %far, ptr %result"
    place = ", ptr %result" if slot == "sdf_distance" else ""
    # A thunk takes no status and does not look where it is handed one.
    call = f"call void %thunk({listed}{place}, ptr %out, i32 %status)"
    if again != first:
        call = _CHOOSE.format(first=first, again=again) + call.replace("%thunk", "%chosenf")
    if slot == "destroy":
        python = _python_functions()
        call = _SET_ASIDE.format(**python) + call + _PUT_BACK.format(**python)
    return call


def _tried(slot: str, listed: str, cell: int) -> tuple[str, str]:
    """Code that tries the compiled method, and what its status is where Python begins."""
    if not cell:
        return "br label %python", "[ 0, %entry ]"
    result, _, data = _SLOTS[slot]
    look, statuses = "br label %run", "[ 0, %entry ], [ %tried, %run ]"
    if data >= 0:
        offset = failures._MARK_OFFSET
        look = _LOOK.format(data=data, mark_offset=offset, mark=failures.MARK)
        statuses += ", [ 0, %look ]"
    place = ", ptr %result" if result == "double" else ""
    arguments = listed + _COMPILED_PARAMETERS.get(slot, "") + place
    return _TRY.format(cell=cell, look=look, arguments=arguments), statuses


def _endings(result: str) -> dict[str, str]:
    """How a frame returns, and how after a failure that could not be raised."""
    if result == "void":
        return {"done": "ret void", "failed": "ret void"}
    if result == "i32":
        return {"done": "ret i32 0", "failed": "ret i32 -1"}
    return {"done": "%value = load double, ptr %result\n  ret double %value", "failed": _ON}


_ON: Final = "br label %done"


def _buffers(*, guarded: bool) -> dict[str, str]:
    """What keeps the binding's buffers, where it is needed."""
    if not guarded:
        return {"saved": "[0 x i64]", "save": "", "restore": ""}
    return {
        "saved": jump_buffers.place(),
        "save": jump_buffers.save(),
        "restore": jump_buffers.restore(),
    }


def _compile(source: str, names: tuple[str, ...]) -> dict[str, int]:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(f"{source}\n{_METADATA}\n")
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    made = immortal(llvm.create_mcjit_compiler(module, machine))
    made.finalize_object()
    return {name: made.get_function_address(name) for name in names}
