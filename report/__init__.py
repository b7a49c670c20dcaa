# SPDX-License-Identifier: Apache-2.0
"""Results as plain data: errors, the run record, tables and writers. Computes nothing in a printer."""
