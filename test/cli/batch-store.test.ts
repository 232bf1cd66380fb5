import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { S3Double, type S3Fault } from '../storage/s3-double.js';
import { batchOn, cliOnSandbox } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

// `batch --dest`: the files go to a store that speaks S3.

const place = cliOnSandbox();
const { sandbox } = place;
const IMAGE = { call: 'images', model: 'svc-image-fast' };
const FOX = { id: 'fox', ...IMAGE, prompt: 'a fox' };
const { prompts } = batchOn(place);
const DENIED: S3Fault = { method: 'PUT', status: 403, code: 'AccessDenied', always: true };

let store: S3Double;
beforeEach(async () => {
  store = await S3Double.start();
  return () => store.close();
});
const run = (env: Record<string, string>, ...words: string[]) =>
  runCli(['batch', 'prompts.jsonl', '--poll', '100ms', ...words], {
    ...place.options,
    env: {
      ...place.env,
      AWS_ACCESS_KEY_ID: store.account.accessKeyId,
      AWS_SECRET_ACCESS_KEY: store.account.secretAccessKey,
      AWS_ENDPOINT_URL_S3: store.endpoint,
      AWS_REGION: store.region,
      ...env,
    },
  });
const batch = (...words: string[]) => run({}, '--dest', `s3://${store.bucket}/foxes`, ...words);
/** An object that somebody else has put there. */
const occupy = (key: string) => {
  const [bytes, modified] = [Buffer.from('mine'), new Date()];
  store.objects.set(key, { bytes, etag: '"1"', contentType: 'image/png', modified, headers: {} });
};
const kept = () => join(place.folder, 'prompts.store');

it('copies each file once, and keeps its store beside the prompts', async () => {
  prompts(FOX, { ...IMAGE, prompt: 'another' });
  expect(await batch()).toMatchObject({ code: 0, stdout: expect.stringContaining('/foxes/fox.png\n') });
  expect((await batch()).code).toBe(0);
  expect([...store.objects.keys()].sort()).toEqual(['foxes/fox.png', expect.stringMatching(/^foxes\/job_\w+\.png$/)]);
  expect(statSync(kept()).size).toBeGreaterThan(0);
});

describe('before anything is paid', () => {
  it.each([
    [['--dest', 's3://'], {}, '--dest: "s3://" is not a place. Give s3://bucket or s3://bucket/prefix/.'],
    [['--dest', 'https://b/x'], {}, '--dest: "https://b/x" is not a place.'],
    [['--dest', 's3://media'], { AWS_SECRET_ACCESS_KEY: ' ' }, 'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.'],
  ])('%j under %j is refused: %s', async (words, env, message) => {
    prompts(FOX);
    const { code, stderr } = await run(env, ...words);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(sandbox.requests).toEqual([]);
  });

  it.each([
    ['a wrong secret', { AWS_SECRET_ACCESS_KEY: 'wrong' }, 'media'],
    ['a bucket that does not exist', {}, 'nowhere'],
  ])('%s is refused', async (_, env, bucket) => {
    prompts(FOX);
    const { code, stderr } = await run(env, '--dest', `s3://${bucket}/`);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('--dest: ') });
    expect(sandbox.requests).toEqual([]);
  });

  it('credentials that may look and not put are refused', async () => {
    prompts(FOX);
    store.faults.push(DENIED);
    const { code, stderr } = await batch();
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(/--dest: .*AccessDenied/) });
    expect(sandbox.requests).toEqual([]);
  });

  it('credentials that may put and not look are tried by the copy', async () => {
    prompts(FOX);
    for (const method of ['HEAD', 'GET'] as const) store.faults.push({ ...DENIED, method });
    expect((await batch()).code).toBe(0);
    expect([...store.objects.keys()]).toEqual(['foxes/fox.png']);
  });
});

it('an object of another job is kept, its row is not saved, and --force replaces it', async () => {
  prompts(FOX, { ...FOX, id: 'owl' });
  occupy('foxes/fox.png');
  const { code, stdout } = await batch('--concurrency', '1');
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('1 completed, 0 failed, 1 not saved') });
  expect(store.objects.get('foxes/fox.png')?.bytes.toString()).toBe('mine');
  expect((await batch('--force')).code).toBe(0);
  expect(store.objects.get('foxes/fox.png')?.bytes.subarray(1, 4).toString()).toBe('PNG');
  expect(sandbox.jobs).toHaveLength(2);
});

it('a store that refuses while the batch runs stops new rows, and the next run copies what is paid for', async () => {
  prompts(...Array.from({ length: 6 }, (_, at) => ({ ...FOX, id: `fox-${at}`, prompt: `fox ${at}` })));
  store.faults.push({ ...DENIED, conditional: true });
  const { code, stdout, stderr } = await batch('--concurrency', '1');
  expect({ code, stdout, stderr }).toEqual({
    code: 4,
    stdout: expect.stringContaining('1 not saved, 5 not started.'),
    stderr: expect.stringMatching(/Stopped: The store "s3" answers AccessDenied/),
  });
  expect(sandbox.jobs).toHaveLength(1);
  store.faults.length = 0;
  expect((await batch()).code).toBe(0);
  expect({ jobs: sandbox.jobs.length, objects: store.objects.size }).toEqual({ jobs: 6, objects: 6 });
});

it('an object that a killed run has put is known again by its job', async () => {
  prompts(FOX);
  await batch();
  const lines = readFileSync(kept(), 'utf8').trim().split('\n');
  writeFileSync(kept(), `${lines.filter((entry) => !entry.includes('isStored')).join('\n')}\n`);
  const copies = () => store.sent('PUT').filter(({ headers }) => headers['if-match'] === undefined).length;
  const { code, stdout } = await batch('--json');
  expect({ code, existed: JSON.parse(stdout.split('\n')[0] ?? '').stored.existed }).toEqual({ code: 0, existed: true });
  expect({ copies: copies(), jobs: sandbox.jobs.length }).toEqual({ copies: 1, jobs: 1 });
});
