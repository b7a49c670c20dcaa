# SPDX-License-Identifier: Apache-2.0
"""Models to try things with: each module defines `ModelUnderTest` and `ModelInputs`, as `--model` wants."""
