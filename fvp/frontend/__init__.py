# SPDX-License-Identifier: Apache-2.0
"""Programs with the names and the command line of Arm's Corstone FVPs, run on the virtual Corstone.

`models` and `parameters` are the tables, `options` reads the command line, `session` runs, `wording` prints.
"""
