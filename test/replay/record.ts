// npx node --import ./scripts/typescript.mjs test/replay/record.ts: records this version's data in engines and queues. Run it
// once per release. Earlier versions' files never change.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { recordAll } from './recordings.js';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
const folder = fileURLToPath(new URL('../fixtures/replay/', import.meta.url));
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}${version}.json`, `${JSON.stringify(await recordAll(version), null, 1)}\n`);
