# SPDX-License-Identifier: Apache-2.0
"""What ExecuTorch 1.5.1 hands to Vela 5.1.0 for Ethos-U55 and U65 although Vela refuses it: done otherwise.

Both concern 16-bit activations, whose convolutions accumulate in 48 bits. These NPUs cannot store such an
accumulator, so Vela has to fuse the one RESCALE that reads it; and they cannot upscale 16-bit inputs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import torch
from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx.passes.operator_support import OperatorSupportBase

_TRANSPOSED = 6
"""Index of an ``aten.convolution``'s argument `transposed`."""


class NoTransposedInt16(OperatorSupportBase):
    """Leaves transposed convolutions of 16-bit inputs to the CPU.

    Args:
        rejected: where the reason goes, by node name.
    """

    def __init__(self, rejected: dict[str, str]) -> None:
        self._rejected = rejected

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node) -> bool:
        """Whether Vela takes `node`."""
        if node.target != exir_ops.edge.aten.convolution.default or not node.args[_TRANSPOSED]:
            return True
        source = node.all_input_nodes[0]
        if torch.int16 not in source.args:  # the dequantisation's type
            return True
        self._rejected.setdefault(
            node.name, "Vela 5.1.0 has no transposed convolution of 16-bit inputs for Ethos-U55 and U65"
        )
        return False


@contextlib.contextmanager
def one_reader_of_accumulators() -> Iterator[None]:
    """ExecuTorch's lowering, with 48-bit accumulators that several operators read narrowed to 16 bits once.

    Where one of a convolution's readers wants 32 bits, an addition for example, ExecuTorch gives that reader
    the accumulator itself, and 16 bits to the others. The narrowed value is what the quantised model says.
    """
    insert = RewriteConvPass._insert_a16w8_output_branches

    def insert_alone(self: RewriteConvPass, graph_module: Any, node: torch.fx.Node, *rest: Any) -> None:
        permuted = self._get_permute_int32_rescale_users(node)
        forks = any(set(permute.users) != set(users) for permute, users in permuted.items())
        if len(node.users) == 1 and not forks:
            insert(self, graph_module, node, *rest)

    with mock.patch.object(RewriteConvPass, "_insert_a16w8_output_branches", insert_alone):
        yield
