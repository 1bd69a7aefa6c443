#!/bin/sh
# Make .venv and install one lock file and the project into it: sh tools/venv.sh requirements/run.txt
#
# Uses uv if it works, else venv and pip. Either way every download is checked against the hashes of the
# lock file, and the project itself is installed without a download.
set -eu
cd "$(dirname "$0")/.."
lock=$1
venv=.venv
remedy="Install uv, or on Debian: apt install python3-venv"

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    # Each name is run, not just looked up: a version manager leaves names on the PATH that print an error.
    for name in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3}; do
        if is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
}

give_up() {
    echo "holdfast: $1" >&2
    exit 1
}

with_uv() {
    # Without a Python that is new enough, uv finds or downloads one itself.
    [ -x $venv/bin/python ] || uv venv --quiet --seed --python "${python:-3.11}" $venv || return 1
    uv pip install --quiet --python $venv/bin/python --require-hashes -r "$lock" || return 1
    uv pip install --quiet --python $venv/bin/python --no-deps --no-build-isolation -e .
}

with_pip() {
    [ -n "$python" ] || give_up "needs Python 3.11 or newer, as python3.11 … python3.14 or python3 \
on the PATH, or: make PYTHON=/path/to/python"
    if ! [ -x $venv/bin/python ]; then
        # Debian splits ensurepip off into python3-venv; the system's pip can stand in for it.
        "$python" -m venv $venv >/dev/null 2>&1 || "$python" -m venv --clear --without-pip $venv ||
            give_up "$python cannot make a virtual environment. $remedy"
    fi
    if $venv/bin/python -m pip --version >/dev/null 2>&1; then
        pip="$venv/bin/python -m pip"
    elif "$python" -m pip --python $venv/bin/python --version >/dev/null 2>&1; then
        pip="$python -m pip --python $venv/bin/python"
    else
        give_up "$python has no pip. $remedy"
    fi
    # Modules are compiled when they are first imported, as with uv: most of them never are.
    $pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r "$lock"
    $pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
}

# Remove an environment whose Python is missing or too old.
if [ -d $venv ] && ! is_new_enough $venv/bin/python; then
    rm -rf $venv
fi

python=$(find_python)
echo "holdfast: installing $lock into $venv"
if uv --version >/dev/null 2>&1 && with_uv; then
    exit
fi
with_pip
