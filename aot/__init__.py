# SPDX-License-Identifier: Apache-2.0
"""Ahead-of-time compilation: a PyTorch model becomes a .pte for an Arm Ethos-U, with a report.

ExecuTorch exports, quantises, partitions and lowers; Vela makes the command streams. This package chooses
the settings, checks them at the door, and keeps what the two tools say about their decisions.
"""
