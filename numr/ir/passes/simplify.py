"""Nodes that need not run: those whose results nobody sees, and those that repeat others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from numr.ir.graph import REDUCE, Buffer, Node, Operand, Program, Ref, Role
from numr.layout import Layout

__all__ = ["common_subexpressions", "count_readers", "dead_code", "stable_buffers"]

_Operand = TypeVar("_Operand", Ref, Operand)


def dead_code(program: Program) -> Program:
    """Leave out nodes whose results neither the outputs nor memory that lives on depend on."""
    live = {ref.buffer for ref in program.outputs}
    kept: list[Node] = []
    for node in reversed(program.nodes):
        if any(ref.buffer in live or ref.buffer.lives_on for ref in node.results):
            kept.append(node)
            if node.fresh:
                live.difference_update(ref.buffer for ref in node.results)
            live.update(ref.buffer for ref in node.reads)
    return replace(program, nodes=kept[::-1])


def stable_buffers(program: Program) -> set[Buffer]:
    """Buffers that no node changes once they hold their elements."""
    changed = {ref.buffer for node in program.nodes if not node.fresh for ref in node.results}
    return {buffer for buffer in program.buffers if buffer not in changed}


def common_subexpressions(program: Program) -> Program:
    """Compute once what several nodes compute alike, from memory that does not change.

    Of results that are outputs each stays one of its own, so that two outputs never share memory.
    """
    stable = stable_buffers(program)
    outputs = {ref.buffer for ref in program.outputs}
    replaced: dict[Buffer, Buffer] = {}
    seen: dict[Any, Node] = {}
    nodes: list[Node] = []
    for original in program.nodes:
        node = _with_buffers(original, replaced)
        buffers = [ref.buffer for ref in (*node.reads, *node.results)]
        if not node.fresh or not all(buffer in stable for buffer in buffers):
            nodes.append(node)
            continue
        first = seen.setdefault(_key_of(node), node)
        results = [*node.results, *first.results]
        is_output = any(ref.buffer in outputs for ref in node.results)
        # The first one becomes the output, if it is none and all of a temporary buffer.
        stays = is_output and not (
            all(ref.is_whole and ref.buffer.role is Role.TEMPORARY for ref in results)
            and not any(ref.buffer in outputs for ref in first.results)
        )
        if first is node or stays:
            nodes.append(node)
            continue
        for mine, other in zip(node.results, first.results, strict=True):
            replaced[mine.buffer] = other.buffer
            if mine.buffer in outputs:
                outputs.add(other.buffer)
    return replace(
        program, nodes=nodes, outputs=tuple(_moved(ref, replaced) for ref in program.outputs)
    )


def _key_of(node: Node) -> Any:
    """What nodes that compute the same have alike."""
    attributes, shape = node.attributes, None
    if node.family == REDUCE and node.results[0].is_whole:
        # Axes of length 1 change nothing in memory.
        kind, axes, _, dtype = attributes
        return REDUCE, kind, axes, dtype, *map(_key, node.operands)
    if node.is_elementwise and node.results[0].is_whole:
        shape = node.results[0].shape
    return (
        node.family,
        attributes,
        tuple(_key(_without_ones(x, shape)) for x in node.operands),
        tuple((_without_ones(ref, shape).layout, ref.dtype) for ref in node.results),
    )


def _without_ones(operand: _Operand, shape: tuple[int, ...] | None) -> _Operand:
    """A reference that broadcasts to a shape without the axes that have length 1 there."""
    if shape is None or not isinstance(operand, Ref):
        return operand
    layout = operand.layout
    axes = [axis for axis in range(layout.ndim) if shape[len(shape) - layout.ndim + axis] != 1]
    lengths, steps = (tuple(x[axis] for axis in axes) for x in (layout.shape, layout.strides))
    return replace(operand, layout=Layout(lengths, steps, layout.offset))


def _key(operand: Operand) -> Any:
    # As numbers, True, 1 and 1.0 are equal, and so are both zeros; NaN is not equal to itself.
    return operand if isinstance(operand, Ref) else (type(operand), repr(operand))


def _with_buffers(node: Node, replaced: dict[Buffer, Buffer]) -> Node:
    if not any(ref.buffer in replaced for ref in node.reads):
        return node
    return replace(node, operands=tuple(_moved(x, replaced) for x in node.operands))


def _moved(operand: _Operand, replaced: dict[Buffer, Buffer]) -> _Operand:
    if isinstance(operand, Ref) and operand.buffer in replaced:
        return replace(operand, buffer=replaced[operand.buffer])
    return operand


def count_readers(nodes: Iterable[Node], outputs: Iterable[Ref]) -> dict[Buffer, int]:
    """How many nodes read each buffer, and outputs."""
    counts: dict[Buffer, int] = {}
    for node in nodes:
        for buffer in {ref.buffer for ref in node.reads}:
            counts[buffer] = counts.get(buffer, 0) + 1
    for ref in outputs:
        counts[ref.buffer] = counts.get(ref.buffer, 0) + 1
    return counts
