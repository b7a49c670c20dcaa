# SPDX-License-Identifier: Apache-2.0
"""The command line: one small file a verb, parsing and calling. No logic lives here."""
