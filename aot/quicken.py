# SPDX-License-Identifier: Apache-2.0
"""Spares torch 2.13's export work that it repeats without need, half the time of a small model.

The programs are the same to the byte (tests/aot/test_quicken.py). For the time of a compilation Python does
not look for unreachable cycles among torch's millions of objects, and three names of torch are replaced:

* the listing of composite operators, which every decomposition makes again several times: here again only
  after an operator was registered;
* the annotation ``Callable[_P, _T]``, evaluated for each of them, which ``collections.abc`` builds anew every
  time and ``typing`` looks up;
* the deep copy of a node's history, made for each new node of each pass although no entry of it ever changes.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import typing
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import torch._ops
from torch._export import utils
from torch.export import decomp_utils, exported_program
from torch.fx.traceback import NodeSource

_LISTING = "_collect_all_valid_cia_ops"


@contextlib.contextmanager
def quickened() -> Iterator[None]:
    """Within it torch exports and decomposes faster; afterwards torch is as it was."""
    with contextlib.ExitStack() as stack:
        if gc.isenabled():
            gc.disable()
            stack.callback(gc.enable)
        stack.enter_context(mock.patch.object(torch._ops, "Callable", typing.Callable))
        stack.enter_context(mock.patch.object(NodeSource, "__deepcopy__", _itself, create=True))
        for module in (utils, decomp_utils, exported_program):
            if hasattr(module, _LISTING):
                stack.enter_context(mock.patch.object(module, _LISTING, _composite_operators))
        yield


def _itself(source: NodeSource, _memo: dict[int, Any]) -> NodeSource:
    return source


_collect_all = getattr(utils, _LISTING)


def _composite_operators() -> set[Any]:
    return set(_listed(len(torch._C._dispatch_get_all_op_names())))


@functools.lru_cache(maxsize=1)
def _listed(_count: int) -> frozenset[Any]:
    return frozenset(_collect_all())
