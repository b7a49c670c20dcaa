#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes .venv with the pinned packages and .tools with QEMU and Arm's prebuilt firmware. Safe to run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

VENV=.venv
TOOLS=${ARMDEPLOY_TOOLS:-.tools}
PYTHON=${PYTHON:-python3}
QEMU_SUITE=trixie-backports # the first Debian suite whose static qemu-user is 11.1 or newer
FIRMWARE_WHEEL=mlia-ethos-u==0.1.0
LITERT_WHEEL=ai-edge-litert==1.2.0 # later releases round FULLY_CONNECTED differently
AARCH64_RELEASE=1.5.1 # of ExecuTorch; programs are compiled with the same
EXTRA=""
WITH_QEMU=1 WITH_FIRMWARE=1 WITH_TOOLCHAIN=1 WITH_FVPS=0 WITH_LITERT=0 WITH_CORTEX_A=0
TOOLCHAIN_PACKAGES="gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib g++ cmake ninja-build
    flatbuffers-compiler libflatbuffers-dev ccache"
CROSS_PACKAGES="g++-aarch64-linux-gnu cmake ninja-build"
EULA=${ARM_FVP_INSTALL_I_AGREE_TO_THE_CONTAINED_EULA:-False}
FVP_ARCHIVE=https://developer.arm.com/-/cdn-downloads/permalink/FVPs-Corstone-IoT

usage() {
    cat <<'EOF'
usage: ./setup.sh [options]

Installs what armdeploy needs below this folder: .venv (Python packages, pinned), .tools/qemu (qemu-arm)
and .tools/firmware (Arm's prebuilt ExecuTorch firmware). On the machine itself, as root, the Debian packages
that build the project's own firmware: arm-none-eabi-gcc, cmake, ninja, flatc.

  --setup-test-dependency        also install pytest, hypothesis, ruff, mypy
  --enable-baremetal-toolchain   fail when the Debian packages cannot be installed (default: tell, and go on:
                                 Arm's prebuilt firmware then runs in place of the project's own)
  --disable-baremetal-toolchain  install no Debian package
  --disable-qemu                 do not fetch qemu-arm (then only --platform host runs)
  --disable-ethos-u-deps         do not fetch Arm's prebuilt firmware (likewise)
  --enable-litert                also make .tools/litert with LiteRT, the reference of verify for .tflite files
  --enable-cortex-a              also install the AArch64 cross compiler (Debian package, needs root) and fetch
                                 ExecuTorch's AArch64 libraries and qemu-aarch64, for the cortex-a targets
  --python PROGRAM               Python >= 3.10 to make .venv with (default: python3)
  --enable-fvps                  also fetch Arm's Corstone-300 and Corstone-320 FVPs from Arm (x86-64 and AArch64
                                 Linux), for --platform fvp; needs --i-agree-to-the-contained-eula
  --i-agree-to-the-contained-eula  you have read the licence in the FVPs' packages and accept it
  -h, --help                     this text

Exit codes: 0 ok, 2 usage, 3 something could not be installed (the last line says what).
EOF
}

say() { echo "setup: $*" >&2; }
die() { echo "setup: $*" >&2; exit 3; }

while [ $# -gt 0 ]; do
    case $1 in
        --setup-test-dependency) EXTRA="[dev]" ;;
        --enable-baremetal-toolchain) WITH_TOOLCHAIN=2 ;;
        --disable-baremetal-toolchain) WITH_TOOLCHAIN=0 ;;
        --enable-litert) WITH_LITERT=1 ;;
        --enable-cortex-a) WITH_CORTEX_A=1 ;;
        --disable-qemu) WITH_QEMU=0 ;;
        --disable-ethos-u-deps) WITH_FIRMWARE=0 ;;
        --python) shift; PYTHON=${1:?--python needs a program} ;;
        --enable-fvps) WITH_FVPS=1 ;;
        --i-agree-to-the-contained-eula) EULA=True ;;
        -h | --help) usage; exit 0 ;;
        *) echo "setup: unknown option '$1'; see ./setup.sh --help" >&2; exit 2 ;;
    esac
    shift
done

install_python_packages() {
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die "$PYTHON is not Python >= 3.10; use --python"
    [ -x $VENV/bin/python ] || "$PYTHON" -m venv $VENV || die "cannot make $VENV; on Debian: apt-get install python3-venv"
    local stamp=$VENV/.armdeploy-setup want
    want="$(cat pyproject.toml)$EXTRA"
    if [ -f $stamp ] && { [ "$(cat $stamp)" = "$want" ] || [ "$(cat $stamp)" = "$(cat pyproject.toml)[dev]" ]; }; then
        say "$VENV is up to date"
        return
    fi
    say "installing the Python packages into $VENV (about 2 GB, some minutes)"
    # --no-compile: Python compiles the modules that are used, on first use; compiling all takes longer than unpacking
    $VENV/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -e ".$EXTRA" ||
        die "pip could not install the packages; the lines above say which"
    printf '%s' "$want" >$stamp
}

qemu_version() { "$1" --version 2>/dev/null | sed -n 's/^qemu-arm version \([0-9]*\).*/\1/p'; }

debian_archive() { # the address of the Debian archive that this machine's apt already uses
    local codename
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    apt-get indextargets --format '$(CREATED_BY) $(RELEASE) $(REPO_URI)' 2>/dev/null |
        awk -v c="$codename" '$1 == "Packages" && $2 == c { print $3; exit }'
}

fetch_qemu() { # downloads and unpacks one package with an apt configuration of its own: the system's stays as it is
    local dir archive keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    command -v apt-get >/dev/null && archive=$(debian_archive) && [ -n "$archive" ] && [ -f $keyring ] || return 1
    dir=$(mktemp -d)
    mkdir -p "$dir"/{lists/partial,cache/archives/partial,state}
    echo "deb [signed-by=$keyring] $archive $QEMU_SUITE main" >"$dir/sources.list"
    : >"$dir/status"
    chmod -R a+rX "$dir"
    (
        cd "$dir"
        apt=(apt-get -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
            -o Dir::State="$dir/state" -o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache"
            -o Dir::State::status="$dir/status" -o APT::Sandbox::User=)
        "${apt[@]}" update && "${apt[@]}" download qemu-user && dpkg-deb -x qemu-user_*.deb root
    ) >&2 || { rm -rf "$dir"; return 1; }
    mkdir -p "$TOOLS/qemu"
    cp "$dir"/root/usr/bin/qemu-arm "$dir"/root/usr/bin/qemu-aarch64 "$TOOLS/qemu/"
    cp "$dir"/root/usr/share/doc/qemu-user/copyright "$TOOLS/qemu/copyright"
    rm -rf "$dir"
}

install_qemu() {
    local found
    for found in "${ARMDEPLOY_QEMU:-}" "$TOOLS/qemu/qemu-arm" "$(command -v qemu-arm || true)"; do
        if [ -n "$found" ] && [ "$(qemu_version "$found")" -ge 10 ] 2>/dev/null; then
            say "qemu-arm $("$found" --version | sed -n 's/^qemu-arm version \([^ ]*\).*/\1/p') is there"
            return
        fi
    done
    say "fetching qemu-arm from Debian's $QEMU_SUITE"
    fetch_qemu || die "qemu-arm >= 10 is not here and Debian's $QEMU_SUITE could not be read;" \
        "install qemu-user >= 10 by hand and set ARMDEPLOY_QEMU, or run setup with --disable-qemu (then: --platform host)"
}

install_firmware() {
    local board images=mlia/resources/backends/applications missing=0
    for board in corstone-300 corstone-320; do
        [ -f "$TOOLS/firmware/$board/mlek_inference_runner.axf" ] || missing=1
    done
    [ $missing = 0 ] && { say "Arm's prebuilt firmware is there"; return; }
    say "fetching Arm's prebuilt ExecuTorch firmware ($FIRMWARE_WHEEL, images only)"
    local dir
    dir=$(mktemp -d)
    $VENV/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --dest "$dir" "$FIRMWARE_WHEEL" ||
        die "pip could not download $FIRMWARE_WHEEL"
    $VENV/bin/python -m zipfile -e "$dir"/*.whl "$dir"
    for board in corstone-300:sse-300-26.03.0-executorch-ethos-U55 corstone-320:sse-320-26.03.0-executorch-ethos-U85; do
        mkdir -p "$TOOLS/firmware/${board%%:*}"
        cp "$dir/$images/inference_runner-${board##*:}-Default-noTA/"mlek_inference_runner.axf* \
            "$TOOLS/firmware/${board%%:*}/"
    done
    rm -rf "$dir"
}

install_toolchain() {
    local program missing="" line="apt-get install -y"
    for program in arm-none-eabi-g++ g++ cmake ninja flatc; do
        command -v $program >/dev/null || missing="$missing $program"
    done
    [ -n "$missing" ] || { say "the bare-metal toolchain is there"; return; }
    for program in $TOOLCHAIN_PACKAGES; do line="$line $program"; done
    if [ "$(id -u)" != 0 ]; then
        [ $WITH_TOOLCHAIN = 1 ] || die "missing:$missing; needs root: sudo $line"
        say "missing:$missing; Arm's prebuilt firmware will run in place of the project's own until you: sudo $line"
        return
    fi
    say "installing the bare-metal toolchain"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive $line; } >/dev/null || die "apt failed: $line"
}

install_cross_toolchain() { # for executor_runner on AArch64 Linux
    local program missing=""
    for program in aarch64-linux-gnu-g++ cmake ninja; do
        command -v $program >/dev/null || missing="$missing $program"
    done
    [ -n "$missing" ] || { say "the AArch64 cross compiler is there"; return; }
    [ "$(id -u)" = 0 ] || die "missing:$missing; needs root: sudo apt-get install -y $CROSS_PACKAGES"
    say "installing the AArch64 cross compiler"
    # shellcheck disable=SC2086 # a list of packages
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get install -y $CROSS_PACKAGES; } >/dev/null ||
        die "apt failed: apt-get install -y $CROSS_PACKAGES"
}

install_qemu_aarch64() { # comes with qemu-arm, unless that is the system's own
    [ -x "$TOOLS/qemu/qemu-aarch64" ] || fetch_qemu || die "qemu-aarch64 >= 10.1 could not be fetched from Debian's" \
        "$QEMU_SUITE; install qemu-user >= 10.1 by hand and set ARMDEPLOY_QEMU_AARCH64"
}

install_aarch64_wheel() { # ExecuTorch's libraries and headers for AArch64 Linux, unpacked
    local dir place=$TOOLS/executorch-aarch64 folder
    [ -d "$place/executorch-$AARCH64_RELEASE.dist-info" ] && { say "ExecuTorch's AArch64 libraries are there"; return; }
    say "fetching ExecuTorch's AArch64 libraries (executorch==$AARCH64_RELEASE)"
    dir=$(mktemp -d)
    $VENV/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --platform manylinux_2_28_aarch64 --python-version 3.11 --dest "$dir" "executorch==$AARCH64_RELEASE" ||
        die "pip could not download the AArch64 wheel of executorch==$AARCH64_RELEASE"
    $VENV/bin/python -m zipfile -e "$dir"/*.whl "$dir/wheel"
    rm -rf "$place"
    mkdir -p "$place/executorch"
    for folder in include lib share; do mv "$dir/wheel/executorch/$folder" "$place/executorch/"; done
    mv "$dir/wheel/executorch-$AARCH64_RELEASE.dist-info" "$place/"
    rm -rf "$dir"
}

install_litert() { # in an environment of its own: it and this project pin different NumPy releases
    [ -x "$TOOLS/litert/bin/python" ] && { say "LiteRT is there"; return; }
    say "installing $LITERT_WHEEL into $TOOLS/litert"
    "$PYTHON" -m venv "$TOOLS/litert" &&
        "$TOOLS/litert/bin/python" -m pip install --quiet --disable-pip-version-check "$LITERT_WHEEL" ||
        { rm -rf "$TOOLS/litert"; die "pip could not install $LITERT_WHEEL"; }
}

fvp_package() { # sub-folder, file name and MD5 of a board's FVP for this machine, as Arm and ExecuTorch publish them
    case $1-$(uname -m) in
        300-x86_64) echo Corstone-300 FVP_Corstone_SSE-300_11.27_42_Linux64.tgz 0dc9538041296b8d479249e6fa5aab74 ;;
        300-aarch64) echo Corstone-300 FVP_Corstone_SSE-300_11.27_42_Linux64_armv8l.tgz 74e7952817b338c8479bcf66874b23e0 ;;
        320-x86_64) echo Corstone-320 FVP_Corstone_SSE-320_11.27_25_Linux64.tgz 3deb3c68f9b2d145833f15374203514d ;;
        320-aarch64) echo Corstone-320 FVP_Corstone_SSE-320_11.27_25_Linux64_armv8l.tgz 3889f1d80a6d9861ea4aa6f1c88dd0ae ;;
        *) die "Arm has no Corstone FVPs for $(uname -m) Linux" ;;
    esac
}

install_fvp() { # one board's FVP into .tools/fvp; its installer asks for the licence unless it is told
    local board=$1 place=$TOOLS/fvp/corstone-$1 package folder name md5 dir
    [ -d "$place/models" ] && { say "the Corstone-$board FVP is there"; return; }
    package=$(fvp_package "$board")
    read -r folder name md5 <<<"$package"
    mkdir -p "$place"
    place=$(cd "$place" && pwd)
    say "fetching $name from Arm"
    dir=$(mktemp -d)
    curl --fail --silent --show-error --location --output "$dir/$name" "$FVP_ARCHIVE/$folder/$name" ||
        die "cannot fetch $FVP_ARCHIVE/$folder/$name; fetch it by hand and set FVP_ROOT to where it is installed"
    md5sum --check --quiet >&2 <<<"$md5  $dir/$name" || die "$name is not the file that Arm published"
    tar -xzf "$dir/$name" -C "$dir"
    (cd "$dir" && "./FVP_Corstone_SSE-$board.sh" --i-agree-to-the-contained-eula --no-interactive --quiet --force \
        --destination "$place") >&2 || die "the installer of the Corstone-$board FVP failed"
    rm -rf "$dir"
}

install_fvps() {
    [ "$EULA" = True ] || die "the FVPs have a licence: read it, then run setup again with" \
        "--enable-fvps --i-agree-to-the-contained-eula"
    command -v curl >/dev/null || die "curl is not installed; on Debian: apt-get install curl"
    install_fvp 300
    install_fvp 320
}

install_beside_venv() { # what does not wait for .venv
    [ $WITH_TOOLCHAIN = 0 ] || install_toolchain
    [ $WITH_QEMU = 0 ] || install_qemu
    [ $WITH_CORTEX_A = 0 ] || { install_cross_toolchain && install_qemu_aarch64; }
    [ $WITH_LITERT = 0 ] || install_litert
}

[ $WITH_FVPS = 0 ] || install_fvps
install_beside_venv &
beside=$!
trap 'kill $beside 2>/dev/null || true' EXIT
install_python_packages
[ $WITH_FIRMWARE = 0 ] || install_firmware
[ $WITH_CORTEX_A = 0 ] || install_aarch64_wheel
wait $beside || exit 3 # it has said why
trap - EXIT
say "done; next: ./fvp/run.sh"
