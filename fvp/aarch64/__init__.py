# SPDX-License-Identifier: Apache-2.0
"""Cortex-A: executor_runner for AArch64 Linux, emulated or on hardware, and what it executed."""
