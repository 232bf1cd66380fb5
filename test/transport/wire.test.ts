// Runs the wire-format cases of test/fixtures/wire.json on the current Node. `npm run test:runtimes` runs them on every other
// runtime.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Row {
  readonly name: string;
}

const rows: readonly Row[] = JSON.parse(readFileSync(new URL('../fixtures/wire.json', import.meta.url), 'utf8'));
const path = '../runtimes/scenario.mjs';
const { runWire }: { runWire(row: Row): Promise<void> } = await import(path);

test.each(rows.map((row) => [row.name, row] as const))('%s', async (_name, row) => {
  await expect(runWire(row)).resolves.toBeUndefined();
});
