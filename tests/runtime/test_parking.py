"""``ParkingAllocator``: nobody but the clock sees that memory of arrays is handed on."""

from __future__ import annotations

import threading

import pytest

from numr.errors import AllocatorFrozen, InvalidHandle, OutOfMemoryError
from numr.runtime.parking import ParkingAllocator
from tests.runtime.test_caching_allocator import Source

SIZE = 1000


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def allocator(source):
    return ParkingAllocator(source, "mock", parked_size=4096, parked_blocks=2)


def test_the_next_claim_of_a_size_takes_the_memory_over(allocator, source):
    first = allocator.claim(SIZE)
    allocator.release(first)
    assert allocator.claim(SIZE) is first
    other = allocator.claim(SIZE)
    assert other is not first
    assert source.calls == 2
    allocator.release(first)
    allocator.release(other)


def test_figures_do_not_show_it(allocator):
    for _ in range(5):
        block = allocator.claim(SIZE)
        figures = allocator.stats()
        assert figures.active_allocations == 1
        assert figures.active_bytes == SIZE
        allocator.release(block)
        allocator.release(allocator.claim(SIZE))
    figures = allocator.stats()
    assert figures.active_allocations == figures.active_bytes == 0
    assert figures.peak_usage == SIZE
    assert figures.total_allocations == 10
    assert figures.total_bytes == 10 * SIZE


def test_totals_count_memory_in_use_that_was_handed_on(allocator):
    allocator.release(allocator.claim(SIZE))
    block = allocator.claim(SIZE)
    assert allocator.stats().total_allocations == 2
    allocator.release(block)
    assert allocator.stats().total_allocations == 2


def test_only_so_many_blocks_of_a_size_are_parked(allocator):
    blocks = [allocator.claim(SIZE) for _ in range(5)]
    for block in blocks:
        allocator.release(block)
    assert len(allocator._live) == 2
    assert allocator.stats().active_allocations == 0


def test_large_blocks_are_not_parked(allocator):
    allocator.release(allocator.claim(5000))
    assert not allocator._live


def test_parked_memory_serves_other_sizes(source):
    source.capacity = 4096
    allocator = ParkingAllocator(source, "mock", parked_size=4096, parked_blocks=2)
    allocator.release(allocator.claim(4096))
    block = allocator.claim(2048)
    assert source.held <= 4096
    allocator.release(block)


def test_the_peak_is_that_of_what_was_in_use(allocator):
    allocator.release(allocator.claim(SIZE))
    allocator.release(allocator.claim(2 * SIZE))
    assert allocator.stats().peak_usage == 2 * SIZE


def test_parked_memory_has_no_handle(allocator):
    block = allocator.claim(SIZE)
    allocator.release(block)
    with pytest.raises(InvalidHandle, match="no active allocation"):
        allocator.deallocate(block.ptr, SIZE)
    allocator.release(allocator.claim(SIZE))
    with pytest.raises(InvalidHandle, match="no active allocation"):
        allocator.size_of(block.ptr)


def test_freezing_refuses_parked_memory_too(allocator):
    allocator.release(allocator.claim(SIZE))
    allocator.freeze()
    with pytest.raises(AllocatorFrozen):
        allocator.claim(SIZE)
    allocator.unfreeze()
    assert allocator.stats().active_allocations == 0
    assert allocator.stats().total_allocations == 1


def test_a_limit_and_a_reset_find_parked_memory_free(allocator):
    allocator.release(allocator.claim(SIZE))
    allocator.set_limit(SIZE)
    with pytest.raises(OutOfMemoryError):
        allocator.claim(SIZE + 100)
    allocator.release(allocator.claim(SIZE // 2))
    allocator.reset()
    assert allocator.stats().total_allocations == 0


def test_memory_that_was_taken_over_goes_back_to_the_source(allocator, source):
    ptr = source.allocate(SIZE)
    allocator.release(allocator.take_over(ptr, SIZE))
    assert not allocator._live
    assert source.held == 0


def test_threads_never_share_a_block(allocator):
    held, failures = set(), []
    lock = threading.Lock()

    def work():
        for _ in range(300):
            block = allocator.claim(SIZE)
            with lock:
                if block.ptr in held:
                    failures.append(block.ptr)
                held.add(block.ptr)
            with lock:
                held.discard(block.ptr)
            allocator.release(block)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    figures = allocator.stats()
    assert figures.active_allocations == 0
    assert figures.total_allocations == 1200
