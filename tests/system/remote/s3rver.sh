# shellcheck shell=bash
# npm's s3rver, installed from its lock file below build/, as a server of the test. Sourced behind lib.sh.

clients=$here/../../build/clients-s3
server_pid=
port=

prepare() {
    mkdir -p "$clients"
    cp "$here"/../clients/s3/*.mjs "$here/../clients/s3/package.json" "$clients/"
    if ! cmp -s "$here/../clients/s3/package-lock.json" "$clients/installed"; then
        cp "$here/../clients/s3/package-lock.json" "$clients/"
        (cd "$clients" && npm ci --ignore-scripts --prefer-offline --fetch-retries 5 --no-audit --no-fund --loglevel error) || return
        cp "$clients/package-lock.json" "$clients/installed"
    fi
}

# Its tokens of pages are made with DES, which OpenSSL 3 has no more without its legacy provider.
start_server() { # start_server [FLAGS...]: on $port, or on a new one that it sets
    local line
    mkfifo "$tmp/server"
    node --openssl-legacy-provider "$clients/node_modules/s3rver/bin/s3rver.js" --directory "$tmp/objects" \
        --address 127.0.0.1 --port "${port:-0}" --configure-bucket holt-test "$@" >"$tmp/server" 2>"$tmp/server.log" &
    server_pid=$!
    exec 7<"$tmp/server"
    while IFS= read -r line <&7; do
        port=${line##*:}
        case $line in *listening*) break ;; esac
    done
    cat <&7 >"$tmp/requests" &
    rm "$tmp/server"
}

stop_server() {
    [ -z "$server_pid" ] || kill "$server_pid"
    wait "$server_pid" 2>/dev/null
    server_pid=
}
