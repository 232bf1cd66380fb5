// What an activity answers to a run: where the rate limit is full, where a file cannot be copied, and where nothing is right.
import { expect, it, vi } from 'vitest';
import { createActivities } from '../../src/adapters/durable/index.js';
import type { OutputDestination } from '../../src/adapters/storage/index.js';
import { ConnectionError, GenError } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const CREATE = { call: 'videos', params: { prompt: 'a fox' }, key: 'run-1', model: null };
const LATER = { type: 'failed', failure: { kind: 'full', retryAfterMs: 7_000 } };

/** Activities on a sandbox, with the places that the line of all runs gives. */
function setup(places: (retryAfterMs: number | undefined) => Promise<number>) {
  const sandbox = createSandbox({ clock: 'manual' });
  const client = sandbox.client();
  const placeOf = vi.spyOn(client, 'placeOf').mockImplementation((_lane, _key, retryAfterMs) => places(retryAfterMs));
  const refuse = (retryAfterS: number) =>
    sandbox.faults.add({ match: { method: 'POST' }, status: 429, retryAfterS, times: 1 });
  return { sandbox, client, placeOf, refuse, activities: createActivities(client) };
}

it('a create whose place comes later is not sent, and says when it comes', async () => {
  const { sandbox, activities, placeOf } = setup(async () => 7_000);
  expect(await activities.create(CREATE)).toEqual({
    ...LATER,
    failure: {
      ...LATER.failure,
      error: { name: 'RateLimitError', message: 'The rate limit is full. The create waits for its place.' },
    },
  });
  expect(sandbox.requests).toEqual([]);
  expect(placeOf.mock.calls).toEqual([['videos.create', 'run-1', undefined]]);
});

it('a run that has waited for its place is not asked to wait again', async () => {
  const { sandbox, activities, placeOf } = setup(async () => 7_000);
  expect(await activities.create({ ...CREATE, isPlaced: true })).toMatchObject({ type: 'job' });
  expect(sandbox.jobs).toHaveLength(1);
  expect(placeOf).not.toHaveBeenCalled();
});

it('only creates of videos stand in the line', async () => {
  const { activities, placeOf } = setup(async () => 7_000);
  expect(await activities.create({ ...CREATE, call: 'images' })).toMatchObject({ type: 'job' });
  expect(placeOf).not.toHaveBeenCalled();
});

it('a create that meets a 429 gets a place, not before the service may be asked again', async () => {
  const { activities, placeOf, refuse } = setup(async (retryAfterMs) => (retryAfterMs === undefined ? 0 : 7_000));
  refuse(5);
  expect(await activities.create(CREATE)).toMatchObject(LATER);
  expect(placeOf.mock.calls.at(-1)).toEqual(['videos.create', 'run-1', 5_000]);
});

it('a create that fails in another way gets no place', async () => {
  const { sandbox, activities, placeOf } = setup(async () => 0);
  sandbox.faults.add({ match: { method: 'POST' }, status: 422, times: 1 });
  expect(await activities.create(CREATE)).toMatchObject({ type: 'failed', failure: { kind: 'refused' } });
  expect(placeOf).toHaveBeenCalledTimes(1);
});

it('a line whose store is away holds no create back, and the rate limit says when to come again', async () => {
  const away = setup(async () => Promise.reject(new ConnectionError('away')));
  expect(await away.activities.create(CREATE)).toMatchObject({ type: 'job' });
  away.refuse(5);
  expect(await away.activities.create({ ...CREATE, key: 'run-2' })).toMatchObject({
    failure: { kind: 'full', retryAfterMs: 5_000 },
  });
});

it('a line that is set up wrongly fails the activity', async () => {
  const { activities } = setup(async () => Promise.reject(new GenError('wrong store')));
  await expect(activities.create(CREATE)).rejects.toThrow('wrong store');
});

it('a copy fails the run by what is wrong, and the activity by what is not ours', async () => {
  const { client, sandbox } = setup(async () => 0);
  const { job } = await client.videos.create({ prompt: 'a fox' });
  await sandbox.advance(600_000);
  const done = await client.jobs.get(job.id);
  const input = JSON.parse(JSON.stringify({ job: done }));
  const copied = (destination: () => OutputDestination) => createActivities(client, { destination }).store(input);
  const refuse = (error: Error) => () => {
    throw error;
  };
  expect(await copied(refuse(new GenError('no such bucket')))).toMatchObject({
    type: 'failed',
    failure: { kind: 'unsent', retryAfterMs: null, error: { name: 'GenError', message: 'no such bucket' } },
  });
  await expect(copied(refuse(new RangeError('a bug')))).rejects.toThrow(new RangeError('a bug'));
  await expect(createActivities(client).store({})).rejects.toThrow('An activity needs job.');
});
