import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import { ensureBuilt } from '../support/build.js';
import { seeded } from '../support/seeded.js';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.js';
import { FOX_PNG } from './cli-on-sandbox.js';
import { spawnCli } from './spawn-cli.js';

/** `npm run campaign -- batch` runs everything. Set SEED to use a different seed. CI runs a small part. */
const IS_FULL = process.env.CAMPAIGN === 'full';
const { rows, kills, fullDisks } = IS_FULL
  ? { rows: 60, kills: 18, fullDisks: 6 }
  : { rows: 8, kills: 2, fullDisks: 1 };
const SEED = Number(process.env.SEED ?? 1);
const CONCURRENCY = 4;
const ARGS = ['batch', 'prompts.jsonl', '--out', 'out/', '--concurrency', `${CONCURRENCY}`, '--poll', '100ms'];
/** Free disk space: too little for the store, or for a file. */
const FREE_BYTES = [0, 24 * 1024];

const sandbox = createSandbox({ jobDurationMs: { image: 300, video: 600 }, limits: 'off', balanceTokens: 10_000 });
const random = seeded(SEED);
const folder = mkdtempSync(join(tmpdir(), 'gen-cli-'));
let url = '';
let close = async () => {};
let disk: SmallDisk | undefined;
beforeAll(async () => {
  await ensureBuilt();
  const server = await sandbox.listen();
  url = server.url;
  close = () => server.close();
  mkdirSync(join(folder, 'out'));
  disk = mountSmallDisk(join(folder, 'out'), 32 * 1024 * 1024);
  if (IS_FULL && disk === undefined) throw new Error('The campaign fills a disk. Run it as root.');
}, 240_000);
afterAll(async () => {
  await close();
  disk?.unmount();
  rmSync(folder, { recursive: true, force: true });
});

/** A row of the prompts file. */
interface PromptRow {
  readonly id?: string;
  readonly call: 'images' | 'videos';
  readonly prompt: string;
  readonly [param: string]: unknown;
}
const futureRows = Array.from({ length: rows }, (_, at): PromptRow => {
  if (at % 6 === 0) return { id: `clip-${at}`, call: 'videos', prompt: `clip ${at}`, duration: 4, resolution: '480p' };
  const references = at % 5 === 0 ? { reference_upload_ids: ['fox.png'] } : {};
  return { call: 'images', prompt: `picture ${at}`, ...references };
});
/** The file grows between runs, so that each run has work to do. */
const prompts: PromptRow[] = [];
const add = (count: number) => void prompts.push(...futureRows.splice(0, count));
const writePrompts = () =>
  writeFileSync(join(folder, 'prompts.jsonl'), prompts.map((row) => JSON.stringify(row)).join('\n'));
const env = () => ({ GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: url });
const start = () => spawnCli(ARGS, { env: env(), cwd: folder });
const rowsWithoutJob = () => prompts.filter(({ prompt }) => !sandbox.jobs.some((job) => job.prompt === prompt));
const files = () => readdirSync(join(folder, 'out')).filter((name) => /\.(png|mp4)$/.test(name));
const jobsWithoutFile = () => sandbox.jobs.length - files().length;
const pickRandom = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];

/** Edits one unpaid row, moves another, and adds rows until this many are unpaid. Returns the number of edited rows. */
function edit(unpaidRows: number): number {
  const changed = pickRandom(rowsWithoutJob());
  if (changed) prompts[prompts.indexOf(changed)] = { ...changed, prompt: `${changed.prompt}, edited` };
  prompts.push(...prompts.splice(Math.floor(random() * prompts.length), 1));
  add(Math.max(0, unpaidRows - rowsWithoutJob().length));
  writePrompts();
  return changed ? 1 : 0;
}

/** Kills a run at a random moment after its first request. Returns false if it had already ended. */
async function kill(): Promise<boolean> {
  const requestsBefore = sandbox.requests.length;
  const run = start();
  await expect
    .poll(() => sandbox.requests.length - requestsBefore, { timeout: 20_000, interval: 5 })
    .toBeGreaterThan(0);
  await pause(random() * 500);
  run.kill();
  const { code } = await run.ended;
  // Let the service finish a request in flight.
  await pause(50);
  return code === null;
}

/** Runs the batch on a full disk. It must stop and pay only for creates in flight. */
async function runOnFullDisk(smallDisk: SmallDisk): Promise<void> {
  smallDisk.fill(pickRandom(FREE_BYTES) ?? 0);
  const jobsBefore = jobsWithoutFile();
  const startMs = Date.now();
  const { code, stdout, stderr } = await start().ended;
  // The process must not wait for failed writes.
  expect(Date.now() - startMs).toBeLessThan(60_000);
  expect(stderr).toMatch(/no space left|disk is full/);
  expect(code).toBeGreaterThan(0);
  // If the store can't be opened, the batch ends before the first row.
  expect(stdout).toMatch(/^$|[1-9]\d* (failed|not started)/);
  expect(jobsWithoutFile() - jobsBefore).toBeLessThanOrEqual(CONCURRENCY);
  smallDisk.empty();
}

it('creates one job, file, and charge per row despite SIGKILLs, full disks, and edits', async () => {
  writeFileSync(join(folder, 'fox.png'), FOX_PNG);
  // Slow creates and lost responses, so that kills affect them, too.
  for (const path of ['/v1/images', '/v1/videos']) {
    sandbox.faults.add({ match: { method: 'POST', path }, commitThenDrop: true, probability: 0.2 });
    sandbox.faults.add({ match: { method: 'POST', path }, latencyMs: 150, probability: 0.5 });
  }
  const totals = { kills: 0, fullDisks: 0, edits: 0 };
  const roundsPerFullDisk = Math.ceil(kills / fullDisks);
  for (let round = 0; round < kills; round++) {
    if (disk && round % roundsPerFullDisk === 0) {
      totals.edits += edit(CONCURRENCY + 2);
      await runOnFullDisk(disk);
      totals.fullDisks += 1;
    }
    totals.edits += edit(3);
    if (await kill()) totals.kills += 1;
  }
  add(futureRows.length);
  writePrompts();
  expect(totals.kills).toBeGreaterThanOrEqual(kills / 2);
  const { code, stdout } = await spawnCli([...ARGS, '--json'], { env: env(), cwd: folder }).ended;
  const { report } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  const charges = sandbox.ledger().entries.filter(({ type }) => type === 'charge');
  const counts = { jobs: sandbox.jobs.length, files: files().length, charges: charges.length };
  expect({ code, ...counts }).toEqual({ code: 0, jobs: rows, files: rows, charges: rows });
  expect(report).toMatchObject({ rows, completed: rows, tokens: sandbox.ledger().spentTokens });
  if (IS_FULL)
    console.log({ seed: SEED, rows, ...totals, creates: createCount(), requests: sandbox.requests.length, ...report });
}, 400_000);

/** Returns the number of creates sent, including retries. */
function createCount(): number {
  return sandbox.requests.filter(({ method, path }) => method === 'POST' && /images|videos/.test(path)).length;
}
