"""The examples of README.md, its neighbours and the pages under docs/ run and print what they show."""

from __future__ import annotations

import doctest
import io
from pathlib import Path

import pytest

from numr.runtime.wgpu import devices

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if ">>>" in page.read_text(encoding="utf-8")
)
#: Pages whose examples need a device, with what says why there is none.
NEED_DEVICE = {"webgpu.md": devices.why}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def without_fences(text):
    """Blank out code fences, which doctest would take for expected output."""
    lines = ("" if line.lstrip().startswith("```") else line for line in text.splitlines())
    return "\n".join(lines) + "\n"


def run(text, name):
    """Run the examples of one page in one namespace; return failures, attempts and the report."""
    test = doctest.DocTestParser().get_doctest(without_fences(text), {}, name, name, 0)
    out = io.StringIO()
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=out.write)
    return results.failed, results.attempted, out.getvalue()


def test_there_are_pages_with_examples():
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_hold(page):
    why = NEED_DEVICE.get(page.name, lambda: None)()
    if why:
        pytest.skip(str(why))
    failed, attempted, printed = run(page.read_text(encoding="utf-8"), str(page))
    assert attempted > 0
    assert failed == 0, printed


def test_a_wrong_example_is_noticed():
    failed, attempted, printed = run("text\n```pycon\n>>> 1 + 1\n3\n```\ntext\n", "page")
    assert (failed, attempted) == (1, 1)
    assert "Expected:\n    3" in printed


def test_a_fence_ends_the_expected_output():
    failed, attempted, _ = run("```pycon\n>>> x = 2\n>>> x\n2\n```\nmore\n", "page")
    assert (failed, attempted) == (0, 2)
