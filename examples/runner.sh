#!/bin/sh
# An external runner with nothing but curl: takes runs of one pool, does them, and reports.
# ROPEWALK_TOKEN=… runner.sh URL POOL
set -eu
runs="$1/api/v1/workflow/runs" pool="$2"

post() {
    curl --silent --show-error --fail-with-body --max-time 90 --header "Authorization: Bearer $ROPEWALK_TOKEN" \
        --header "Content-Type: application/json" --data "$2" "$runs/$1"
}

field() { # the text of a field that has no quotes in it
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

while :; do
    answer=$(post lease "{\"pool\":\"$pool\",\"runnerId\":\"sh\",\"waitSeconds\":30}") || {
        echo "$1 gives no runs of pool $pool: $(printf %s "$answer" | field detail)" >&2
        echo "if it is for the key: ROPEWALK_TOKEN must be of one with the role runner and the pool $pool" >&2
        exit 1
    }
    run=$(printf %s "$answer" | field runId) token=$(printf %s "$answer" | field leaseToken)
    [ -n "$run" ] || continue
    node=$(printf %s "$answer" | field node) # the work goes here; past two minutes, post $run/heartbeat in between
    post "$run/complete" "{\"leaseToken\":\"$token\",\"output\":{\"done\":\"$node\"}}" >/dev/null
done
