#!/bin/sh
# Creates an image, and a video that starts with it. Needs GEN_API_KEY and GEN_BASE_URL. `npx gen-client sandbox` prints values to
# try.
set -eu

npx gen-client image "a paper boat, watercolor" --ratio 16:9 --out boat.png

# Run this twice: the same key returns the same video, without a second charge.
npx gen-client video "the boat sails off" --first-frame boat.png --duration 5 \
  --idempotency-key "boat-$(date +%F)" --out boat.mp4 --force --json > boat.json

node -p 'const { job } = JSON.parse(fs.readFileSync("boat.json", "utf8")); `${job.id}: ${job.finalTokenCost} tokens`'
