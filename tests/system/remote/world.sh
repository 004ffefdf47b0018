# shellcheck shell=bash
# A small template and a sandbox with a history, for tests of archives. Sourced behind lib.sh.

python=/usr/bin/python3 # Debian's own
bundle() { "$python" "$here/host/bundle.py" "$@"; }

tree=$tmp/tree
mkdir -p "$tree/bin" "$tree/etc" "$tree/data" "$tree/tmp"
cp /bin/busybox "$tree/bin/"
for name in sh cat chmod chown dd env find ln mkdir mv rm sleep touch true sha256sum; do ln -s busybox "$tree/bin/$name"; done
chmod 1777 "$tree/tmp"
echo removed >"$tree/data/removed"
tar -C "$tree" --numeric-owner -cf "$tmp/root.tar" .

field() { holt inspect "$1" | "$python" -c "import json,sys; print(json.load(sys.stdin).get('$2', ''))"; }

# tree_of ID: prints all of its files with their checksums.
tree_of() {
    local mark=$((RANDOM * 32768 + RANDOM + 100000)) pid
    holt exec -d "$1" -- sleep "$mark" >/dev/null
    eventually pgrep -fx "sleep $mark"
    pid=$(pgrep -fx "sleep $mark")
    bundle tree "/proc/$pid/root"
    kill "$pid"
}

# Two turns, a named snapshot and present files that differ from all of them.
make_work() { # make_work NAME [FLAGS OF CREATE...]
    local name=$1
    shift
    holt create --name "$name" --template tiny "$@" >/dev/null
    holt exec "$name" -- sh -c 'mkdir -p /work/d && cd /work && echo 1 >a && ln a b && ln -s a link && chmod 640 a &&
        dd if=/dev/urandom of=big bs=64k count=40 2>/dev/null && rm /data/removed && chown 1000:1001 d'
    holt turn "$name" >/dev/null
    holt exec "$name" -- sh -c 'cd /work && echo 2 >a && rm b && mv big d/'
    holt snapshot "$name" named >/dev/null
    holt exec "$name" -- sh -c 'cd /work && echo 3 >a && touch -d @1 d/big && mkdir c'
    holt turn "$name" >/dev/null
    holt exec "$name" -- sh -c 'echo 4 >/work/a'
}

# Wherever the sandbox is, it is whole.
work_is_whole() {
    case $(field work state) in
    deep-paused) holt resume work ;;
    stopped) holt start work ;;
    active) ;;
    *) fail "state $(field work state)" ;;
    esac
    equal "$(cat "$tmp/now")" "$(tree_of work)" files
    equal "turn-0001 named turn-0002 turn-0003" "$(holt snapshots -q work | paste -sd' ')" snapshots
    equal "" "$(find "$tmp/state/templates" -mindepth 1 -maxdepth 1 -name '.*' ! -name '.host-*')" "what is left"
}
