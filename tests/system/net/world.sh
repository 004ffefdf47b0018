# shellcheck shell=bash
# For every tests/system/net/*_test: the test moves to a network namespace of its own, without a way
# out; all other hosts are in a second one. Sourced, never run. Sources lib.sh.
#
#   . "$(dirname "$0")/world.sh"
#   world_start            the hosts of world.py, and the daemon's name server
#   start_holtd ...
#   sent WORDS             whether the hosts have seen a line with these words
if [ "${HOLT_NET_TEST:-}" != own ]; then
    HOLT_NET_TEST=own exec unshare --net --mount --propagation private "$0" "$@"
fi
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
world_pid=
world_keeper=

# The addresses are public ones, because private ones are refused; no packet leaves the namespaces.
world_start() {
    local line
    mkdir "$tmp/world"
    mkfifo "$tmp/world/ready"
    ip link set lo up
    unshare --net sleep infinity &
    world_keeper=$!
    eventually world_is_apart
    ip link add veth-out type veth peer name veth-in netns "$world_keeper"
    ip address add 93.184.0.1/24 dev veth-out
    ip -6 address add 2606:2800:1::1/64 dev veth-out nodad
    ip link set dev veth-out up
    ip route add default via 93.184.0.2
    in_world ip link set lo up
    in_world ip address add 93.184.0.2/24 dev veth-in
    in_world ip address add 93.184.0.53/24 dev veth-in
    in_world ip -6 address add 2606:2800:1::2/64 dev veth-in nodad
    in_world ip link set dev veth-in up
    ip -6 route add default via 2606:2800:1::2
    for line in 93.184.216.34 93.184.216.35 93.184.216.36 93.184.216.37 10.1.2.3 169.254.169.254; do
        in_world ip address add "$line/32" dev lo
    done
    in_world ip -6 address add 2606:2800::34/128 dev lo
    in_world ip -6 address add 2606:2800::66/128 dev lo
    printf 'nameserver 93.184.0.53\n' >"$tmp/resolv.conf"
    mount --bind "$tmp/resolv.conf" "$(readlink -f /etc/resolv.conf)" || exit 1
    nsenter --net="/proc/$world_keeper/ns/net" python3 "$here/net/world.py" "$tmp/world" >"$tmp/world/ready" 2>"$tmp/world/err" &
    world_pid=$!
    read -r line <"$tmp/world/ready"
    [ "$line" = ready ] || { cat "$tmp/world/err"; exit 1; }
}
world_is_apart() { [ "$(readlink "/proc/$world_keeper/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
in_world() { nsenter --net="/proc/$world_keeper/ns/net" "$@"; }

world_stop() { # keeps the status, with which cleanup ends the test
    local status=$?
    kill "$world_pid" "$world_keeper" 2>/dev/null
    wait "$world_pid" "$world_keeper" 2>/dev/null
    return "$status"
}
trap 'world_stop; cleanup' EXIT

# From here on `sent` looks at new lines only.
world_mark() { wc -l <"$tmp/world/world.log" >"$tmp/world/mark"; }
sent() { tail -n "+$(($(cat "$tmp/world/mark" 2>/dev/null || echo 0) + 1))" "$tmp/world/world.log" | grep -F -- "$*" >/dev/null; }
not_sent() { ! sent "$@" || fail "was sent: $*"; }
