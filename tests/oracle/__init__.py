# SPDX-License-Identifier: Apache-2.0
"""Numeric oracle: one-idea models, their command streams, and the TOSA reference model."""
