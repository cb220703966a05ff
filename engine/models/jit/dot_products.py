"""Integer dot products of AVX2 on packed weights, as instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir
from numba import types

from engine.models.jit.decorators import instruction
from engine.models.jit.vectors import (
    BYTE,
    BYTES,
    FLOAT,
    FLOATS,
    INT,
    INTS,
    LONG,
    SHORTS,
    VECTOR_BYTES,
    constant,
    every,
    function,
    load,
    pointer,
    spread,
)  # fmt: skip

__all__ = ["BLOCK", "CACHE_LINE", "GROUP", "block_bytes", "dot_products"]

GROUP = 8  # outputs whose weights stand together: one in each 32-bit part of a vector
BLOCK = 32  # inputs that share a scale
CACHE_LINE = 64


def block_bytes(bits: int) -> int:
    """Of a block: a vector of numbers for each bit, then a vector of scales, and one of minima for 4 bits."""
    return (bits + (2 if bits == 4 else 1)) * VECTOR_BYTES


def dot_products(bits: int, n_rows: int) -> Any:
    """Dot products of one group of outputs with some rows, for weights of 4 or 8 bits.

    What comes back is called in compiled code as `(blocks, ahead, ahead_bytes, rows, row_bytes, factors, row_factors,
    n_blocks, results, row_results)`: the address of the group's packed blocks, that of what to fetch from memory
    meanwhile, and how much of it with each block; the addresses of the 8-bit rows, of their factors and of the results,
    each with how far apart those of two rows are, in bytes for the rows, else in numbers.

    A vector holds four inputs of each of the eight outputs. Products of two neighbours are added in 16 bits, which
    are enough: for 4 bits a whole block is 2 * 8 * 15 * 127 = 30,480 at most, for 8 bits a pair 2 * 128 * 127 = 32,512.
    What is done for a row does not depend on `n_rows`.
    """

    @instruction
    def products(
        _: Any, blocks: Any, ahead: Any, ahead_bytes: Any, rows: Any, row_bytes: Any, factors: Any, row_factors: Any,
        n_blocks: Any, results: Any, row_results: Any,
    ) -> Any:  # fmt: skip
        address, size = types.uintp, types.intp
        signature = types.void(address, address, size, address, size, address, size, size, address, size)
        return signature, lambda context, builder, _, given: _Loop(builder, bits, n_rows, given).write(context)

    return products


class _Loop:
    """Writes the loop over the blocks of inputs for `dot_products`."""

    def __init__(self, builder: ir.IRBuilder, bits: int, n_rows: int, given: Sequence[ir.Value]) -> None:
        self._builder = builder
        self._bits = bits
        self._n_rows = n_rows
        self._blocks, self._ahead, self._ahead_bytes, rows, row_bytes, factors, row_factors = given[:7]
        self._n_blocks, results, row_results = given[7:]
        self._block_bytes = block_bytes(bits)
        self._rows = [builder.add(rows, builder.mul(row_bytes, constant(row))) for row in range(n_rows)]
        self._factors = [builder.add(factors, builder.mul(row_factors, constant(4 * row))) for row in range(n_rows)]
        self._results = [builder.add(results, builder.mul(row_results, constant(4 * row))) for row in range(n_rows)]
        self._add_pairs = function(builder, "llvm.x86.avx2.pmadd.ub.sw", SHORTS, BYTES, BYTES)
        self._add_shorts = function(builder, "llvm.x86.avx2.pmadd.wd", INTS, SHORTS, SHORTS)
        self._with_sign = function(builder, "llvm.x86.avx2.psign.b", BYTES, BYTES, BYTES)
        self._multiply_add = function(builder, "llvm.fma.v8f32", FLOATS, FLOATS, FLOATS, FLOATS)

    def write(self, context: Any) -> Any:
        builder = self._builder
        before = builder.block
        loop, behind = builder.append_basic_block("blocks"), builder.append_basic_block("behind")
        builder.branch(loop)
        builder.position_at_end(loop)
        block = builder.phi(LONG)
        block.add_incoming(constant(0), before)
        sums = [builder.phi(FLOATS) for _ in range(self._n_rows)]
        for total in sums:
            total.add_incoming(ir.Constant(FLOATS, [0.0] * GROUP), before)
        for total, new in zip(sums, self._block(block, sums), strict=True):
            total.add_incoming(new, loop)
        following = builder.add(block, constant(1))
        block.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, self._n_blocks), loop, behind)
        builder.position_at_end(behind)
        for total, place in zip(sums, self._results, strict=True):
            builder.store(total.incomings[1][0], pointer(builder, place, FLOATS), align=4)
        return context.get_dummy_value()

    def _block(self, block: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums with one more block in them."""
        builder = self._builder
        numbers = builder.add(self._blocks, builder.mul(block, constant(self._block_bytes)))
        ahead = builder.add(self._ahead, builder.mul(block, self._ahead_bytes))
        for line in range(0, self._block_bytes, CACHE_LINE):
            self._fetch(builder.add(ahead, constant(line)))
        exact = self._four_bits(block, numbers) if self._bits == 4 else self._eight_bits(block, numbers)
        scale = builder.bitcast(self._vector(numbers, self._bits), FLOATS)
        minimum = builder.bitcast(self._vector(numbers, self._bits + 1), FLOATS) if self._bits == 4 else None
        new = []
        for row, total in enumerate(sums):
            factors = builder.add(self._factors[row], builder.mul(block, constant(8)))
            if minimum is not None:
                sum_of_inputs = spread(builder, load(builder, builder.add(factors, constant(4)), FLOAT), FLOATS)
                total = builder.call(self._multiply_add, [minimum, sum_of_inputs, total])
            factor = builder.fmul(scale, spread(builder, load(builder, factors, FLOAT), FLOATS))
            new.append(builder.call(self._multiply_add, [builder.sitofp(exact[row], FLOATS), factor, total]))
        return new

    def _four_bits(self, block: ir.Value, numbers: ir.Value) -> list[ir.Value]:
        """The exact sums of a block for each row: products from 0 to 15 * 127, added in 16 bits."""
        builder = self._builder
        sums: list[ir.Value | None] = [None] * self._n_rows
        for place in range(4):
            packed = self._vector(numbers, place)
            shifted = builder.bitcast(builder.lshr(builder.bitcast(packed, SHORTS), every(SHORTS, 4)), BYTES)
            for quad, nibbles in ((place, packed), (place + 4, shifted)):
                weights = builder.and_(nibbles, every(BYTES, 15))
                for row, before in enumerate(sums):
                    pairs = builder.call(self._add_pairs, [weights, self._inputs(block, row, quad)])
                    sums[row] = pairs if before is None else builder.add(before, pairs)
        return [builder.call(self._add_shorts, [total, every(SHORTS, 1)]) for total in sums]

    def _eight_bits(self, block: ir.Value, numbers: ir.Value) -> list[ir.Value]:
        """The same: the sign of a weight is given to the input, since one side of the products must have none."""
        builder = self._builder
        sums: list[ir.Value | None] = [None] * self._n_rows
        for quad in range(8):
            weights = self._vector(numbers, quad)
            size = builder.call(self._with_sign, [weights, weights])
            for row, before in enumerate(sums):
                inputs = builder.call(self._with_sign, [self._inputs(block, row, quad), weights])
                pairs = builder.call(self._add_pairs, [size, inputs])
                fours = builder.call(self._add_shorts, [pairs, every(SHORTS, 1)])
                sums[row] = fours if before is None else builder.add(before, fours)
        return [total for total in sums if total is not None]

    def _vector(self, numbers: ir.Value, place: int) -> ir.Value:
        address = self._builder.add(numbers, constant(place * VECTOR_BYTES))
        return load(self._builder, address, BYTES, align=VECTOR_BYTES)

    def _inputs(self, block: ir.Value, row: int, quad: int) -> ir.Value:
        """Four inputs of a row, in every part of a vector."""
        builder = self._builder
        offset = builder.add(builder.mul(block, constant(BLOCK)), constant(4 * quad))
        return builder.bitcast(spread(builder, load(builder, builder.add(self._rows[row], offset), INT), INTS), BYTES)

    def _fetch(self, address: ir.Value) -> None:
        """Have a cache line brought near; an address that is nobody's does no harm."""
        prefetch = function(self._builder, "llvm.prefetch.p0", ir.VoidType(), BYTE.as_pointer(), INT, INT, INT)
        kinds = [ir.Constant(INT, number) for number in (0, 3, 1)]  # to read, to keep, data
        self._builder.call(prefetch, [pointer(self._builder, address, BYTE), *kinds])
