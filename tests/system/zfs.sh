#!/bin/bash
# A zfs for tests: a zfs-fuse of their own and a pool in a file, whatever else runs on the machine.
#
#   zfs.sh start DIR POOL      DIR must exist, and whoever starts it outlive it
#   zfs.sh crash DIR           ends the zfs-fuse by SIGKILL
#   zfs.sh restart DIR         starts it again; it finds the pool by itself
#   zfs.sh stop DIR POOL
#
# A zfs-fuse answers at one place in the filesystem and remembers its pools at another. So the
# caller must be in a mount namespace of its own, where both are hidden; a shell test gets one by
#
#   [ "$(readlink /proc/self/ns/mnt)" != "$(readlink /proc/1/ns/mnt)" ] || exec unshare --mount "$0"
#
# Mounts, socket and cache then go with the last process of the namespace.
set -u
export LC_ALL=C
export PATH=/usr/sbin:/sbin:/usr/bin:/bin
pool_size=2G
patience=300 # seconds, against a hang

die() {
    echo "zfs.sh: $*" >&2
    exit 1
}

is_alive() { # is_alive PID: a zombie is not
    [ -e "/proc/$1/stat" ] && [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)" != Z ]
}

has_ended() { ! is_alive "$1"; }
answers() { zpool list >/dev/null 2>&1; }

wait_until() { # wait_until COMMAND...
    local end=$((SECONDS + patience))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

hide() { # the machine's own zfs-fuse, its socket and its pools
    [ "$(readlink /proc/self/ns/mnt)" != "$(readlink /proc/1/ns/mnt)" ] ||
        die "this needs a mount namespace of its own"
    mount --make-rprivate / || exit 1
    mount -t tmpfs -o mode=755 run /run || exit 1
    mount -t tmpfs -o mode=755 zfs /var/lib/zfs || exit 1
    mkdir -p /run/lock
}

# When the test dies without a word, its zfs-fuse must not stay.
watch_owner() { # watch_owner OWNER DIR
    while is_alive "$1"; do
        sleep 1
    done
    kill -KILL "$(cat "$2/zfs-fuse.pid")"
}

start_daemon() { # start_daemon DIR
    setsid zfs-fuse --no-daemon --no-kstat-mount >>"$1/zfs-fuse.log" 2>&1 </dev/null &
    echo $! >"$1/zfs-fuse.pid"
    wait_until answers || die "zfs-fuse does not answer: $(tail -n 1 "$1/zfs-fuse.log")"
}

start() { # start DIR POOL
    command -v zfs-fuse >/dev/null || die "zfs-fuse is not there (package zfs-fuse)"
    hide
    start_daemon "$1"
    watch_owner "$PPID" "$1" >/dev/null 2>&1 </dev/null &
    echo $! >"$1/watch.pid"
    truncate -s "$pool_size" "$1/pool.img" && zpool create -m none "$2" "$1/pool.img" || exit 1
}

crash() { # crash DIR
    local pid
    pid=$(cat "$1/zfs-fuse.pid") || exit 1
    kill -KILL "$pid"
    wait_until has_ended "$pid"
}

stop() { # stop DIR POOL
    local pid
    pid=$(cat "$1/zfs-fuse.pid") || exit 1
    kill "$(cat "$1/watch.pid")"
    zpool destroy -f "$2" 2>/dev/null
    kill -TERM "$pid" 2>/dev/null
    wait_until has_ended "$pid" || kill -KILL "$pid" # it has lost itself
    rm -f "$1/pool.img" "$1/zfs-fuse.pid" "$1/watch.pid" "$1/zfs-fuse.log"
}

case "${1-}" in
start | stop) "$1" "${2:?DIR}" "${3:?POOL}" ;;
crash) crash "${2:?DIR}" ;;
restart) start_daemon "${2:?DIR}" ;;
*) die "usage: zfs.sh start DIR POOL | crash DIR | restart DIR | stop DIR POOL" ;;
esac
