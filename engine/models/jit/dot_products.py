"""Integer dot products of AVX2 on packed weights, as instructions.

The products of a block are written in the processor's own words, in an order that LLVM keeps: left to
itself, it has more vectors in flight than there are registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
from numba import types

from engine.models.jit.decorators import instruction
from engine.models.jit.vectors import (
    BYTE,
    BYTES,
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
)  # fmt: skip

__all__ = ["BLOCK", "CACHE_LINE", "GROUP", "TOGETHER", "block_bytes", "dot_products"]

GROUP = 8  # outputs whose weights stand together: one in each 32-bit part of a vector
TOGETHER = 2  # groups that share each input that is fetched
BLOCK = 32  # inputs that share a scale
CACHE_LINE = 64

llvm.initialize_native_asmparser()


def block_bytes(bits: int) -> int:
    """Of a block: a vector of numbers for each bit, then a vector of scales, and one of minima for 4 bits."""
    return (bits + (2 if bits == 4 else 1)) * VECTOR_BYTES


def dot_products(bits: int, n_rows: int) -> Any:
    """Dot products of two groups of outputs with some rows, for weights of 4 or 8 bits.

    What comes back is called in compiled code as `(blocks, ahead, ahead_bytes, rows, row_bytes, factors, row_factors,
    n_blocks, results, row_results)`: the address of the groups' packed blocks, that of what to fetch from memory
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


Vectors = list[ir.Value]


class _Loop:
    """Writes the loop over the blocks of inputs for `dot_products`."""

    def __init__(self, builder: ir.IRBuilder, bits: int, n_rows: int, given: Sequence[ir.Value]) -> None:
        self._builder = builder
        self._bits = bits
        blocks, self._ahead, self._ahead_bytes, rows, row_bytes, factors, row_factors = given[:7]
        self._n_blocks, results, row_results = given[7:]
        self._block_bytes = block_bytes(bits)
        group_bytes = builder.mul(self._n_blocks, constant(self._block_bytes))
        self._groups = [builder.add(blocks, builder.mul(group_bytes, constant(group))) for group in range(TOGETHER)]
        self._rows = [builder.add(rows, builder.mul(row_bytes, constant(row))) for row in range(n_rows)]
        self._factors = [builder.add(factors, builder.mul(row_factors, constant(4 * row))) for row in range(n_rows)]
        self._results = [builder.add(results, builder.mul(row_results, constant(4 * row))) for row in range(n_rows)]
        self._multiply_add = function(builder, "llvm.fma.v8f32", FLOATS, FLOATS, FLOATS, FLOATS)

    def write(self, context: Any) -> Any:
        builder = self._builder
        before = builder.block
        loop, behind = builder.append_basic_block("blocks"), builder.append_basic_block("behind")
        builder.branch(loop)
        builder.position_at_end(loop)
        block = builder.phi(LONG)
        block.add_incoming(constant(0), before)
        sums = [[builder.phi(FLOATS) for _ in self._groups] for _ in self._rows]
        new = self._block(block, sums)
        for row, new_row in zip(sums, new, strict=True):
            for total, new_total in zip(row, new_row, strict=True):
                total.add_incoming(ir.Constant(FLOATS, [0.0] * GROUP), before)
                total.add_incoming(new_total, loop)
        following = builder.add(block, constant(1))
        block.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, self._n_blocks), loop, behind)
        builder.position_at_end(behind)
        for new_row, place in zip(new, self._results, strict=True):
            for group, total in enumerate(new_row):
                at = builder.add(place, constant(VECTOR_BYTES * group))
                builder.store(total, pointer(builder, at, FLOATS), align=4)
        return context.get_dummy_value()

    def _block(self, block: ir.Value, sums: Sequence[Vectors]) -> list[Vectors]:
        """The sums, of each row those of the groups, with one more block in them."""
        builder = self._builder
        offset = builder.mul(block, constant(self._block_bytes))
        groups = [builder.add(group, offset) for group in self._groups]
        rows = [builder.add(row, builder.mul(block, constant(BLOCK))) for row in self._rows]
        ahead = builder.add(self._ahead, builder.mul(block, self._ahead_bytes))
        for line in range(0, TOGETHER * self._block_bytes, CACHE_LINE):
            self._fetch(builder.add(ahead, constant(line)))
        exact = self._four_bits(groups, rows) if self._bits == 4 else self._eight_bits(groups, rows)
        new = []
        for row, own in enumerate(sums):
            factors = builder.add(self._factors[row], builder.mul(block, constant(8)))
            factor = self._words("vbroadcastss ($1), $0", FLOATS, factors)
            if self._bits == 4:
                inputs = self._words("vbroadcastss 4($1), $0", FLOATS, factors)
                minima = [self._floats(group, self._bits + 1) for group in groups]
                own = [
                    builder.call(self._multiply_add, [minimum, inputs, total])
                    for minimum, total in zip(minima, own, strict=True)
                ]
            scales = [builder.fmul(self._floats(group, self._bits), factor) for group in groups]
            new.append(
                [
                    builder.call(self._multiply_add, [builder.sitofp(number, FLOATS), scale, total])
                    for number, scale, total in zip(exact[row], scales, own, strict=True)
                ]
            )
        return new

    def _four_bits(self, groups: Vectors, rows: Vectors) -> list[Vectors]:
        """The exact sums of a block for each row and group: products from 0 to 15 * 127, added in 16 bits."""
        nibble = every(BYTES, 15)
        low, high = "vpand {}($1), $2, $0", "vmovdqa {}($1), $0\nvpsrlw $$4, $0, $0\nvpand $2, $0, $0"
        sums: list[Vectors] = [[] for _ in rows]
        for place in range(4):
            for first, take in ((place, low), (place + 4, high)):
                words = take.format(VECTOR_BYTES * place)
                weights = [self._words(words, BYTES, group, nibble) for group in groups]
                sums = [self._add(own, weights, row, first) for own, row in zip(sums, rows, strict=True)]
        add_pairs = function(self._builder, "llvm.x86.avx2.pmadd.wd", INTS, SHORTS, SHORTS)
        ones = every(SHORTS, 1)
        return [[self._builder.call(add_pairs, [total, ones]) for total in own] for own in sums]

    def _add(self, sums: Vectors, weights: Vectors, row: ir.Value, quad: int) -> Vectors:
        """A row's sums in 16 bits, of each group, with the products of four inputs in them."""
        words = f"vpbroadcastd {4 * quad}({{row}}), {{inputs}}\n"
        for group in range(TOGETHER):
            place = f"{{sum{group}}}" if not sums else "{product}"
            words += f"vpmaddubsw {{inputs}}, {{weights{group}}}, {place}\n"
            if sums:
                words += f"vpaddw {{product}}, {{sum{group}}}, {{sum{group}}}\n"
        return self._changed(words, SHORTS, sums, {"weights": weights, "row": [row]})

    def _eight_bits(self, groups: Vectors, rows: Vectors) -> list[Vectors]:
        """The same: the sign of a weight is given to the input, since one side of the products must have none."""
        ones = every(SHORTS, 1)
        sums: list[Vectors] = [[] for _ in rows]
        for quad in range(8):
            weights = [self._words(f"vmovdqa {VECTOR_BYTES * quad}($1), $0", BYTES, group) for group in groups]
            sizes = [self._words("vpsignb $1, $1, $0", BYTES, weight) for weight in weights]
            sums = [self._add_signed(own, weights, sizes, row, ones, quad) for own, row in zip(sums, rows, strict=True)]
        return sums

    def _add_signed(
        self, sums: Vectors, weights: Vectors, sizes: Vectors, row: ir.Value, ones: ir.Value, quad: int
    ) -> Vectors:
        words = f"vpbroadcastd {4 * quad}({{row}}), {{inputs}}\n"
        for group in range(TOGETHER):
            place = f"{{sum{group}}}" if not sums else "{product}"
            words += f"vpsignb {{weights{group}}}, {{inputs}}, {place}\n"
            words += f"vpmaddubsw {place}, {{sizes{group}}}, {place}\nvpmaddwd {{ones}}, {place}, {place}\n"
            if sums:
                words += f"vpaddd {{product}}, {{sum{group}}}, {{sum{group}}}\n"
        return self._changed(words, INTS, sums, {"weights": weights, "sizes": sizes, "row": [row], "ones": [ones]})

    def _floats(self, group: ir.Value, place: int) -> ir.Value:
        address = self._builder.add(group, constant(VECTOR_BYTES * place))
        return load(self._builder, address, FLOATS, align=VECTOR_BYTES)

    def _changed(self, words: str, kind: ir.Type, sums: Vectors, given: dict[str, Vectors]) -> Vectors:
        """What instructions make of sums, one for each group; they have registers for `inputs` and a `product`."""
        made = [*(f"sum{group}" for group in range(TOGETHER)), "inputs", *(["product"] if sums else [])]
        names, values = list(made), []
        for name, own in given.items():
            names += [name] if len(own) == 1 else [f"{name}{group}" for group in range(TOGETHER)]
            values += own
        constraints = ["=&x"] * len(made) + [_register(value) for value in values]
        constraints += [str(group) for group in range(len(sums))]  # they come in where they go out
        values += sums
        text = words.format(**{name: f"${place}" for place, name in enumerate(names)})
        results = ir.LiteralStructType([kind] * TOGETHER + [BYTES] * (len(made) - TOGETHER))
        changed = self._builder.call(self._assembly(text, results, constraints, values), values)
        return [self._builder.extract_value(changed, group) for group in range(TOGETHER)]

    def _words(self, text: str, kind: ir.Type, *values: ir.Value) -> ir.Value:
        """What instructions make of some values, in $0, which is none of their registers."""
        constraints = ["=&x", *(_register(value) for value in values)]
        return self._builder.call(self._assembly(text, kind, constraints, values), list(values))

    @staticmethod
    def _assembly(text: str, kind: ir.Type, constraints: Sequence[str], values: Sequence[ir.Value]) -> ir.InlineAsm:
        given = ir.FunctionType(kind, [value.type for value in values])
        return ir.InlineAsm(given, text, ",".join(constraints), side_effect=True)  # which keeps their order

    def _fetch(self, address: ir.Value) -> None:
        """Have a cache line brought near; an address that is nobody's does no harm."""
        prefetch = function(self._builder, "llvm.prefetch.p0", ir.VoidType(), BYTE.as_pointer(), INT, INT, INT)
        kinds = [ir.Constant(INT, number) for number in (0, 3, 1)]  # to read, to keep, data
        self._builder.call(prefetch, [pointer(self._builder, address, BYTE), *kinds])


def _register(value: ir.Value) -> str:
    """The kind of register that a value of 64 bits, or a vector, is given in."""
    return "r" if value.type == LONG else "x"
