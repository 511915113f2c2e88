"""What the two methods of Jacobi share: who meets whom, and by which angle a pair is rotated.

Each sweep rotates every pair of columns once. Pairs that have nothing in common are rotated side by side: in each round
of a sweep every column belongs to one pair, as players do in a tournament.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from numr.runtime.wgpu.linalg.arithmetic import SWEEPS
from numr.runtime.wgpu.linalg.matrices import Work

__all__ = ["MEETING", "MOST_SWEEPS", "TURN", "UNCHECKED", "converged", "next_even"]

#: Sweeps after which the iteration counts as failed; it takes less than half of that.
MOST_SWEEPS: Final = 60
#: The first sweep of a large matrix after which the host looks whether there was anything to rotate.
UNCHECKED: Final = 2

#: WGSL of the pair that meets in a place of a round; there is an even number of players.
MEETING: Final = """\
struct Pair { p: u32, q: u32 }
fn met(round: u32, place: u32, players: u32) -> Pair {
    let last = players - 1u;
    var a = round + place;
    var b = round + last - place;
    // Both modulo the number of those that move round the one that stays.
    if (a >= last) { a -= last; }
    if (b >= last) { b -= last; }
    if (place == 0u) { b = last; }
    return Pair(min(a, b), max(a, b));
}
"""

#: WGSL of the rotation that makes an element ``b``, of modulus ``g``, of a Hermitian matrix zero, where the diagonal
#: has ``a`` in its row and ``d`` in its column. Columns p and q become ``p - conj(s) (q + t p)`` and
#: ``q + s (p - conj(t) q)``: small changes of large numbers lose less than multiples of them do. The diagonal becomes
#: ``a - shift`` and ``d + shift``.
TURN: Final = """\
struct Turn { s: E, t: E, shift: R }
fn turn(a: R, d: R, b: E, g: R) -> Turn {
    let slope = (d - a) / (TWO * g);
    let steep = abs(slope);
    var tangent = ONE / (steep + sqrt(ONE + steep * steep));
    if (exponent(steep) > u32(BIAS) + 60u) { tangent = ONE / (TWO * steep); }
    if (slope < ZERO) { tangent = -tangent; }
    let cosine = ONE / sqrt(ONE + tangent * tangent);
    let s = (b / g) * (tangent * cosine);
    return Turn(s, s / (ONE + cosine), tangent * g);
}
fn turned_p(p: E, q: E, by: Turn) -> E { return minus(p, conj(by.s), plus(q, by.t, p)); }
fn turned_q(p: E, q: E, by: Turn) -> E { return plus(q, by.s, minus(p, conj(by.t), q)); }
"""


def next_even(number: int) -> int:
    """The number, or the one above it if that is odd."""
    return number + number % 2


def converged(work: Work, sweep: int, message: str) -> list[int] | None:
    """The words of the status if nothing was rotated in a sweep, which is the last one so far.

    Raises
    ------
    numpy.linalg.LinAlgError
        If too many sweeps were needed.
    """
    words = work.met()
    if not words[SWEEPS + sweep]:
        return words
    if sweep + 1 >= MOST_SWEEPS:
        raise np.linalg.LinAlgError(message)
    return None
