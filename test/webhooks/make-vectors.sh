#!/bin/sh
# Writes vectors.json with openssl alone, so that the digests are independent of the code under test.
#   sh test/webhooks/make-vectors.sh > test/webhooks/vectors.json
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

vector() { # name secret timestamp, body on stdin
  cat >"$dir/body"
  { printf '%s.' "$3"; cat "$dir/body"; } >"$dir/signed"
  digest=$(openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(printf '%s' "$2" | od -An -v -tx1 | tr -d ' \n')" -r <"$dir/signed" | cut -d' ' -f1)
  body=$(openssl base64 -A <"$dir/body")
  printf '  { "name": "%s", "secret": "%s", "timestamp": "%s", "body": "%s", "digest": "%s" }\n' \
    "$1" "$2" "$3" "$body" "$digest"
}

completed='{"object":"developer_webhook_event","id":"evt_job_1_completed","type":"job.completed","created":"2026-01-02T03:04:05.000Z","data":{"job":{"id":"job_1","status":"completed","providerOutputUrl":"https://gen.test/v1/jobs/job_1/output"}}}'
failed='{ "id": "evt_job_2_failed", "type": "job.failed", "data": { "job": { "id": "job_2", "status": "failed", "errorMessage": "%s" } } }'

{
printf '%s' "$completed" | vector 'an event as documented' 'whsec_5f2b8c' 1767323045
printf '%s\n' "$completed" | vector 'a body that ends in a newline' 'whsec_5f2b8c' 1767323045
printf "$failed" 'Füchse im Nebel 🦊' | vector 'a body in UTF-8' 'whsec_5f2b8c' 1767323046
printf "$failed" "$(printf 'latin-1 \374 and a cut \360\237')" | vector 'a body that is not UTF-8' 'whsec_5f2b8c' 1767323047
{ printf '\357\273\277'; printf '%s' "$completed"; } | vector 'a body with a byte order mark' 'whsec_5f2b8c' 1767323048
printf '%s' "$completed" | vector 'a secret in UTF-8' 'gehéim 🔑' 1767323045
printf '%s' "$completed" | vector 'a secret longer than a block' '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef' 1767323045
printf '%s' "$completed" | vector 'a secret that ends in a space' 'whsec_5f2b8c ' 1767323045
printf '%s' "$completed" | vector 'a timestamp of eleven digits' 'whsec_5f2b8c' 17673230450
} | sed '$!s/$/,/; 1s/^/[\n/; $s/$/\n]/'
