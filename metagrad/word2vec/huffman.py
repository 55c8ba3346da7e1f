"""The Huffman tree of a vocabulary: the binary tree in which frequent words have short paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


class HuffmanTree:
    """Leaves are the V words, inner nodes are numbered from 0 to V − 2, the root last (Huffman 1952).

    counts: (V,) of the words, in any order. Of equal weights the earlier id, and a word before a node, is joined
    first, so that the same counts give the same tree. At least two words: ValueError otherwise.
    """

    def __init__(self, counts: ArrayLike) -> None:
        counts = np.asarray(counts)
        V = len(counts)
        if V < 2:
            raise ValueError(f"a tree needs at least 2 words to tell apart, the vocabulary has {V}")
        self.inner = V - 1
        # Joining the two lightest again and again makes nodes of rising weight: they wait in a queue of their own,
        # and the lightest of all is the first of the words or the first of the nodes.
        order = np.argsort(counts, kind="stable").tolist()
        words: list[int] = counts[order].tolist()
        nodes: list[int] = []
        self._parent, self._code = np.zeros(2 * V - 1, np.int32), np.zeros(2 * V - 1, np.int8)
        word = node = 0
        for made in range(self.inner):
            weight = 0
            for code in (0, 1):
                if word < V and (node == made or words[word] <= nodes[node]):
                    child, weight, word = order[word], weight + words[word], word + 1
                else:
                    child, weight, node = V + node, weight + nodes[node], node + 1
                self._parent[child], self._code[child] = made, code
            nodes.append(weight)

    def paths(self, ids: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
        """For each id its nodes from the leaf to the root, the branch (0 or 1) taken at each, and 1 for those that are.

        ids (…), each result (…, L) for the longest path L among them; shorter ones are filled up with the root.
        """
        nodes, branches, real = [], [], []
        at, root = np.asarray(ids), self.inner - 1
        below = np.ones(at.shape, bool)  # whether `at` is still below the root
        while below.any():
            branches.append(self._code[at] * below)
            real.append(below)
            node = np.where(below, self._parent[at], root)
            nodes.append(node)
            below = node != root
            at = node + self.inner + 1
        return (
            np.stack(nodes, axis=-1).astype(np.int32),
            np.stack(branches, axis=-1).astype(np.float32),
            np.stack(real, axis=-1).astype(np.float32),
        )
