#!/bin/sh
# Whether the server that start.sh has started answers its user, with TLS or without: the health
# check of compose.yaml and Kubernetes. Arguments are further options of valkey-cli.
set -eu
if [ -n "${REDIS_CERTIFICATES:-}" ]; then
  set -- --tls --cacert "$REDIS_CERTIFICATES/ca.crt" "$@"
fi
REDISCLI_AUTH="$REDIS_PASSWORD" valkey-cli --user rejoinder "$@" ping | grep -q PONG
