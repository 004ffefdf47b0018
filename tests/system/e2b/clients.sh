# shellcheck shell=bash
# E2B's own clients from npm, below build/. Sourced, also without lib.sh.
e2b_clients=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/build/clients-e2b

# Installs what the lock file lists. The scripts lie beside the packages, because that is where Node.js
# looks for them. Tests that run side by side wait for one of them.
e2b_clients_install() {
    local from file
    from=$(dirname "${BASH_SOURCE[0]}")/../../clients/e2b
    node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || {
        echo "E2B's clients need Node.js 20 or later, and this is $(node --version)"
        return 1
    }
    mkdir -p "$e2b_clients"
    (
        flock 8
        for file in "$from"/*.mjs "$from/package.json"; do
            cmp -s "$file" "$e2b_clients/${file##*/}" || cp "$file" "$e2b_clients/"
        done
        ! cmp -s "$from/package-lock.json" "$e2b_clients/installed" || exit 0
        cp "$from/package-lock.json" "$e2b_clients/"
        cd "$e2b_clients" || exit
        npm ci --ignore-scripts --prefer-offline --fetch-retries 5 --no-audit --no-fund --loglevel error || {
            echo "npm cannot install what tests/clients/e2b/package-lock.json lists: it needs its registry, once"
            exit 1
        }
        cp package-lock.json installed
    ) 8>"$e2b_clients.lock"
}
