#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# armdeploy run, setting up first in a fresh clone. ./fvp/run.sh --help lists the options.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ -f "$root/.venv/.armdeploy-setup" ] || "$root/setup.sh" >&2
exec "$root/.venv/bin/armdeploy" run "$@"
