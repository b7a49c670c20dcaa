# SPDX-License-Identifier: Apache-2.0
"""PyTorch -> .pte for Cortex-A: ExecuTorch's XNNPACK backend; it chooses kernels where the program runs."""
