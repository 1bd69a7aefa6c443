#!/bin/sh
# Make the secrets of compose.yaml once: sh deploy/secrets.sh FOLDER. Existing files are never replaced.
#
# Containers run as other users than the one who owns these files, so the files can be read by all, and the
# folder can be entered by its owner only.
set -eu
folder=${1:?"usage: sh deploy/secrets.sh FOLDER"}
umask 077
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder"

draw() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

put() {
    if [ -e "$1" ]; then
        echo "$folder/$1 is there; left as it is" >&2
        return
    fi
    printf '%s\n' "$2" > "$1.draft"
    chmod 444 "$1.draft"
    mv "$1.draft" "$1"
}

[ -e postgres_password ] || put postgres_password "$(draw)"
[ -e valkey.conf ] || put valkey.conf "requirepass $(draw)"
put database_url "postgresql://holdfast:$(cat postgres_password)@postgres:5432/holdfast"
put redis_url "redis://:$(sed 's/requirepass //' valkey.conf)@valkey:6379/0"
put totp_key "$(draw)"
