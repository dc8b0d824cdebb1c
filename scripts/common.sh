# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For the scripts beside this file: what they install, build and print. Source it with the repository as the current
# directory. Messages go to standard error, results to standard output.

# What `meson setup build && ninja -C build` needs, and what the tests need besides.
BUILD_PACKAGES=(gcc g++ meson ninja-build pkg-config flatbuffers-compiler libflatbuffers-dev libxxhash-dev
    libjansson-dev libgdk-pixbuf-2.0-dev libsndfile1-dev)
TEST_PACKAGES=(libcmocka-dev python3-venv)

say() {
    printf '== %s\n' "$*" >&2
}

fail() {
    printf '%s: %s\n' "$0" "$*" >&2
    exit 1
}

# Why a package is needed, for the person who is about to get it.
package_reason() {
    case $1 in
    gcc | g++) echo "the compiler" ;;
    meson | ninja-build | pkg-config) echo "the build" ;;
    flatbuffers-compiler | libflatbuffers-dev) echo "reading .tflite files" ;;
    libxxhash-dev) echo "checksums of saved executables" ;;
    libjansson-dev) echo "JSON output of the mica command" ;;
    libgdk-pixbuf-2.0-dev) echo "pictures as inputs of the mica command" ;;
    libsndfile1-dev) echo "sounds as inputs of the mica command" ;;
    libcmocka-dev) echo "unit tests" ;;
    python3-venv) echo "tests written in Python" ;;
    *) echo "this script" ;;
    esac
}

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "needs root or sudo for: $*"
    fi
}

# need_packages PACKAGE...: installs those that are missing, after saying which and what for.
need_packages() {
    local package missing=()
    if ! command -v dpkg-query >/dev/null; then
        say "this is no Debian: assuming that what these Debian packages hold is installed: $*"
        return
    fi
    for package; do
        is_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${#missing[@]} missing Debian packages:"
    for package in "${missing[@]}"; do
        printf '   %-24s %s\n' "$package" "$(package_reason "$package")" >&2
    done
    # A fresh container has no package lists, and old lists name files that are gone.
    if apt-get install -s "${missing[@]}" >/dev/null 2>&1 && install_packages "${missing[@]}"; then
        return
    fi
    as_root apt-get update -q >&2 || fail "apt-get update failed"
    install_packages "${missing[@]}" || fail "could not install: ${missing[*]}"
}

install_packages() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >&2
}

# build_mica DIRECTORY [MESON OPTIONS]: configures where needed and builds everything. Quick when nothing changed.
build_mica() {
    configure_mica "$@"
    make_mica "$1"
}

# make_mica DIRECTORY [TARGETS]: the second half of build_mica, also for a part of it.
make_mica() {
    local directory=$1 quiet=()
    shift
    [ -t 2 ] || quiet=(--quiet)
    ninja -C "$directory" "${quiet[@]}" "$@" >&2 || fail "the build failed; see above"
}

# The stamp says what the directory was configured for: a checkout that moved, another meson, other options or packages
# installed since (what is optional may be there now) need a new configuration; where meson can't do that in place, a
# new directory.
configure_mica() {
    local directory=$1 stamp=$1/mica-configured wanted again=() package
    shift
    wanted="$PWD, meson $(meson --version), $*"
    for package in "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"; do
        is_installed "$package" && wanted+=", $package"
    done
    if [ -f "$directory/build.ninja" ]; then
        [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
        again=(--reconfigure)
    fi
    say "configuring $directory"
    if ! meson setup "${again[@]}" "$directory" "$@" >&2; then
        [ ${#again[@]} -gt 0 ] && meson setup --wipe "$directory" "$@" >&2 ||
            fail "meson setup failed; see above and $directory/meson-logs/meson-log.txt"
    fi
    printf '%s\n' "$wanted" >"$stamp"
}

# need_venv DIRECTORY REQUIREMENTS: a virtual environment with the packages of the requirements file.
need_venv() {
    local directory=$1 requirements=$2 stamp=$1/mica-requirements
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        need_packages python3-venv
    fi
    if ! "$directory/bin/python" -m pip --version >/dev/null 2>&1; then
        say "making $directory"
        python3 -m venv --clear "$directory" || fail "could not make $directory"
    fi
    cmp -s "$requirements" "$stamp" && return
    say "installing what $requirements names into $directory"
    "$directory/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2 ||
        fail "could not install what $requirements names"
    cp "$requirements" "$stamp"
}
