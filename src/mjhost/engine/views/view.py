"""Views of the engine's structs: attributes named, typed and shaped as in MuJoCo's Python.

Owns: the classes of the views, generated from ``mjhost.engine.abi.fields``, and what an attribute
costs: a number is one C descriptor, an array of the fixed buffer one dictionary look-up after its
first use, an array of the arena a comparison of its pointer and lengths.
Invariants: a view owns no memory. It is good as long as the struct lives at its address, and so is
every array taken from it: copy what has to outlive the call. Nothing is assigned that is not a
number of the struct; an unknown name is an error for reading and writing.
Threads: as the struct itself. Two threads may build the same array twice, which is harmless.
Failure: ``AttributeError``, ``TypeError``, ``OverflowError``; the struct is as before.
Not a goal: keeping anything alive.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NoReturn, SupportsIndex, TypeAlias, overload

import numpy as np

from mjhost.engine.abi import fields as abi
from mjhost.errors import did_you_mean

Array = np.ndarray[Any, Any]

# Where pointers of a struct are kept under: not names of the engine.
POINTER: Final = "_p_"

# Character arrays that MuJoCo's Python gives as bytes; the others are int8.
_TEXTS: Final = frozenset({"names", "paths", "text_data"})


_set_number: Final = ctypes.Structure.__setattr__


class View(ctypes.Structure):
    """A struct of the engine at an address; made by ``view_class(struct).from_address(address)``.

    Attributes:
        struct: the name of the struct, as for ``fields``.
    """

    struct: ClassVar[str] = ""
    _converters: ClassVar[dict[str, Callable[[Any], Any]]] = {}
    _names: ClassVar[frozenset[str]] = frozenset()

    def _memory(self, pointer: int, size: int) -> tuple[Any, int]:
        """An object with a buffer that holds ``size`` bytes at ``pointer``, and where it starts."""
        return (ctypes.c_char * size).from_address(pointer), pointer

    def _own_memory(self) -> Any:
        return (ctypes.c_char * ctypes.sizeof(self)).from_address(ctypes.addressof(self))

    def __getattr__(self, name: str) -> Any:
        # Only for names that were not found: costs a known one nothing.
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self.struct} has no member {name!r}; {did_you_mean(name, self._names)}",
            name=name,
            obj=self,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        converter = self._converters.get(name)
        if converter is None:
            self._refuse(name, value)
            return
        try:
            _set_number(self, name, converter(value))
        except TypeError as error:
            raise TypeError(f"{self.struct}.{name} takes a number, got {value!r}") from error
        except OverflowError as error:
            raise OverflowError(f"{self.struct}.{name} does not hold {value!r}: {error}") from None

    def _refuse(self, name: str, value: Any) -> None:
        """Raises, unless ``value`` is what is there: the last part of ``view.qpos += 1``."""
        if name not in self._names:
            self.__getattr__(name)
        now = getattr(self, name)
        if name not in _numbers(self.struct) and (value is now or _same_memory(now, value)):
            return
        if isinstance(now, np.ndarray):
            hint = f"write into it, {name}[:] = ..."
        elif isinstance(now, View | StructArray):
            hint = f"assign its members, {name}.<member>"
        else:
            hint = "it belongs to the engine"
        raise AttributeError(f"{self.struct}.{name} cannot be assigned; {hint}", name=name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._names})

    def __repr__(self) -> str:
        return f"<view of {self.struct} at {ctypes.addressof(self):#x}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"a view of {self.struct} owns nothing that could be copied or pickled; copy its arrays"
        )


def _same_memory(now: Any, value: Any) -> bool:
    return (
        isinstance(now, np.ndarray)
        and isinstance(value, np.ndarray)
        and now.ctypes.data == value.ctypes.data
        and (now.shape, now.strides, now.dtype) == (value.shape, value.strides, value.dtype)
    )


# -- numbers -------------------------------------------------------------------------------------


def dtype_of(ctype: Any) -> np.dtype[Any]:
    """The NumPy type of an element; characters are int8 as in MuJoCo's Python."""
    return np.dtype(np.int8 if ctype is ctypes.c_char else ctype)


@functools.cache
def _numbers(struct: str) -> frozenset[str]:
    members = abi.fields(struct).items()
    return frozenset(name for name, field in members if field.kind in {"scalar", "opaque"})


def _converter(ctype: Any) -> Callable[[Any], Any]:
    if ctype in {ctypes.c_double, ctypes.c_float}:
        return _identity
    if ctype is ctypes.c_bool:
        return _boolean
    limits = np.iinfo(dtype_of(ctype))
    return functools.partial(_integer, int(limits.min), int(limits.max))


def _identity(value: Any) -> Any:
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        value = operator.index(value)
        if value not in {0, 1}:
            raise OverflowError("only False, True, 0 and 1")
    return bool(value)


def _integer(lowest: int, highest: int, value: Any) -> int:
    number = operator.index(value)
    if not lowest <= number <= highest:  # ctypes would cut it
        raise OverflowError(f"{lowest} to {highest}")
    return number


# -- members that are not numbers ----------------------------------------------------------------

_Build: TypeAlias = "Callable[[View, int, tuple[int, ...]], Any]"  # of a pointer and a shape


class _Cached:
    """A member that stays where it is: built at first use, then an entry of the view's dict."""

    def __init__(self, name: str, build: Callable[[View], Any]) -> None:
        self._name = name
        self._build = build

    def __get__(self, view: View | None, owner: type | None = None) -> Any:
        if view is None:
            return self
        value = view.__dict__[self._name] = self._build(view)
        return value


class _Moving:
    """A member whose pointer and lengths change: rebuilt when they have, empty at NULL."""

    def __init__(self, field: abi.Field, build: _Build) -> None:
        names = [POINTER + field.name, *(_path(e) for e in field.extents if e.size is not None)]
        self._build = build
        self._slot = f"_last_{field.name}"
        self._key = operator.attrgetter(*names)
        self._pointer = operator.attrgetter(names[0])
        self._shape = _shape(field)

    def __get__(self, view: View | None, owner: type | None = None) -> Any:
        if view is None:
            return self
        key = self._key(view)
        last = view.__dict__.get(self._slot)
        if last is None or last[0] != key:
            last = view.__dict__[self._slot] = key, self._rebuilt(view)
        return last[1]

    def _rebuilt(self, view: View) -> Any:
        pointer, shape = self._pointer(view), self._shape(view)
        if not pointer:  # the lengths may be those of arrays that the engine did not need
            return self._build(view, 0, (0, *shape[1:]))
        return self._build(view, pointer, shape)


def _shape(field: abi.Field) -> Callable[[Any], tuple[int, ...]]:
    extents = [(extent.factor, _size(extent)) for extent in field.extents]
    return lambda view: tuple(factor * size(view) for factor, size in extents)


def _size(extent: abi.Extent) -> Callable[[Any], int]:
    return (lambda _: 1) if extent.size is None else operator.attrgetter(_path(extent))


def _path(extent: abi.Extent) -> str:
    # Data views and model views alike know the model that has the sizes.
    return ("_model." if extent.owner == "mjModel" else "") + (extent.size or "")


def _pointed(field: abi.Field) -> _Build:
    if field.struct is not None:
        return functools.partial(_structs_at, view_class(field.struct))
    dtype = dtype_of(field.ctype)
    return lambda view, pointer, shape: array_at(view, pointer, shape, dtype)


def _structs_at(cls: type[View], view: View, pointer: int, shape: tuple[int, ...]) -> StructArray:
    size = shape[0] * ctypes.sizeof(cls)
    memory, start = view._memory(pointer, size) if size else (b"", pointer)
    return StructArray(cls, pointer, shape[0], memory, pointer - start)


def array_at(view: View, pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The array at a pointer of a struct; an empty one is not taken from there."""
    size = dtype.itemsize
    for length in shape:
        size *= length
    if not size:
        return np.empty(shape, dtype)
    memory, start = view._memory(pointer, size)
    return np.ndarray(shape, dtype, memory, pointer - start)


def _descriptor(field: abi.Field, *, moving: bool) -> Any:
    """The class attribute for a member that is no number."""
    if field.kind == "struct":
        cls, offset = view_class(field.struct or ""), field.offset
        return _Cached(field.name, lambda view: cls.from_address(ctypes.addressof(view) + offset))
    if field.kind == "array":
        return _Cached(field.name, _inline(field))
    build, shape = _pointed(field), _shape(field)
    if moving:
        return _Moving(field, build)
    pointer = operator.attrgetter(POINTER + field.name)
    text = field.ctype is ctypes.c_char and field.name in _TEXTS

    def fixed(view: View) -> Any:
        found = build(view, pointer(view) or 0, shape(view))
        return found.tobytes() if text else found

    return _Cached(field.name, fixed)


def _inline(field: abi.Field) -> Callable[[View], Any]:
    shape, offset = tuple(extent.factor for extent in field.extents), field.offset
    if field.struct is not None:
        cls = view_class(field.struct)
        return lambda view: StructArray(
            cls, ctypes.addressof(view) + offset, shape[0], view._own_memory(), offset
        )
    dtype = dtype_of(field.ctype)
    return lambda view: np.ndarray(shape, dtype, view._own_memory(), offset)


# -- arrays of structs ---------------------------------------------------------------------------


class StructArray:
    """An array of structs: ``contact[k].dist`` is a number, ``contact.dist`` one of each, ``(n,)``.

    Both are views. Indices may be enum values; a slice is a list of views.
    """

    def __init__(self, cls: type[View], address: int, count: int, memory: Any, offset: int) -> None:
        """Of ``count`` structs at ``address``, which is ``memory`` from ``offset`` on."""
        # Columns become entries of the same dict when they are first asked for.
        self.__dict__.update(
            _cls=cls, _address=address, _count=count, _memory=memory, _offset=offset, _views={}
        )

    def __len__(self) -> int:
        count: int = self._count
        return count

    @overload
    def __getitem__(self, index: SupportsIndex) -> View: ...
    @overload
    def __getitem__(self, index: slice) -> list[View]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> View | list[View]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(self._count))]
        k = operator.index(index)
        found: View | None = self._views.get(k)
        if found is None:
            found = self._views[k] = self._element(k)
        return found

    def _element(self, index: int) -> View:
        k = index + self._count if index < 0 else index
        if not 0 <= k < self._count:
            raise IndexError(f"index {index} of {self._count} {self._cls.struct}")
        view: View = self._cls.from_address(self._address + k * ctypes.sizeof(self._cls))
        return view

    def __iter__(self) -> Iterator[View]:
        return (self[k] for k in range(self._count))

    def __getattr__(self, name: str) -> Any:
        field = _columns(self._cls).get(name)
        if field is None:
            raise AttributeError(
                f"an array of {self._cls.struct} has no member {name!r}; "
                f"{did_you_mean(name, _columns(self._cls))}",
                name=name,
                obj=self,
            )
        column = self.__dict__[name] = self._column(field)
        return column

    def _column(self, field: abi.Field) -> Array:
        dtype = dtype_of(field.ctype)
        shape = tuple(extent.factor for extent in field.extents)
        if not self._count:
            return np.empty((0, *shape), dtype)
        strides = (ctypes.sizeof(self._cls), *np.empty(shape, dtype).strides)
        offset = self._offset + field.offset
        return np.ndarray((self._count, *shape), dtype, self._memory, offset, strides)

    def __setattr__(self, name: str, value: Any) -> None:
        if not _same_memory(getattr(self, name), value):
            raise AttributeError(
                f"the members {name} of an array of {self._cls.struct} cannot be assigned; "
                f"write into them, {name}[:] = ...",
                name=name,
            )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_columns(self._cls)})

    def __repr__(self) -> str:
        return f"<views of {self._count} {self._cls.struct} at {self._address:#x}>"

    __reduce_ex__ = View.__reduce_ex__
    struct = property(lambda self: self._cls.struct)


def _columns(cls: type[View]) -> dict[str, abi.Field]:
    return {
        name: field
        for name, field in abi.fields(cls.struct).items()
        if field.struct is None and field.kind in {"scalar", "array"}
    }


# -- classes -------------------------------------------------------------------------------------


def layout_of(struct: str) -> list[tuple[str, Any]]:
    """The ``_fields_`` of a view: numbers under their names, all else under names of pointers."""
    ctypes_of = abi.mirror(struct)._fields_
    # One table entry per member, in the same order: unions without a name do not occur here.
    return [
        (name if field.kind in {"scalar", "opaque"} else POINTER + name, ctype)
        for (name, field), (_, ctype, *_) in zip(abi.fields(struct).items(), ctypes_of, strict=True)
    ]


def complete(cls: type[View], struct: str, moving: frozenset[str] = frozenset()) -> None:
    """Gives a class with the layout of a struct the attributes of that struct."""
    members = abi.fields(struct)
    refused = abi.read_only(struct)
    cls.struct = struct
    cls._names = frozenset(members)
    cls._converters = {
        name: _converter(field.ctype)
        for name, field in members.items()
        if field.kind == "scalar" and name not in refused
    }
    for name, field in members.items():
        if field.kind not in {"scalar", "opaque"}:
            setattr(cls, name, _descriptor(field, moving=name in moving))


@functools.cache
def view_class(struct: str) -> type[View]:
    """The class of the views of a struct other than ``mjModel`` and ``mjData``.

    Raises:
        UnsupportedEngineError: the installed engine does not describe such a struct.
    """
    cls = type(struct, (View,), {"_fields_": layout_of(struct), "__module__": __name__})
    pointers = (name for name, field in abi.fields(struct).items() if field.kind == "pointer")
    complete(cls, struct, frozenset(pointers))
    return cls
