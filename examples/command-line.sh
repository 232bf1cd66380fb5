#!/bin/sh
# A picture, a video that begins with it, and its bill, from a shell. Needs GEN_API_KEY and GEN_BASE_URL;
# `npx gen-client sandbox` prints a pair to try.
set -eu

npx gen-client image "a paper boat, watercolour" --ratio 16:9 --out boat.png

# The same key again takes up the same video: run this twice and it is paid once.
npx gen-client video "the boat sails off" --first-frame boat.png --duration 5 \
  --idempotency-key "boat-$(date +%F)" --out boat.mp4 --force --json > boat.json

node -p 'const { job } = JSON.parse(fs.readFileSync("boat.json", "utf8")); `${job.id}: ${job.finalTokenCost} tokens`'
