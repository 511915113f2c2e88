"""The import rule: no layer imports one to its right, and ``import numr`` loads no GPU library."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import numr

PACKAGE = Path(numr.__file__).parent

#: From left to right; a layer may import itself and what stands to its left.
LAYERS = (
    ("errors", "config"),
    ("dtypes", "layout"),
    ("ir",),
    ("codegen",),
    ("runtime",),
    ("tensor",),
    ("array_api",),
    ("cpu", "cuda", "wgpu"),
    ("interop",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
#: The package itself and its command line stand above all layers.
TOP = {"__init__", "__main__"}


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    """First components below ``numr`` of everything that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            if module == "numr":
                found.update(alias.name for alias in node.names)
            elif module.startswith("numr."):
                found.add(module.split(".")[1])
        elif isinstance(node, ast.Import):
            found.update(
                alias.name.split(".")[1] for alias in node.names if alias.name.startswith("numr.")
            )
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if layer_of(path) not in TOP)


def test_every_file_belongs_to_a_layer() -> None:
    assert len(FILES) > 30
    assert {layer_of(path) for path in FILES} <= set(RANK)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_layer_imports_one_to_its_right(path: Path) -> None:
    own = layer_of(path)
    for layer in imported_layers(path):
        assert layer in RANK, f"{path} imports numr.{layer}, which is in no layer"
        assert RANK[layer] <= RANK[own], f"{path}: {own} imports {layer}, which stands to its right"
        if RANK[layer] == RANK[own] == RANK["cpu"]:
            assert layer == own, f"{path}: the namespace {own} imports the namespace {layer}"


@pytest.mark.parametrize("name", ["numr.runtime.arraylib", "numr.ir", "numr.layout", "numr.dtypes"])
def test_shared_modules_name_no_runtime_of_their_own(name: str) -> None:
    folder = PACKAGE / Path(*name.split(".")[1:])
    files = list(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                own = ("numr.runtime.cpu", "numr.runtime.cuda", "numr.runtime.wgpu")
                assert not node.module.startswith(own)


def test_import_loads_no_device_library() -> None:
    code = (
        "import sys, numr, numr.cpu\n"
        "loaded = [m for m in ('cupy', 'wgpu', 'torch', 'jax', 'llvmlite', 'scipy') if m in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
