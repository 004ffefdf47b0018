# shellcheck shell=bash
# For every tests/system/*_test: a holtd of its own, claims, and counts of what a sandbox may leave.
# Sourced, never run.
#
#   . "$(dirname "$0")/../lib.sh"
#   start_holtd [FLAGS...]            exports HOLT_HOST; `holt` is on the PATH
#   claim a_sandbox_has_only_lo       runs that function; prints "ok: NAME" or "not ok: NAME"
#   finish                            exits 1 if a claim failed
#
# The daemon is stopped by its pid when the test ends, and everything it had lies below $tmp.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$here/../.." && cd "${HOLT_BUILD_DIR:-build}" && pwd) || exit 1
export PATH="$build:$PATH"
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$(find "$here" -maxdepth 1 -type d | paste -sd:) && export PYTHONPATH
unset HOLT_HOST HOLT_TOKEN

# Sandboxes of E2B have an open network by default; only tests in a network namespace of their own let
# them have it (net/world.sh), so that no packet of a test leaves the machine.
case $0:${HOLT_NET_TEST:-} in
*/e2b/*: | */builder/*: | */auth/*: | */api/clients_test:) export HOLT_NET_MODE=none ;;
esac

tmp=$(mktemp -d /tmp/holt-test.XXXXXX) || exit 1
holtd_pid=
failures=0
settle_seconds=300 # a bound for polling, not a speed limit

start_holtd() { # start_holtd [FLAGS...]
    local line
    mkfifo "$tmp/ready"
    "$build/holtd" --state "$tmp/state" --run "$tmp/run" --listen none --ready-fd 9 "$@" \
        9<>"$tmp/ready" >"$tmp/holtd.log" 2>&1 </dev/null &
    holtd_pid=$!
    IFS= read -r line <"$tmp/ready"
    rm -f "$tmp/ready"
    if [ "$line" != ready ]; then
        echo "not ok: start_holtd: $line"
        cat "$tmp/holtd.log"
        exit 1
    fi
    export HOLT_HOST=unix://$tmp/run/holt.sock
}

# To be called before the daemon is there. To remove the files of a few Debian roots from a disk takes
# longer than all that is done with them.
keep_templates_in_memory() {
    mkdir -p -m 700 "$tmp/state" "$tmp/state/templates"
    mount -t tmpfs -o mode=700 none "$tmp/state/templates" || exit 1
}

# Its root is made once for all tests, and kept until its recipe changes: whoever comes second waits for
# the first.
base_template() { # base_template NAME: base or code-interpreter-v1, both made of the root of the latter
    local kept=$here/../../build/templates recipe=$here/../../templates/build
    mkdir -p "$kept"
    (
        flock 8
        cmp -s "$recipe" "$kept/recipe" || rm -f "$kept"/*.tar
        [ -e "$kept/root.tar" ] || sh "$recipe" "$kept/root.tar" code-interpreter-v1 full || exit
        cp "$recipe" "$kept/recipe"
        "$build/holt" template build "$1" --archive "$kept/root.tar"
    ) 8>"$kept/lock"
}

holtd_is_alive() { kill -0 "$holtd_pid" 2>/dev/null; }

stop_holtd() { # the status is the daemon's own
    local pid=$holtd_pid
    [ -n "$pid" ] || return 0
    holtd_pid=
    kill -TERM "$pid" 2>/dev/null
    wait "$pid"
}

# Sandboxes outlive their daemon: whatever a claim has left must go before it.
remove_sandboxes() {
    [ -z "$holtd_pid" ] || holt ls -q 2>/dev/null | xargs -r holt rm -f >/dev/null 2>&1
}

cleanup() {
    local status=$?
    remove_sandboxes
    stop_holtd
    ! mountpoint -q "$tmp/state/templates" || umount -l "$tmp/state/templates"
    rm -rf --one-file-system "$tmp"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP INT TERM

# claim NAME [ARGUMENTS...]: the arguments become part of the printed name.
claim() {
    local name=${*// /_}
    (
        set -eu
        trap - EXIT
        "$@"
    ) >"$tmp/claim.log" 2>&1 </dev/null &
    # Waited for in this way, a signal to the test is handled at once and not when the claim is done;
    # and inside an `if` or before `||` the -e above would be ignored.
    if wait $!; then
        echo "ok: $name"
    else
        echo "not ok: $name"
        sed 's/^/    /' "$tmp/claim.log"
        failures=$((failures + 1))
    fi
}

skip() { # skip NAME WHY
    echo "skip: $1: $2"
}

finish() {
    if ! holtd_is_alive; then
        echo "not ok: holtd_is_alive_at_the_end"
        tail -n 40 "$tmp/holtd.log"
        failures=$((failures + 1))
    fi
    [ "$failures" -eq 0 ]
    exit
}

fail() {
    echo "$*"
    exit 1
}

expect_exit() { # expect_exit CODE COMMAND...
    local wanted=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" -eq "$wanted" ] || fail "exit $status, not $wanted: $*"
}

must_fail() { # must_fail COMMAND...: any failure, but not a signal's
    local status=0
    "$@" || status=$?
    [ "$status" -ne 0 ] || fail "succeeded: $*"
    [ "$status" -lt 128 ] || fail "exit $status: $*"
}

equal() { # equal WANTED GOT [WHAT]
    [ "$1" = "$2" ] || fail "${3-value} is '$2', not '$1'"
}

contains() { # contains TEXT PART
    case $1 in *"$2"*) ;; *) fail "no '$2' in: $1" ;; esac
}

is_one_line_and_a_remedy() { # is_one_line_and_a_remedy FILE: what was said, and perhaps what to do about it
    [ "$(wc -l <"$1")" -le 2 ] || fail "more than two lines: $(cat "$1")"
    equal 0 "$(tail -n +2 "$1" | grep -vc '^      [^ ]')" "number of lines that are neither"
}

# refused MESSAGE COMMAND...: a status of Holt's own, nothing on stdout, one line that has this in it.
refused() {
    local wanted=$1 status=0
    shift
    "$@" >"$tmp/refused.out" 2>"$tmp/refused.err" || status=$?
    { [ "$status" -ge 2 ] && [ "$status" -le 12 ]; } || equal 125 "$status" "exit status of $*"
    [ ! -s "$tmp/refused.out" ] || fail "stdout: $(cat "$tmp/refused.out")"
    is_one_line_and_a_remedy "$tmp/refused.err"
    contains "$(head -n 1 "$tmp/refused.err")" "$wanted"
}

# Polls until COMMAND succeeds; fails after settle_seconds.
eventually() { # eventually COMMAND...
    local end=$((SECONDS + settle_seconds))
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || fail "never came true: $*"
        sleep 0.05
    done
}

# What chance is to choose: as asked for, or else something new each time. In CI, where a failure must
# be the doing of whoever wants to come in, it is always the same.
seed_or() { # seed_or WANTED
    echo "${1:-${CI:+1}}" | grep . || echo $((RANDOM * 32768 + RANDOM))
}

# --- counting ---------------------------------------------------------------------------------

# The name all control groups of this daemon carry: FNV-1a of its state directory.
label() {
    local hash=2166136261 i path=$tmp/state
    for ((i = 0; i < ${#path}; i++)); do
        hash=$(((hash ^ $(printf %d "'${path:i:1}")) * 16777619 & 0xffffffff))
    done
    printf 'holt-%08x' "$hash"
}

label_groups() { # the directories of our control groups, unified hierarchy and v1
    find /sys/fs/cgroup -mindepth 1 -type d -path "*/$(label)*" 2>/dev/null
}

count() { grep -c . || true; }
host_mounts() { count </proc/self/mountinfo; }
loop_devices() { losetup -a | grep -F "$tmp/" | count; }
state_files() { find "$tmp/state" "$tmp/run" | count; }

# Volumes may lie in an image that is mounted nowhere but in the daemon's descriptors. Those of
# throw-away sandboxes are in scratch/.
volume_dir() {
    local fd
    for fd in "/proc/$holtd_pid/fd"/*; do
        case $(readlink "$fd") in */scratch) echo "$fd/." && return ;; esac
    done
}
volume_files() { find "$(volume_dir)" -mindepth 1 -maxdepth 2 2>/dev/null | count; }

# Seats (see src/runtime/zygote.h) are kept for the next sandbox where controllers are v1: each is one
# process, one descriptor and a group a controller. They are no leak, so they are counted apart.
seats() { label_groups | sed -n 's,.*/\(seat-[0-9]*\)$,\1,p' | sort -u | count; }
cgroups() { label_groups | grep -v '/seat' | count; }
holtd_fds() { echo $(($(find "/proc/$holtd_pid/fd" -mindepth 1 | count) - $(seats))); }

sandbox_processes() { # everything alive in our groups but the seats
    label_groups | grep -v '/seat' | while read -r group; do
        cat "$group/cgroup.procs" 2>/dev/null
    done | sort -u | count
}

holtd_children() { # direct children, zombies too; without seats
    echo $(($(cat "/proc/$holtd_pid/task"/*/children | wc -w) - $(seats)))
}

snapshot_host() { # one "WHAT COUNT" a line
    local what
    for what in host_mounts loop_devices state_files volume_files cgroups sandbox_processes holtd_children \
        holtd_fds; do
        echo "$what $($what)"
    done
}

# Warm sandboxes are part of every count, so counts are compared while all of them are there.
pool_is_full() {
    curl -sS --unix-socket "$tmp/run/holt.sock" http://holt/metrics |
        awk '$1 == "holt_pool_ready" { ready = $2 } $1 == "holt_pool_size" { size = $2 }
            END { exit size == "" || ready < size }'
}

# No count is higher. It may be lower: BEFORE may have had a connection in it that was about to end.
is_no_more_than() { # is_no_more_than BEFORE NOW
    paste -d ' ' <(echo "$1") <(echo "$2") | awk '$4 > $2 { more = 1 } END { exit more }'
}

# settle BEFORE: waits until snapshot_host says no more than it said in BEFORE.
settle() {
    local before=$1 now end=$((SECONDS + settle_seconds))
    now=$(snapshot_host)
    until pool_is_full && now=$(snapshot_host) && is_no_more_than "$before" "$now"; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "left behind (before, then now):"
            diff <(echo "$before") <(echo "$now")
            return 1
        fi
        sleep 0.1
    done
}

# The same, taken when the pool is full and the daemon at rest: twice equal in a row.
snapshot_at_rest() {
    local before now end=$((SECONDS + settle_seconds))
    while [ "$SECONDS" -lt "$end" ]; do
        before=$(snapshot_host)
        sleep 0.3
        now=$(snapshot_host)
        if [ "$now" = "$before" ] && pool_is_full; then
            echo "$now"
            return
        fi
    done
    fail "the daemon never came to rest"
}

# Runs a claim once for each runtime; $runtime is what `holt run --runtime` takes.
runtimes=(native bwrap)
claim_each() { # claim_each NAME
    for runtime in "${runtimes[@]}"; do
        claim "$1" "$runtime"
    done
}

sandboxed() { # sandboxed COMMAND...: in the runtime of the claim
    holt run --runtime "$runtime" -- "$@"
}

# --- probes -----------------------------------------------------------------------------------

# Compiles tests/system/attack/NAME.c, static, to $tmp/NAME.
compile() { # compile NAME...
    local name
    for name; do
        ${CC:-cc} -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -static -o "$tmp/$name" "$here/attack/$name.c" || exit 1
    done
}

probe() { # probe NAME ARGUMENTS...: in the runtime of the claim; the program comes by stdin
    local name=$1
    shift
    sandboxed sh -c 'cat >/tmp/probe && chmod +x /tmp/probe && exec /tmp/probe "$@"' sh "$@" \
        <"$tmp/$name"
}

# A probe that goes on until release_held; what it prints is in $tmp/held.out.
hold_probe() { # hold_probe NAME ARGUMENTS...
    local name=$1 size
    size=$(stat -c %s "$tmp/$name")
    shift
    hold "head -c $size >/tmp/probe && chmod +x /tmp/probe && exec /tmp/probe $*"
    cat "$tmp/$name" >&8
    eventually test -s "$tmp/held.out"
}

hold() { # hold SCRIPT: runs it in a sandbox in the background; its stdin stays open as 8 here
    rm -f "$tmp/held.in" "$tmp/held.out"
    mkfifo "$tmp/held.in"
    holt run --runtime "$runtime" -- sh -c "$1" <"$tmp/held.in" >"$tmp/held.out" 2>&1 8>&- &
    held_pid=$!
    exec 8>"$tmp/held.in"
}

release_held() { # the status is that of what was held
    exec 8>&-
    wait "$held_pid"
}
