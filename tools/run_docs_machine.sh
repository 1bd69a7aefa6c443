# A machine for the pages that install into /opt and /etc: tools/run_docs.py reads it before their blocks.
#
# `make_machine` puts a layer over the folders of this machine; all blocks see the same layers, and nothing
# of it stays. Debian's packages are installed already. No systemd runs here: its units are verified, and
# started with their settings, secrets, folders and account, without their guards.
# shellcheck shell=bash

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset "${!HOLDFAST_@}"
export PGHOST=$MACHINE_SOCKETS PGPORT=$MACHINE_PORT
units=/etc/systemd/system
running=$SERVICES  # what runs, and what it printed: also seen from outside

make_machine() {
    local layers=$PWD/machine folder upper
    mkdir "$layers"
    mount -t tmpfs tmpfs "$layers"
    for folder in /etc /opt /usr/lib/sysusers.d /usr/local/bin /var/lib /var/log; do
        upper=upperdir=$layers/upper$folder,workdir=$layers/work$folder
        mkdir -p "$layers/upper$folder" "$layers/work$folder"
        mount -t overlay overlay -o "lowerdir=$folder,$upper" "$folder"
    done
}

apt() { :; }

systemctl() {
    local action=$1 unit
    shift
    case $action in
        enable) ;;
        daemon-reload) verify_units ;;
        start | restart | stop) ;;
        *) return ;;
    esac
    for unit in "$@"; do
        case $action:$unit in
            stop:*) stop_unit "$unit" ;;
            *:--now | *.timer) ;;
            *:holdfast-backup | *:holdfast-audit) (run_unit "$unit") ;;
            *:holdfast-*) stop_unit "$unit" && start_unit "$unit" ;;
        esac
    done
}

verify_units() {  # with what lies beside them; an unknown setting is only printed
    local found
    found=$(systemd-analyze verify "$units"/holdfast-*.service "$units"/holdfast-*.timer 2>&1) || {
        echo "$found"
        return 1
    }
    if grep holdfast <<< "$found"; then return 1; fi
}

start_unit() {
    (run_unit "$1") > "$running/$1.log" 2>&1 < /dev/null &
    echo $! > "$running/$1.pid"
    local port=$SERVE_PORT
    [ "$1" = holdfast-serve ] || port=$WORK_PORT
    for _ in $(seq 300); do
        if curl --silent --fail --output /dev/null "http://127.0.0.1:$port/readyz"; then return; fi
        kill -0 "$(cat "$running/$1.pid")" || break
        sleep 0.2
    done
    cat "$running/$1.log"
    return 1
}

stop_unit() {
    [ -f "$running/$1.pid" ] || return 0
    local process
    process=$(cat "$running/$1.pid")
    kill -TERM "$process"
    while kill -0 "$process" 2> /dev/null; do sleep 0.1; done
    rm "$running/$1.pid"
}

run_unit() {  # becomes what ExecStart names
    local file=$units/$1.service credentials=$running/credentials state name source line
    local given=(HOME=/var/lib/holdfast)
    state=/var/lib/$(value_of StateDirectory)
    install -d -m 700 -o holdfast -g holdfast "$state" "$credentials"
    while IFS=: read -r name source; do
        install -m 400 -o holdfast "$source" "$credentials/$name"
    done < <(value_of LoadCredential)
    while read -r line; do
        case $line in HOLDFAST_*=*) given+=("$line") ;; esac
    done < "$(value_of EnvironmentFile)"
    while read -r line; do
        line=${line//%d/$credentials}
        given+=("${line//:9101/:$WORK_PORT}")
    done < <(value_of Environment)
    line=$(value_of ExecStart)
    line=${line//'$$'/'$'}
    line=${line//%%/%}
    eval "set -- ${line//--port 8000/--port $SERVE_PORT}"
    exec setpriv --reuid holdfast --regid holdfast --clear-groups \
        env --ignore-environment --chdir / PATH="$PATH" STATE_DIRECTORY="$state" "${given[@]}" "$@"
}

value_of() {
    local from
    for from in "$file" "$file".d/*.conf; do
        [ ! -f "$from" ] || sed -n "s/^$1=//p" "$from"
    done
}
