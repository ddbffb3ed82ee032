#!/usr/bin/env bash
# Starts a throw-away PostgreSQL on loopback and prints its URL; `postgres.sh stop` ends it.
#
#   PLUMBLINE_TEST_POSTGRES=$(.ci/postgres.sh) cargo test -p plumbline-store
#
# The cluster lives in $PLUMBLINE_PG_DIR (default: a folder under the temporary directory) and listens on
# $PLUMBLINE_PG_PORT (default 55432). Durability is off: it holds nothing worth keeping.
set -euo pipefail
dir=${PLUMBLINE_PG_DIR:-${TMPDIR:-/tmp}/plumbline-postgres}
port=${PLUMBLINE_PG_PORT:-55432}

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true)
if [ -z "$bin" ] && ! command -v initdb >/dev/null; then
    (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql) >&2
    bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
fi
[ -n "$bin" ] && PATH="$bin:$PATH"

# PostgreSQL refuses to run as root; its package made a user for it.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then
        (cd / && setpriv --reuid=postgres --regid=postgres --init-groups env PATH="$PATH" "$@")
    else
        "$@"
    fi
}

if [ "${1:-start}" = stop ]; then
    as_postgres pg_ctl -D "$dir" -m immediate stop >&2
    exit
fi

if [ ! -f "$dir/PG_VERSION" ]; then
    mkdir -p "$dir"
    [ "$(id -u)" = 0 ] && chown postgres "$dir"
    as_postgres initdb -D "$dir" -U plumbline -A trust -E UTF8 --locale=C >/dev/null
fi
if ! as_postgres pg_ctl -D "$dir" status >/dev/null; then
    as_postgres pg_ctl -D "$dir" -w -l "$dir/log" \
        -o "-h 127.0.0.1 -p $port -k $dir -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200" \
        start >&2
fi
echo "postgres://plumbline@127.0.0.1:$port/postgres"
