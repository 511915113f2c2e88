"""Random programs over a few tensors: sequences of calls that any array library can make."""

from __future__ import annotations

from hypothesis import strategies as st

SHAPES = [(4, 3), (3, 4), (4, 1), (1, 3), (3,), ()]

#: Steps by name: how many operands, and what is done with the namespace and the operands.
ARITHMETIC = {
    "add": (2, lambda xp, x, y: x + y),
    "subtract": (2, lambda xp, x, y: x - y),
    "multiply": (2, lambda xp, x, y: x * y),
    "divide": (2, lambda xp, x, y: x / y),
    "maximum": (2, lambda xp, x, y: xp.maximum(x, y)),
    "where": (3, lambda xp, c, x, y: xp.where(c > 0, x, y)),
    "clip": (3, lambda xp, x, y, z: xp.clip(x, xp.minimum(y, z), xp.maximum(y, z))),
    "negative": (1, lambda xp, x: -x),
    "abs": (1, lambda xp, x: abs(x)),
    "square": (1, lambda xp, x: x**2),
    "sqrt": (1, lambda xp, x: xp.sqrt(abs(x))),
    "floor": (1, lambda xp, x: xp.floor(x)),
    "sign": (1, lambda xp, x: xp.sign(x)),
    "scale": (1, lambda xp, x: x * 1.5 - 2),
    "to integers": (
        1,
        lambda xp, x: xp.astype(xp.astype(xp.clip(x, -100, 100), xp.int32), xp.float32),
    ),
    "to bytes": (
        1,
        lambda xp, x: xp.astype(xp.astype(xp.clip(x, -100, 100), xp.int8) + 1, xp.float32),
    ),
    "compare": (2, lambda xp, x, y: xp.astype(x < y, xp.float32)),
    "fill": (1, lambda xp, x: xp.full(x.shape, 0.25, dtype=xp.float32) + x),
    "constant": (1, lambda xp, x: x + xp.asarray([0.5], dtype=xp.float32)),
}
VIEWS = {
    "transpose": (1, lambda xp, x: xp.permute_dims(x, tuple(range(x.ndim))[::-1])),
    "flip": (1, lambda xp, x: xp.flip(x)),
    "every second": (1, lambda xp, x: x[::2] if x.ndim else x),
    "rest": (1, lambda xp, x: x[1:] if x.ndim and x.shape[0] > 1 else x),
    "last": (1, lambda xp, x: x[..., -1] if x.ndim else x),
    "new axis": (1, lambda xp, x: x[None, ...] if x.ndim < 3 else x),
    "flat": (1, lambda xp, x: xp.reshape(x, (-1,))),
    "rows": (1, lambda xp, x: xp.broadcast_to(x, (2, *x.shape)) if x.ndim < 3 else x),
}
OTHERS = {
    "sum": (1, lambda xp, x: xp.sum(x)),
    "sum of rows": (1, lambda xp, x: xp.sum(x, axis=0) if x.ndim else x),
    "max kept": (1, lambda xp, x: xp.max(x, axis=-1, keepdims=True) if x.ndim and x.size else x),
    "running sum": (1, lambda xp, x: xp.cumulative_sum(x, axis=0) if x.ndim else x),
    "sort": (1, lambda xp, x: xp.sort(x) if x.ndim else x),
    "mean": (1, lambda xp, x: xp.mean(x, axis=0, keepdims=True) if x.ndim and x.size else x),
    "concat": (1, lambda xp, x: xp.concat([x, x + 1], axis=0) if x.ndim and x.size < 100 else x),
    "take": (1, lambda xp, x: xp.take(x, xp.asarray([0, 0]), axis=0) if x.ndim and x.size else x),
    "variance": (1, lambda xp, x: xp.var(x, axis=-1) if x.ndim and x.size else x),
}


def _assign(xp, x, y):
    x[...] = xp.sum(y)
    return x


def _add_in_place(xp, x):
    x += 1
    return x


def _assign_part(xp, x, y):
    if x.ndim and x.shape[0] > 1:
        x[1:] = x[:-1] * 2
    return x + xp.sum(y)


def _shift(xp, x):
    if x.ndim and x.shape[0] > 1:
        x[1:] = x[:-1]
    return x


UPDATES = {
    "assign": (2, _assign),
    "add in place": (1, _add_in_place),
    "assign part": (2, _assign_part),
    "shift": (1, _shift),
}

STEPS = {**ARITHMETIC, **VIEWS, **OTHERS, **UPDATES}


@st.composite
def programs(draw, names=tuple(STEPS)):
    """Steps as (name, operands by number from the last value backwards), and which values are returned."""
    steps = []
    for _ in range(draw(st.integers(1, 14))):
        name = draw(st.sampled_from(names))
        steps.append((name, tuple(draw(st.integers(0, 6)) for _ in range(STEPS[name][0]))))
    return tuple(steps), draw(st.integers(1, 3))


def _can_be_written(x):
    """Whether each element has a place of its own, and may change."""
    return x._client.is_writable(x._data) and not x.layout.has_internal_overlap


def function_of(xp, program):
    """A program as a function of tensors; steps whose operands do not fit are left out."""
    steps, count = program

    def f(*inputs):
        values = list(inputs)
        for name, numbers in steps:
            operands = [values[-1 - number % len(values)] for number in numbers]
            if name in UPDATES and not _can_be_written(operands[0]):
                continue
            shapes = {x.shape for x in operands}
            if (
                len(operands) > 1
                and len(shapes - {()}) > 1
                and name not in ("assign", "assign part")
            ):
                try:
                    xp.broadcast_shapes(*shapes)
                except ValueError:
                    continue
            result = STEPS[name][1](xp, *operands)
            if result.size <= 2000:
                values.append(result)
        return tuple(values[-count:])

    return f
