import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import { dimensionsFor, renderMedia } from '../../src/sandbox/media/index.js';
import { buildBin, runSpawned, spawnCli } from './spawn-cli.js';

/** The whole campaign by `npm run campaign:batch`; a small one with the other tests. */
const { rows, kills } = process.env.CAMPAIGN === 'full' ? { rows: 60, kills: 12 } : { rows: 12, kills: 3 };
const sandbox = createSandbox({ jobDurationMs: { image: 300, video: 600 }, limits: 'off', balanceTokens: 10_000 });
const folder = mkdtempSync(join(tmpdir(), 'gen-cli-'));
let url = '';
let close = async () => {};
beforeAll(async () => {
  await buildBin();
  const server = await sandbox.listen();
  url = server.url;
  close = () => server.close();
}, 240_000);
afterAll(async () => {
  await close();
  rmSync(folder, { recursive: true, force: true });
});

it(`${rows} rows and ${kills} SIGKILLs: ${rows} jobs, ${rows} files, ${rows} charges`, async () => {
  const size = dimensionsFor({ kind: 'image' });
  writeFileSync(
    join(folder, 'fox.png'),
    renderMedia({ kind: 'image', ...size, seed: 1, label: 'fox', prompt: 'a fox' }),
  );
  const lines = Array.from({ length: rows }, (_, at) => {
    if (at % 6 === 0) return { id: `clip-${at}`, prompt: `clip ${at}`, duration: 4, resolution: '480p' };
    const references = at % 5 === 0 ? { reference_upload_ids: ['fox.png'] } : {};
    return { call: 'images', params: { prompt: `picture ${at}`, ...references } };
  });
  writeFileSync(join(folder, 'prompts.jsonl'), lines.map((line) => JSON.stringify(line)).join('\n'));
  const env = { GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: url };
  const words = ['batch', 'prompts.jsonl', '--out', 'out/', '--concurrency', '4', '--poll', '100ms'];
  for (let killed = 0; killed < kills; killed++) {
    const seen = sandbox.requests.length;
    const run = spawnCli(words, { env, cwd: folder });
    // Somewhere between its first request and its end.
    await expect.poll(() => sandbox.requests.length - seen, { timeout: 10_000, interval: 5 }).toBeGreaterThan(0);
    await pause((killed * 137) % 400);
    run.kill();
    expect((await run.ended).code).toBe(null);
  }
  const { code, stdout } = await runSpawned([...words, '--json'], { env, cwd: folder });
  const last = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  const charges = sandbox.ledger().entries.filter(({ type }) => type === 'charge');
  const files = readdirSync(join(folder, 'out')).filter((name) => /\.(png|mp4)$/.test(name));
  expect({ code, jobs: sandbox.jobs.length, files: files.length, charges: charges.length }).toEqual({
    code: 0,
    jobs: rows,
    files: rows,
    charges: rows,
  });
  expect(last.report).toMatchObject({ rows, completed: rows, tokens: sandbox.ledger().spentTokens });
  if (process.env.CAMPAIGN === 'full')
    console.log({ rows, kills, posts: createsOf(), requests: sandbox.requests.length });
}, 120_000);

/** Creates that were sent, repeated ones too. */
function createsOf(): number {
  return sandbox.requests.filter(({ method, path }) => method === 'POST' && /images|videos/.test(path)).length;
}
