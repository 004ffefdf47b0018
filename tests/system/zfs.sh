#!/bin/bash
# A zfs for tests: zfs-fuse, where none runs on this machine, and a pool in a file.
# Everything is below DIR, which must exist; what was not there before is gone after `stop`.
#
#   zfs.sh is-foreign          succeeds when a zfs runs that no test has started
#   zfs.sh start DIR POOL      starts zfs-fuse if need be (in the caller's mount namespace)
#   zfs.sh crash DIR           ends that zfs-fuse by SIGKILL
#   zfs.sh restart DIR         starts it again; it finds the pool by itself
#   zfs.sh stop DIR POOL
#
# There can be one zfs-fuse on a machine. One that a test has started holds a lock as long as it
# lives, so that other tests wait for its end.
set -u
export LC_ALL=C
export PATH=/usr/sbin:/sbin:/usr/bin:/bin
daemon=/usr/sbin/zfs-fuse
cache=/var/lib/zfs/zpool.cache
pool_size=2G
patience=280 # seconds, against a hang

die() {
    echo "zfs.sh: $*" >&2
    exit 1
}

answers() { zpool list >/dev/null 2>&1; }

is_foreign() {
    answers && flock -n "$daemon" true
}

is_alive() { # is_alive PID: a zombie is not
    [ -e "/proc/$1/stat" ] && [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)" != Z ]
}

wait_until() { # wait_until COMMAND...
    local end=$((SECONDS + patience))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || die "never came true: $*"
        sleep 0.05
    done
}

has_ended() { ! is_alive "$1"; }

start_daemon() { # start_daemon DIR
    exec 9<"$daemon"
    flock -w "$patience" 9 || die "another test's zfs-fuse does not end"
    setsid "$daemon" --no-daemon --no-kstat-mount >>"$1/zfs-fuse.log" 2>&1 </dev/null &
    echo $! >"$1/zfs-fuse.pid"
    exec 9<&-
    wait_until answers
}

start() { # start DIR POOL
    [ -x "$daemon" ] || [ -n "$(command -v zpool)" ] || die "neither zfs-fuse nor zpool is there"
    [ -e "$cache" ] || : >"$1/no-cache"
    is_foreign || start_daemon "$1"
    truncate -s "$pool_size" "$1/pool.img" || exit 1
    zpool create -m none "$2" "$1/pool.img" || exit 1
}

crash() { # crash DIR
    local pid
    pid=$(cat "$1/zfs-fuse.pid") || exit 1
    kill -KILL "$pid"
    wait_until has_ended "$pid"
}

stop() { # stop DIR POOL
    local pid
    grep -F " $1/" /proc/self/mountinfo | cut -d ' ' -f 5 | sort -r | while read -r path; do
        umount -l "$path"
    done
    # A tree that was unmounted just now is busy for a while.
    for _ in $(seq 100); do
        zpool destroy -f "$2" 2>/dev/null && break
        zpool list -H -o name "$2" >/dev/null 2>&1 || break
        sleep 0.1
    done
    rm -f "$1/pool.img"
    if [ -e "$1/zfs-fuse.pid" ]; then
        pid=$(cat "$1/zfs-fuse.pid")
        kill -TERM "$pid" 2>/dev/null
        for _ in $(seq 200); do
            has_ended "$pid" && break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null # only if it has lost itself
        wait_until has_ended "$pid"
        [ ! -e "$1/no-cache" ] || rm -f "$cache"
    fi
    rm -f "$1/zfs-fuse.pid" "$1/zfs-fuse.log" "$1/no-cache"
}

case "${1-}" in
is-foreign) is_foreign ;;
start | stop) "$1" "${2:?DIR}" "${3:?POOL}" ;;
crash) crash "${2:?DIR}" ;;
restart) start_daemon "${2:?DIR}" ;;
*) die "usage: zfs.sh is-foreign | start DIR POOL | crash DIR | restart DIR | stop DIR POOL" ;;
esac
