#!/bin/sh
# Starts the server with one user, `rejoinder`, whose password comes from REDIS_PASSWORD. It goes in
# by standard input and as a hash: it is in no file and in no list of processes. The user has
# Rejoinder's keys and no command that could stop, configure or empty the server, or run a script.
# With REDIS_CERTIFICATES, a folder with tls.crt, tls.key and ca.crt, the server speaks TLS alone.
# Arguments are further options of the server.
set -eu
: "${REDIS_PASSWORD:?set the password of the user rejoinder}"
hash=$(printf %s "$REDIS_PASSWORD" | sha256sum | cut -d ' ' -f 1)
unset REDIS_PASSWORD
if [ -n "${REDIS_CERTIFICATES:-}" ]; then
  set -- --port 0 --tls-port 6379 --tls-auth-clients no \
    --tls-cert-file "$REDIS_CERTIFICATES/tls.crt" --tls-key-file "$REDIS_CERTIFICATES/tls.key" \
    --tls-ca-cert-file "$REDIS_CERTIFICATES/ca.crt" "$@"
fi
exec valkey-server "$(dirname "$0")/redis.conf" "$@" - <<END
user default off
user rejoinder on #$hash resetchannels &rq:* resetkeys ~rejoinder:* ~rq:* +@all -@dangerous -@scripting +info
END
