"""Machine-code frames that decide without Python whose callback a call is.

Owns: one frame per kind, the address tables they search, and the compiled code.
Invariants: a frame is reached by the engine and leaves by a jump: to the hook of the data's owner
(a compiled pointer, or the Python thunk), to the callback that was there before, or back with the
neutral value. No Python frame lies between the engine and a foreign callback, so a long jump out of
one crosses machine code only. A lookup takes no lock: keys are published after their values, and
a slot becomes free only where no other key's search path leads across it.
Code and tables live as long as the process: a thread may be inside a frame that was just removed.
Threads: frames run anywhere; tables are written under the router's lock.
Failure: ``Frames`` raises ``ImportError`` when llvmlite is not installed; nothing can fail later.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from typing import Any, Final, TypeVar

from mjhost.callbacks.kinds import KINDS, CallbackKind, Result

_T = TypeVar("_T")

_FREE, _GONE = 0, 1  # keys of empty slots; addresses and thread ids are neither
_FACTOR: Final = 0x9E3779B97F4A7C15
_MASK64: Final = (1 << 64) - 1
_SHIFT: Final = 40
_FIRST_SIZE: Final = 64

_IMMORTAL: list[Any] = []


def immortal(obj: _T) -> _T:
    """Keeps ``obj`` beyond the end of the interpreter, when modules are emptied."""
    _IMMORTAL.append(obj)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(obj))
    return obj


def available() -> bool:
    """Whether the extra ``fast`` is installed."""
    return importlib.util.find_spec("llvmlite") is not None


# -- tables --------------------------------------------------------------------------------------


class AddressTable:
    """Address → address, searched by machine code, written by Python under a lock.

    Open addressing with linear probing. A table that gets full is replaced by one of twice the
    size; the old one stays, since a search may be under way in it.
    """

    def __init__(self, store: Callable[[int, int], None]) -> None:
        self._store = store
        self._cell = immortal(ctypes.c_uint64(0))
        self._use(_FIRST_SIZE)
        self._publish()

    @property
    def cell_address(self) -> int:
        """Where the machine code finds the table."""
        return ctypes.addressof(self._cell)

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, key: int, value: int) -> None:
        """Adds ``key``, or gives it another value in one store."""
        slot = self._slots.get(key)
        if slot is not None:
            self._store(self._address(slot) + 8, value)
            return
        if 4 * (self._used + 1) > 3 * self._size:
            self._grow()
        self._insert(key, value)

    def drop(self, key: int) -> None:
        """Removes ``key`` if it is there."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        self._store(self._address(slot), _GONE)
        if self._key((slot + 1) % self._size) != _FREE:
            return  # some other key's search may lead across this slot
        while self._key(slot) == _GONE:
            self._store(self._address(slot), _FREE)
            self._used -= 1
            slot = (slot - 1) % self._size

    def _use(self, size: int) -> None:
        self._size = size
        self._used = 0  # slots that are not free
        self._slots: dict[int, int] = {}
        self._block = immortal((ctypes.c_uint64 * (1 + 2 * size))())
        self._block[0] = size - 1

    def _publish(self) -> None:
        self._store(ctypes.addressof(self._cell), ctypes.addressof(self._block))

    def _grow(self) -> None:
        entries = [(key, int(self._block[2 + 2 * slot])) for key, slot in self._slots.items()]
        self._use(2 * self._size)
        for key, value in entries:
            self._insert(key, value)
        self._publish()

    def _insert(self, key: int, value: int) -> None:
        slot = ((key * _FACTOR & _MASK64) >> _SHIFT) % self._size
        while self._key(slot) > _GONE:
            slot = (slot + 1) % self._size
        if self._key(slot) == _FREE:
            self._used += 1
        self._store(self._address(slot) + 8, value)
        self._store(self._address(slot), key)
        self._slots[key] = slot

    def _address(self, slot: int) -> int:
        return ctypes.addressof(self._block) + 8 + 16 * slot

    def _key(self, slot: int) -> int:
        return int(self._block[1 + 2 * slot])


# -- frames --------------------------------------------------------------------------------------


class Frame:
    """The machine code of one kind, and what it looks at.

    Attributes:
        address: what the engine's pointer is set to.
        hooks: data address (``time``: thread) → function to jump to.
    """

    def __init__(self, address: int, hooks: AddressTable, below: ctypes.c_uint64) -> None:
        self.address = address
        self.hooks = hooks
        self._below = below

    def fall_through_to(self, address: int) -> None:
        """Sets what is called for data that nobody hooks; 0 is the neutral value."""
        self._below.value = address


class Frames:
    """The frames of all kinds, compiled together.

    Attributes:
        quiet_threads: threads for which nothing falls through.
    """

    def __init__(self) -> None:
        store_ready: list[Any] = []

        def store(address: int, value: int) -> None:
            if store_ready:
                store_ready[0](address, value)
            else:  # before the code exists nobody searches
                ctypes.c_uint64.from_address(address).value = value

        self._tables = {name: AddressTable(store) for name in KINDS}
        self._below = {name: immortal(ctypes.c_uint64(0)) for name in KINDS}
        self.quiet_threads = AddressTable(store)
        self._nobody = AddressTable(store)
        functions = _compile(self._source())
        stored = ctypes.PYFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)
        store_ready.append(immortal(stored(functions["store"])))
        self._functions = functions

    def of(self, kind: CallbackKind) -> Frame:
        """The frame of ``kind``."""
        name = kind.name
        return Frame(self._functions[name], self._tables[name], self._below[name])

    def _source(self) -> str:
        own = ctypes.cast(ctypes.CDLL(None).pthread_self, ctypes.c_void_p).value
        common = _COMMON.format(factor=_signed(_FACTOR), shift=_SHIFT, thread_self=own)
        parts = [common]
        for kind in KINDS.values():
            quiet = self.quiet_threads if kind.arguments else self._nobody  # a clock always answers
            parts.append(
                _frame_source(
                    kind,
                    table=self._tables[kind.name].cell_address,
                    below=ctypes.addressof(self._below[kind.name]),
                    quiet=quiet.cell_address,
                )
            )
        return "\n".join(parts)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


_COMMON = """
define void @store(i64 %address, i64 %value) {{
  %p = inttoptr i64 %address to ptr
  store atomic i64 %value, ptr %p release, align 8
  ret void
}}

define internal i64 @thread() alwaysinline {{
  %f = inttoptr i64 {thread_self} to ptr
  %r = call i64 %f()
  ret i64 %r
}}

define internal i64 @find(i64 %cell, i64 %key) alwaysinline {{
  %cellp = inttoptr i64 %cell to ptr
  %block = load atomic i64, ptr %cellp acquire, align 8
  %blockp = inttoptr i64 %block to ptr
  %mask = load i64, ptr %blockp
  %mixed = mul i64 %key, {factor}
  %hash = lshr i64 %mixed, {shift}
  %first = and i64 %hash, %mask
  %slots = add i64 %block, 8
  br label %look
look:
  %slot = phi i64 [ %first, %0 ], [ %next, %on ]
  %offset = shl i64 %slot, 4
  %at = add i64 %slots, %offset
  %atp = inttoptr i64 %at to ptr
  %found = load atomic i64, ptr %atp acquire, align 8
  %same = icmp eq i64 %found, %key
  br i1 %same, label %hit, label %miss
hit:
  %valuep = getelementptr i64, ptr %atp, i64 1
  %value = load atomic i64, ptr %valuep acquire, align 8
  ret i64 %value
miss:
  %end = icmp eq i64 %found, 0
  br i1 %end, label %none, label %on
on:
  %plus = add i64 %slot, 1
  %next = and i64 %plus, %mask
  br label %look
none:
  ret i64 0
}}
"""

_FRAME = """
define {type} @{name}({parameters}) {{
  {key_code}
  %hook = call i64 @find(i64 {table}, i64 {key})
  %mine = icmp ne i64 %hook, 0
  br i1 %mine, label %own, label %other
own:
  %hookp = inttoptr i64 %hook to ptr
  {own_result}musttail call {type} %hookp({arguments})
  ret {type} {own_value}
other:
  %belowp = inttoptr i64 {below} to ptr
  %below = load atomic i64, ptr %belowp acquire, align 8
  %some = icmp ne i64 %below, 0
  br i1 %some, label %ask, label %neutral
ask:
  %me = call i64 @thread()
  %quiet = call i64 @find(i64 {quiet}, i64 %me)
  %hushed = icmp ne i64 %quiet, 0
  br i1 %hushed, label %neutral, label %fall
fall:
  %belowf = inttoptr i64 %below to ptr
  {fall_result}musttail call {type} %belowf({arguments})
  ret {type} {fall_value}
neutral:
  ret {type} {neutral}
}}
"""

_TYPES = {Result.NOTHING: "void", Result.NUMBER: "double", Result.DROP: "i32"}


def _frame_source(kind: CallbackKind, *, table: int, below: int, quiet: int) -> str:
    arguments = [f"i64 %{name}" for name in kind.arguments[:2]]
    arguments += [f"i32 %{name}" for name in kind.arguments[2:]]
    listed = ", ".join(arguments)
    returns = kind.result is not Result.NOTHING
    by_thread = not kind.arguments
    return _FRAME.format(
        name=kind.name,
        type=_TYPES[kind.result],
        parameters=listed,
        arguments=listed,
        key_code="%key = call i64 @thread()" if by_thread else "",
        key="%key" if by_thread else "%data",
        table=table,
        below=below,
        quiet=quiet,
        own_result="%r = " if returns else "",
        own_value="%r" if returns else "",
        fall_result="%s = " if returns else "",
        fall_value="%s" if returns else "",
        neutral=_constant(kind),
    )


def _constant(kind: CallbackKind) -> str:
    if kind.result is Result.NOTHING:
        return ""
    return str(int(kind.neutral or 0)) if kind.result is Result.DROP else repr(kind.neutral or 0.0)


def _compile(source: str) -> dict[str, int]:
    """Compiles the frames; name → address. The code is never freed."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(source)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = immortal(llvm.create_mcjit_compiler(module, machine))
    engine.finalize_object()
    return {name: engine.get_function_address(name) for name in ("store", *KINDS)}
