// Counts in a file store until it is killed. Prints each acknowledged number.
import { fileStore } from '../../src/adapters/node/index.js';
import { systemClock, systemRandom } from '../../src/runtime/clock.js';
import { updateGroup } from '../../src/store/store.js';

const [path = ''] = process.argv.slice(2);
const store = fileStore(path);
const text = 'x'.repeat(2_000);
const WEEK_MS = 604_800_000;
for (;;) {
  const n = await updateGroup({ store, group: 'g', clock: systemClock, random: systemRandom }, ['n'], ({ values }) => {
    const next = Number(values.n ?? 0) + 1;
    const changes = { n: { value: String(next), ttlMs: WEEK_MS }, text: { value: `${text}${next}`, ttlMs: WEEK_MS } };
    return { changes, result: next };
  });
  process.stdout.write(`${n}\n`);
}
