"""The parts of Numba that this package stands on, under names that a type checker understands.

Owns: the one place where Numba and llvmlite are imported, and the flags that everything is compiled
with.
Invariants: bounds are checked, division by zero raises, no result is traded for speed
(``fastmath`` is off): the numbers are those of the same source run by Python.
Threads: Numba compiles under a lock of its own.
Failure: ``EngineDeclarationError`` if Numba is not installed, or too old.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mjhost.errors import EngineDeclarationError

try:
    import llvmlite.binding
    import numba.core.compiler
    import numba.core.compiler_lock
    import numba.core.compiler_machinery
    import numba.core.imputils
    import numba.core.ir_utils
    import numba.core.registry
    import numba.core.typed_passes
    import numba.core.untyped_passes
    import numba.extending
    import numba.np.arrayobj
    from llvmlite import ir as llvm_ir
except ImportError as error:
    raise EngineDeclarationError(
        "compiled=True needs Numba, which is not installed or not importable "
        f"({error}); install the extra: pip install 'mjhost[fast]'"
    ) from error

# Numba's own annotations are few and do not agree with its documentation.
nb: Final[Any] = numba
ir: Final[Any] = llvm_ir
types: Final[Any] = nb.types
errors: Final[Any] = nb.core.errors
cgutils: Final[Any] = nb.core.cgutils
numba_ir: Final[Any] = nb.core.ir
ir_utils: Final[Any] = nb.core.ir_utils
templates: Final[Any] = nb.core.typing.templates
lower_builtin: Final[Any] = nb.core.imputils.lower_builtin
cpu_target: Final[Any] = nb.core.registry.cpu_target
global_compiler_lock: Final[Any] = nb.core.compiler_lock.global_compiler_lock
register_pass: Final[Any] = nb.core.compiler_machinery.register_pass
DefaultPassBuilder: Final[Any] = nb.core.compiler.DefaultPassBuilder
IRProcessing: Final[Any] = nb.core.untyped_passes.IRProcessing
NopythonTypeInference: Final[Any] = nb.core.typed_passes.NopythonTypeInference
make_array: Final[Any] = nb.np.arrayobj.make_array
populate_array: Final[Any] = nb.np.arrayobj.populate_array
models: Final[Any] = nb.extending.models

# `nogil` says nothing for C entries, which never touch the interpreter; it is for users' own calls.
FLAGS: Final[dict[str, Any]] = {
    "boundscheck": True,
    "error_model": "python",
    "fastmath": False,
    "nogil": True,
}

T = TypeVar("T")
Decorator = Callable[[T], T]

if TYPE_CHECKING:

    class NumbaType:
        """Base of Numba's types, for the type checker."""

        name: str

        def __init__(self, name: str) -> None: ...

    class AttributeTemplate:
        """Base of attribute look-ups, for the type checker."""

    class AbstractTemplate:
        """Base of call look-ups, for the type checker."""

        context: Any

    class BoundFunction:
        """Base of methods, for the type checker."""

        def __init__(self, template: Any, this: Any) -> None: ...

    class StructModel:
        """Base of layouts of values, for the type checker."""

        def __init__(self, manager: Any, fe_type: Any, members: list[tuple[str, Any]]) -> None: ...

    class Compiler:
        """Base of pipelines, for the type checker."""

        state: Any

    class Pass:
        """Base of passes, for the type checker."""

        def __init__(self) -> None: ...

    PointerModel = StructModel
else:
    NumbaType = types.Type
    AttributeTemplate = templates.AttributeTemplate
    AbstractTemplate = templates.AbstractTemplate
    BoundFunction = types.BoundFunction
    StructModel = models.StructModel
    PointerModel = models.OpaqueModel
    Compiler = nb.core.compiler.CompilerBase
    Pass = nb.core.compiler_machinery.FunctionPass


def data_model(kind: type) -> Decorator[type]:
    """Decorator: the layout of values of a type."""
    decorator: Decorator[type] = nb.extending.register_model(kind)
    return decorator


def getattr_template(template: type) -> type:
    """Decorator: what attributes of a type are."""
    registered: type = nb.extending.infer_getattr(template)
    return registered


def lower_getattr(kind: type) -> Decorator[Callable[..., Any]]:
    """Decorator: code that reads any attribute of a type."""
    decorator: Decorator[Callable[..., Any]] = nb.extending.lower_getattr_generic(kind)
    return decorator


def lower_setattr(kind: type) -> Decorator[Callable[..., Any]]:
    """Decorator: code that writes any attribute of a type."""
    decorator: Decorator[Callable[..., Any]] = nb.extending.lower_setattr_generic(kind)
    return decorator


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a function that writes its own machine code."""
    made: Callable[..., Any] = nb.extending.intrinsic(function)
    return made


def overload(function: Callable[..., Any], **options: Any) -> Decorator[Callable[..., Any]]:
    """Decorator: what a Python function is in compiled code."""
    decorator: Decorator[Callable[..., Any]] = nb.extending.overload(
        function, jit_options=dict(FLAGS), strict=False, **options
    )
    return decorator


def add_symbol(name: str, address: int) -> None:
    """Gives compiled code a name for a function or table of this process."""
    llvmlite.binding.add_symbol(name, address)
