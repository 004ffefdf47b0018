# shellcheck shell=bash
# A registry on loopback with images of two layers, for tests of pulls. Sourced, after lib.sh.
registry_pid=

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_registry() { # start_registry [HTPASSWD]: sets $registry
    local auth=''
    registry=127.0.0.1:$(free_port)
    [ $# -eq 0 ] || auth="auth: {htpasswd: {realm: test, path: $1}}"
    cat >"$tmp/registry.yml" <<EOF
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: $tmp/registry}, delete: {enabled: true}}
http: {addr: $registry}
$auth
EOF
    docker-registry serve "$tmp/registry.yml" >"$tmp/registry.log" 2>&1 &
    registry_pid=$!
    until curl -s -o "$tmp/answer" "http://$registry/v2/"; do holtd_nap; done
}

holtd_nap() { read -r -t 0.05 <> <(:) || true; }

stop_registry() {
    [ -z "$registry_pid" ] || kill "$registry_pid"
    wait "$registry_pid" 2>/dev/null
    registry_pid=
}

# make_layout DIR WORD: an OCI layout of busybox and a second layer with WORD, as skopeo reads it
make_layout() {
    /usr/bin/python3 "$here/image/layout.py" "$1" "$2"
}
