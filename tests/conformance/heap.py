"""kube-scheduler 1.36's choice among nodes: the top of a heap, built as Go builds it."""

from __future__ import annotations

from collections.abc import Sequence


def go_heap_top(totals: Sequence[int]) -> int:
    """Build a max-heap in place as Go's heap.Init does and return which element ends up on top."""
    heap = list(range(len(totals)))

    def less(left: int, right: int) -> bool:
        return totals[heap[left]] > totals[heap[right]]

    for parent in range(len(heap) // 2 - 1, -1, -1):
        at = parent
        while (child := 2 * at + 1) < len(heap):
            if child + 1 < len(heap) and less(child + 1, child):
                child += 1
            if not less(child, at):
                break
            heap[at], heap[child] = heap[child], heap[at]
            at = child
    return heap[0]
