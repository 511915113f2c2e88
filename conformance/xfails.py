"""The lists of tests that are known to fail: every line owes a reason and a link."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINK = re.compile(r"https?://\S+")
_WORD = re.compile(r"[A-Za-z]{2,}")
# A whole file or folder can never be expected to fail: the function must be named.
_TEST = re.compile(r"array_api_tests/test_\w+\.py::test_\w+(\[.*\])?")


class XfailError(Exception):
    """A line of an xfail file breaks its rules."""


@dataclass(frozen=True, slots=True)
class Xfail:
    """One test that is known to fail."""

    test: str
    reason: str
    link: str
    line: int


def parse(
    text: str, source: str, form: re.Pattern[str] = _TEST, *, needs_link: bool = True
) -> list[Xfail]:
    """Read an xfail file.

    A comment block covers the lines of tests that follow it until a blank line; it must hold
    a reason in words and, unless ``needs_link`` is false, a link. ``form`` is that of a test id. The suite itself cuts nothing but the line's end off a test
    id, so blanks around it or a comment behind it would make the line match no test.
    """
    found: list[Xfail] = []
    seen: dict[str, int] = {}
    comment: list[str] = []
    in_tests = False
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{source}:{number}"
        if not line.strip():
            comment, in_tests = [], False
        elif line.startswith("#"):
            if in_tests:
                comment, in_tests = [], False
            comment.append(line.lstrip("#").strip())
        else:
            in_tests = True
            if not form.fullmatch(line):
                raise XfailError(
                    f"{where}: {line!r} is no test id of the form"
                    " FOLDER/test_FILE.py::test_NAME or test_NAME[PARAMETERS],"
                    " alone on its line without blanks around it"
                )
            if line in seen:
                raise XfailError(f"{where}: {line!r} stands on line {seen[line]} already")
            seen[line] = number
            prose = " ".join(comment)
            link = _LINK.search(prose)
            reason = " ".join(_LINK.sub(" ", prose).split())
            unlinked = link is None and needs_link
            if unlinked or len(_WORD.findall(reason)) < 3:
                lacking = "link" if unlinked else "reason in words"
                raise XfailError(
                    f"{where}: {line!r} has no {lacking} in the comment above it; write why the"
                    " test fails and the address of the issue that will mend it"
                )
            found.append(Xfail(line, reason, link.group() if link else "", number))
    return found


def unmatched(xfails: Iterable[Xfail], tests: Iterable[str]) -> list[Xfail]:
    """Entries that name no test of a complete run: they would expect nothing for ever."""
    exact = set(tests)
    functions = {test.split("[", maxsplit=1)[0] for test in exact}
    return [each for each in xfails if each.test not in exact and each.test not in functions]
