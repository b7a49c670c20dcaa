#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# armdeploy run, setting up first in a fresh clone. ./fvp/run.sh --help lists the options.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
options=()
if [[ "$*" == *cortex-a* && ! -d "${ARMDEPLOY_TOOLS:-$root/.tools}/executorch-aarch64" ]]; then
    options=(--enable-cortex-a)
fi
if [ ! -f "$root/.venv/.armdeploy-setup" ] || [ ${#options[@]} != 0 ]; then
    "$root/setup.sh" "${options[@]}" >&2
fi
exec "$root/.venv/bin/armdeploy" run "$@"
