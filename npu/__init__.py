# SPDX-License-Identifier: Apache-2.0
"""The Arm Ethos-U as data and code: configurations, command streams, weight formats, bit-exact execution."""
