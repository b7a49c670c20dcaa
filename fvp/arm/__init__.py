# SPDX-License-Identifier: Apache-2.0
"""Arm's own FVPs as a platform: found, told apart from the open front ends, run with the same runner."""
