# SPDX-License-Identifier: Apache-2.0
"""Device models: one small file each, all behind `Device`; `bus.Bus` finds the one at an address."""
