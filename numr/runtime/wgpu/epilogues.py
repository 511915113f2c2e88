"""What is computed of the results of a reduction by the kernel that reduces."""

from __future__ import annotations

from dataclasses import dataclass

from numr.codegen import wgsl
from numr.codegen.elementwise import operand, scalar_of
from numr.codegen.expr import Expr
from numr.codegen.fused import expressions
from numr.dtypes import DType
from numr.ir.fused import Computation
from numr.runtime.wgpu import scalars, texts
from numr.runtime.wgpu.elementwise import express
from numr.runtime.wgpu.formulas import ZERO
from numr.runtime.wgpu.texts import Parameters

__all__ = ["Epilogue", "assigned", "variables"]


@dataclass(frozen=True)
class Epilogue:
    """What becomes of each result.

    Parameters
    ----------
    computation : Computation
        With one result; its first source is the reduction's, all others are scalars.
    """

    computation: Computation

    @property
    def result(self) -> DType:
        """The dtype of what is stored."""
        return self.computation.result_dtypes[0]

    @property
    def words(self) -> int:
        """Words of parameters that the scalars take."""
        return sum(scalars.words_of(source.dtype) for source in self.computation.sources[1:])

    def text(self, functions: str, dtype: DType, start: int) -> tuple[str, frozenset[str]]:
        """A fold's functions with another ``finish``, and the types that occur in that.

        Parameters
        ----------
        functions : str
            As :attr:`numr.runtime.wgpu.folding.Fold.text` has them.
        dtype : dtype
            Of the reduction's results.
        start : int
            The first word of the parameters' array that belongs to the scalars.
        """
        lines = ["let bits = reduced(a);", *texts.unpacked("r", dtype, "bits", "0u")]
        lines += assigned(variables("x0", dtype), variables("r", dtype), dtype, "let ")
        for i, source in enumerate(self.computation.sources[1:], 1):
            count = scalars.words_of(source.dtype)
            words = [Parameters.word(start + k) for k in range(count)]
            start += count
            lines += scalars.declarations(f"x{i}", source.dtype, words)
        sources = [operand(f"x{i}", x.dtype) for i, x in enumerate(self.computation.sources)]
        (value,) = expressions(self.computation, sources, express, ZERO)
        code = wgsl.code([value] if isinstance(value, Expr) else list(value))
        type = "u32" if texts.lanes(self.result) > 1 else texts.memory_type(self.result)
        text = functions.replace("fn finish(", "fn reduced(")
        text += f"fn finish(a: Value) -> {type} {{\n"
        text += "".join(f"    {line}\n" for line in lines) + code.statements
        text += f"    return {texts.stored(self.result, code.results)};\n}}\n"
        return text, code.types


def variables(name: str, dtype: DType) -> list[str]:
    """The variables of a value."""
    return [f"{name}_re", f"{name}_im"] if dtype.kind == "c" else [name]


def assigned(targets: list[str], values: list[str], dtype: DType, declare: str = "") -> list[str]:
    """Statements that give variables values of which compilers shall not know where they come from."""
    type = scalar_of(dtype)
    return [
        f"{declare}{target} = {wgsl.opaque(type, value)};"
        for target, value in zip(targets, values, strict=True)
    ]
