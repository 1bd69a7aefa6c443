#!/bin/sh
# `holdfast` by hand on a machine with the units of systemd: their release, settings, secrets and account.
#
#     install -m 755 deploy/command.sh /usr/local/bin/holdfast
#     holdfast doctor
#     RELEASE=/opt/holdfast-0.2.0 holdfast migrate --plan      another release than the one that runs
#
# Run it as root: only root reads the secrets. They are in the environment of the program, which no other
# account can read. A file that a command writes belongs to the account: name one in /var/lib/holdfast.
set -eu
umask 077
settings=/etc/holdfast/holdfast.env
secrets=/etc/holdfast/secrets
data=/var/lib/holdfast

# Line by line: a value may have blanks and <>, which the shell would read as its own.
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
        HOLDFAST_*=*) export "$line" ;;
    esac
done < "$settings"
for file in "$secrets"/*; do
    name=${file##*/}
    case $name in
        *[!a-z_]*) continue ;;  # a draft or a copy, such as redis_url.new
    esac
    value=$(cat "$file")
    export "HOLDFAST_$(printf '%s' "$name" | tr '[:lower:]' '[:upper:]')=$value"
done
[ -d "$data" ] || install -d -m 700 -o holdfast -g holdfast "$data"
export HOLDFAST_DATA_DIR="$data" HOME="$data"
exec setpriv --reuid holdfast --regid holdfast --clear-groups --no-new-privs \
    "${RELEASE:-/opt/holdfast}/bin/holdfast" "$@"
