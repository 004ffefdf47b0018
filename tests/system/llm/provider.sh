# shellcheck shell=bash
# For tests that need a provider of models: upstream.mjs on this machine's loopback. Sourced after lib.sh.

upstreams=()

end_with_upstreams() { # the status is that of the test
    local status=$?
    [ ${#upstreams[@]} -eq 0 ] || kill "${upstreams[@]}"
    (exit "$status")
    cleanup
}
trap end_with_upstreams EXIT

start_upstream() { # start_upstream LOG [FLAGS...]: sets $port and $upstream_pid
    : >"$1"
    node "$here/llm/upstream.mjs" "${@:2}" >"$1" 2>&1 </dev/null &
    upstream_pid=$!
    upstreams+=("$upstream_pid")
    until grep -q '^listening' "$1"; do
        kill -0 "$upstream_pid" || fail "$(cat "$1")"
        sleep 0.05
    done
    port=$(awk '/^listening/ { print $2 }' "$1")
}

# A key that no search can find by accident.
make_key() { echo "real-key-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"; }

# The models `claude` and `gpt`, both of the upstream at $port, with the key in the file $1.
models_of_upstream() { # models_of_upstream KEY_FILE
    cat <<END_OF_MODELS
{"providers": [{"name": "a", "kind": "anthropic", "url": "http://127.0.0.1:$port", "keyFile": "$1"},
               {"name": "o", "kind": "openai", "url": "http://127.0.0.1:$port", "keyFile": "$1"}],
 "models": [{"name": "claude", "provider": "a", "model": "claude-test"},
            {"name": "gpt", "provider": "o", "model": "gpt-test"}]}
END_OF_MODELS
}
