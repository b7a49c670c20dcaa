# SPDX-License-Identifier: Apache-2.0
"""Running a compiled program: one Platform class for each way, and the proof that the output is right."""
