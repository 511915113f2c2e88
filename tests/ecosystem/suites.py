"""The suites: what each needs, how it is started and where its tests are."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final

from tests.ecosystem.plugins import target

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = Path(__file__).resolve().parent
#: What a generator of namespaces is called in scikit-learn's tests.
_GENERATORS: Final = ("yield_namespace_device_dtype_combinations", "yield_mixed")

#: Parts of the names of einops' tests that take the backend under test. The others run on NumPy or on libraries that they
#: name; those of gradients need a library that has some.
_EINOPS: Final = (
    *("imperative", "functional", "enumerating", "concatenations", "list_inputs", "is_float_type"),
    "pack_unpack_against_numpy",
)


@dataclass(frozen=True)
class Suite:
    """The tests of one library.

    Parameters
    ----------
    name : str
        The library, as its distribution is called.
    plugin : str
        The plugin of ``tests.ecosystem.plugins`` that makes the tests run on numr.
    modules : tuple of str
        Packages and modules of tests.
    arguments : tuple of str
        Further arguments of pytest.
    variables : mapping
        Environment variables that the library reads.
    """

    name: str
    plugin: str
    modules: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def version(self) -> str | None:
        """The installed version of the library, None where it is absent."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None

    def installed_in(self) -> Path:
        """The folder that test ids are relative to: the one that holds the library's package."""
        return Path(str(metadata.distribution(self.name).locate_file("")))

    def tests(self, parts: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The modules to run: all, or those of the library's submodules ``parts``."""
        modules = self.modules or _sklearn_modules()
        if not parts:
            return modules
        chosen = tuple(f"{self.modules[0]}.{part}" for part in parts) if self.modules else ()
        return chosen or tuple(
            module for module in modules if any(f".{part}." in module for part in parts)
        )

    def environment(
        self, namespace: str, dtypes: tuple[str, ...], environ: Mapping[str, str]
    ) -> dict[str, str]:
        """Environment of the run, without what would make pytest select or load other tests."""
        result = {
            name: value
            for name, value in environ.items()
            if name not in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
        }
        path = environ.get("PYTHONPATH")
        result["PYTHONPATH"] = f"{ROOT}{os.pathsep}{path}" if path else str(ROOT)
        result[target.NAMESPACE] = namespace
        result[target.DTYPES] = ",".join(dtypes)
        return result | dict(self.variables)


SUITES: Final = (
    Suite(
        name="scipy",
        plugin="scipy",
        modules=("scipy",),
        arguments=("-m", "array_api_backends"),
        variables={"SCIPY_ARRAY_API": "1"},
    ),
    Suite(
        name="scikit-learn",
        plugin="sklearn",
        arguments=("-k", "array_api or numr"),
        variables={"SCIPY_ARRAY_API": "1"},
    ),
    Suite(
        name="array-api-extra",
        plugin="array_api_extra",
        modules=("array_api_extra.tests.main",),
        # Its tests of deprecations count on this setting of its own.
        arguments=("-W", "error::DeprecationWarning"),
    ),
    Suite(name="xarray", plugin="xarray", modules=("xarray.tests.test_array_api",)),
    Suite(
        name="einops",
        plugin="einops",
        modules=(
            "einops.tests.test_einsum",
            "einops.tests.test_ops",
            "einops.tests.test_other",
            "einops.tests.test_packing",
        ),
        arguments=(
            "-k",
            f"({' or '.join(_EINOPS)}) and not symbolic and not gradients",
        ),
        variables={"EINOPS_TEST_BACKENDS": "numr"},
    ),
    Suite(
        name="cubed",
        plugin="cubed",
        modules=(
            "cubed.tests.test_array_api",
            "cubed.tests.test_core",
            "cubed.tests.test_gufunc",
            "cubed.tests.test_indexing",
            "cubed.tests.test_inspection",
            "cubed.tests.test_linalg",
            "cubed.tests.test_random",
            "cubed.tests.array.test_nan_functions",
            "cubed.tests.array.test_overlap",
            "cubed.tests.array.test_pad",
        ),
        # Left out: storage in the cloud, and plans drawn by Graphviz, which is a program of its own.
        arguments=("-m", "not cloud", "-k", "not visualize and not test_plan and not quad_means"),
    ),
)


def _sklearn_modules() -> tuple[str, ...]:
    """The modules of scikit-learn's tests that run on several namespaces."""
    spec = importlib.util.find_spec("sklearn")
    assert spec is not None, "the library is installed, as its version says"
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    found = [
        path
        for path in sorted(folder.rglob("test_*.py"))
        if any(name in path.read_text(encoding="utf-8") for name in _GENERATORS)
    ]
    return tuple(".".join(path.relative_to(folder.parent).with_suffix("").parts) for path in found)
