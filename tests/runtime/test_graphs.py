"""``Graph``, ``NoOpGraph`` and ``CapturedGraph``: what a graph keeps, and what dies first."""

from __future__ import annotations

import gc
import weakref

import pytest

from numr.errors import InvalidHandle
from numr.runtime import CapturedGraph, Graph, NoOpGraph, Storage


class Memory:
    """Stands for a tensor."""

    def __init__(self, name):
        self.name = name


class Recorded(Graph):
    """Counts its launches, and notes at its end which memory still exists."""

    __slots__ = ("launches", "log", "watched")

    def __init__(self, log, watched):
        super().__init__()
        self.launches = 0
        self.log = log
        self.watched = [weakref.ref(memory) for memory in watched]

    def launch(self):
        self.launches += 1

    def is_replay_capable(self):
        return True

    def destroy(self):
        self.log.append([memory() and memory().name for memory in self.watched])


@pytest.fixture
def names():
    return ["in", "out", "arena"]


def captured_graph(log, names):
    memories = [Memory(name) for name in names]
    x, y, arena = memories
    return CapturedGraph(Recorded(log, memories), [x], [y], arena)


def test_a_captured_graph_launches_its_graph(names):
    captured = captured_graph([], names)
    captured.launch()
    captured.launch()
    assert captured.graph.launches == 2
    assert [x.name for x in captured.inputs] == ["in"]
    assert [y.name for y in captured.outputs] == ["out"]
    assert "1 inputs, 1 outputs" in repr(captured)


def test_the_graph_goes_before_its_memory(names):
    log = []
    captured = captured_graph(log, names)
    assert not log
    del captured
    assert log == [names]


def test_the_graph_alone_keeps_its_memory(names):
    log = []
    graph = captured_graph(log, names).graph
    gc.collect()
    assert not log
    assert [memory().name for memory in graph.watched] == names
    watched = graph.watched
    del graph
    assert log == [names]
    assert [memory() for memory in watched] == [None] * 3


def test_a_graph_in_a_garbage_cycle_goes_before_device_memory(rt, device, allocator):
    """Here the collector chooses the order of finalizers; memory goes after all of them."""
    seen = []

    class Reading(Recorded):
        def destroy(self):
            host = bytearray(4)
            try:
                rt.copy_from_device(self.log[0], host, device)
            except InvalidHandle as error:
                host = error
            seen.append(host)

    before = allocator.stats().active_allocations
    for _ in range(10):
        storages = [Storage.allocate(4, device, rt) for _ in range(3)]
        for storage in storages:
            rt.copy_to_device(b"live", storage.handle, device)
        graph = Reading([storages[2].handle], [])
        x, y, arena = Memory("x"), Memory("y"), Memory("arena")
        x.storage, y.storage, arena.storage = storages
        captured = CapturedGraph(graph, [x], [y], arena)
        x.cycle = captured
        del x, y, arena, captured, graph, storage, storages
    gc.collect()
    assert seen == [b"live"] * 10
    assert allocator.stats().active_allocations == before


def test_a_graph_of_nothing_does_nothing():
    graph = NoOpGraph()
    assert graph.launch() is None
    assert graph.is_replay_capable() is False
    captured = CapturedGraph(graph, (), ())
    captured.launch()
    assert captured.inputs == captured.outputs == ()
