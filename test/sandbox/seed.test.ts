import { expect, test } from 'vitest';
import { setUp } from './plain-client.js';

/** Ids, durations and the bytes of a file. */
async function run(seed: number | undefined) {
  const client = setUp({ seed, jobDurationMs: [1000, 9000] });
  const jobs = [await client.create('/v1/images'), await client.create('/v1/images')];
  const upload = await client.upload('IMAGE');
  await client.sandbox.advance(10_000);
  const { body } = await client.call('GET', `/v1/jobs/${jobs[0].id}/output`);
  const lengths = client.sandbox.jobs.map((job) => Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? ''));
  return { ids: [...jobs.map(({ id }) => id), upload], lengths, body };
}

test('the same seed gives the same ids, durations and bytes; another seed gives others', async () => {
  const first = await run(7);
  expect(await run(7)).toEqual(first);
  const other = await run(8);
  expect(other.ids).not.toEqual(first.ids);
  expect(other.lengths).not.toEqual(first.lengths);
  expect(other.body).not.toEqual(first.body);
});

test('default sandboxes have different ids (once, all began with the same job)', async () => {
  const [first, second] = [await run(undefined), await run(undefined)];
  expect(new Set([...first.ids, ...second.ids]).size).toBe(6);
});

test('a sandbox tells its seed, so that a failing run can be repeated', async () => {
  const client = setUp();
  const { id } = await client.create('/v1/images');
  expect((await setUp({ seed: client.sandbox.seed }).create('/v1/images')).id).toBe(id);
});

test('a reset repeats the ids of a given seed, and draws a fresh one otherwise', async () => {
  for (const [seed, isSame] of [
    [1, true],
    [undefined, false],
  ] as const) {
    const client = setUp({ seed });
    const { id } = await client.create('/v1/images');
    client.sandbox.reset();
    expect((await client.create('/v1/images')).id === id).toBe(isSame);
  }
});
