"""What kernels are compiled with and for: llvmlite, and the vectors of the processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

__all__ = ["Host", "compiling_host", "host"]

#: The first llvmlite whose LLVM writes constants and pointers as the texts of kernels do.
_OLDEST: Final = (0, 45)

#: Features of x86 processors that kernels rely on, by the width of vectors; conversions of float16 are among them.
_X86: Final = {
    512: ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
    256: ("avx2", "f16c"),
}


@dataclass(frozen=True)
class Host:
    """A processor that kernels can be compiled for.

    Attributes
    ----------
    binding : module
        ``llvmlite.binding``.
    cpu : str
        LLVM's name of the processor.
    features : str
        What it has, as LLVM takes it.
    bits : int
        Width of a vector.
    version : str
        Of llvmlite.
    """

    binding: Any
    cpu: str
    features: str
    bits: int
    version: str

    @property
    def attributes(self) -> str:
        """Attributes of kernels. On some processors LLVM would not use the widest vectors by itself."""
        return (
            f'nounwind "prefer-vector-width"="{self.bits}" "min-legal-vector-width"="{self.bits}"'
        )

    def target_machine(self) -> Any:
        """A new code generator."""
        target = self.binding.Target.from_triple(self.binding.get_process_triple())
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=3, reloc="pic", codemodel="small", jit=True
        )


@cache
def compiling_host() -> Host | str:
    """The processor at hand, or why no kernels can be compiled for it."""
    try:
        import llvmlite
        import llvmlite.binding as binding
    except ImportError as error:
        return f"llvmlite cannot be imported ({error}); pip install 'numr[jit]'"
    version: str = llvmlite.__version__
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        return f"llvmlite {version} is older than {'.'.join(map(str, _OLDEST))}"
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    cpu: str = binding.get_host_cpu_name()
    found = binding.get_host_cpu_features()
    architecture = binding.get_process_triple().split("-")[0]
    bits = 0
    if architecture in ("x86_64", "amd64"):
        bits = next((b for b, names in _X86.items() if all(map(found.get, names))), 0)
    elif architecture in ("aarch64", "arm64"):
        bits = 128
    if not bits:
        return (
            f"the processor {cpu} ({architecture}) lacks the vector instructions that kernels need"
        )
    return Host(binding, cpu, found.flatten(), bits, version)


def host() -> Host | None:
    """The processor at hand, None where no kernels can be compiled."""
    found = compiling_host()
    return found if isinstance(found, Host) else None
