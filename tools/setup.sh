#!/bin/sh
# Make the virtual environment of this checkout and install numr with its development tools.
#
# Usage: setup.sh [VENV [EXTRAS]]; the environment variable PYTHON names the interpreter to use.
# A stamp in the environment holds all that it was made from, so a second run with nothing
# changed returns at once, and an interrupted run is done again.
set -eu

cd "$(dirname "$0")/.."
venv=${1:-.venv}
python=${PYTHON:-}
extras=${2:-dev}
stamp=$venv/.numr-setup
minimum='sys.version_info >= (3, 11)'

fail() {
    echo "setup: $*" >&2
    exit 1
}

# Does the interpreter $1 run, and is it new enough?
suits() {
    "$1" -c "import sys; sys.exit(not ($minimum))" >/dev/null 2>&1
}

identity() {
    "$1" -c 'import sys; print(sys.base_prefix, sys.version)'
}

find_python() {
    if [ -n "$python" ]; then
        command -v "$python" >/dev/null || fail "PYTHON=$python: no such command"
        version=$("$python" -c 'import sys; print(*sys.version_info[:3], sep=".")') ||
            fail "PYTHON=$python does not run"
        suits "$python" || fail "PYTHON=$python is Python $version; numr needs 3.11 or newer"
        return
    fi
    for candidate in python3.13 python3.12 python3.11 python3; do
        # A name on the path is not enough: version managers leave shims that do not run.
        if suits "$candidate"; then
            python=$candidate
            return
        fi
    done
    found=$(python3 --version 2>/dev/null || echo none)
    fail "no Python 3.11 or newer found (tried python3.13, python3.12, python3.11 and python3;" \
        "python3 is: $found). Install one, or name it: make PYTHON=/path/to/python3.12 ..."
}

# The Vulkan loader and Mesa's software driver give WebGPU a device on machines without a GPU.
install_vulkan() {
    [ "$(id -u)" = 0 ] && [ -r /etc/debian_version ] && command -v apt-get >/dev/null || return 0
    missing=
    for package in libvulkan1 mesa-vulkan-drivers; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=absent
        [ "$state" = installed ] || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    echo "setup: installing$missing with apt-get"
    log=$venv/apt-get.log
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # one word for each package
    if ! { apt-get update && apt-get install -y --no-install-recommends \
        -o DPkg::Lock::Timeout=120 $missing; } >"$log" 2>&1 </dev/null; then
        tail -n 5 "$log" >&2
        echo "SETUP: APT-GET COULD NOT INSTALL$(echo "$missing" | tr '[:lower:]' '[:upper:]')." \
            "ONLY THE WEBGPU TESTS NEED THIS; THE REST GOES ON. LOG: $log" >&2
    fi
}

wanted() {
    echo "checkout: $PWD"
    echo "extras: $extras"
    echo "pyproject: $(cksum <pyproject.toml)"
    echo "setup: $(cksum <tools/setup.sh)"
}

environment=$venv/bin/python
keep=no
if [ -x "$environment" ] && suits "$environment" && [ -f "$stamp" ] &&
    [ "$(head -n 1 "$stamp")" = "checkout: $PWD" ]; then
    keep=yes
    if [ -n "$python" ]; then
        find_python
        [ "$(identity "$python")" = "$(identity "$environment")" ] || keep=no
    fi
fi
if [ $keep = yes ] && [ "$(wanted)" = "$(cat "$stamp")" ]; then
    exit 0
fi

if [ $keep = no ]; then
    find_python
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python has no venv or no ensurepip module (on Debian: apt-get install python3-venv)"
    echo "setup: making $venv with $("$python" --version) ($(command -v "$python"))"
    "$python" -m venv --clear "$venv"
fi
rm -f "$stamp" # an interrupted installation starts anew
install_vulkan
echo "setup: installing numr[$extras] into $venv"
"$environment" -m pip install --quiet --disable-pip-version-check --editable ".[$extras]"
wanted >"$stamp"
echo "setup: done"
