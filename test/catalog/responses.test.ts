import { describe, expect, it } from 'vitest';
import { extra, type GenClient, ResponseError } from '../../src/index.js';
import characterRegistered from '../fixtures/bodies/character-registered.json' with { type: 'json' };
import createdJob from '../fixtures/bodies/created-job.json' with { type: 'json' };
import jobCompleted from '../fixtures/bodies/job-completed.json' with { type: 'json' };
import jobFailed from '../fixtures/bodies/job-failed.json' with { type: 'json' };
import jobProcessing from '../fixtures/bodies/job-processing.json' with { type: 'json' };
import { BASE_URL, json, rejection, stubbed } from '../transport/support.js';

const { job } = createdJob.data;
const clientWithResponse = (body: unknown) => stubbed(() => json(body)).client;
const create = (body: unknown) =>
  clientWithResponse(body).videos.create({ prompt: 'x' }, { idempotencyKey: 'order-1' });

/** Returns a record's possible envelopes. The first one is documented. */
const envelopes = (noun: string, record: unknown): readonly (readonly [string, unknown])[] => [
  [`data.${noun}`, { success: true, data: { [noun]: record } }],
  ['data', { success: true, data: record }],
  [noun, { [noun]: record }],
  ['the top level', record],
];

describe('a created job', () => {
  it('includes the quote, balance, warnings, and idempotency key', async () => {
    expect(await create(createdJob)).toEqual({
      job,
      quoted_token_cost: 12,
      balance_tokens: 388,
      warnings: [],
      idempotencyKey: 'order-1',
    });
  });

  it.each(envelopes('job', job))('is found in %s', async (_where, body) => {
    expect((await create(body)).job).toEqual(job);
  });

  it.each<[string, string, (client: GenClient) => Promise<unknown>]>([
    ['an image', '/v1/images', ({ images }) => images.create({ prompt: 'x' })],
    ['a video', '/v1/videos', ({ videos }) => videos.create({ prompt: 'x' })],
    ['a character image', '/v1/characters', ({ characters }) => characters.create({ name: 'Ann', prompt: 'x' })],
    ['a character', '/v1/characters', ({ characters }) => characters.register({ name: 'Ann', upload_id: 'u' })],
  ])('rejects an empty response, because %s may have been created', async (_what, path, call) => {
    const { client } = stubbed(() => new Response(null, { status: 200 }), { maxRetries: 0 });
    expect(await rejection(call(client))).toMatchObject({
      name: 'ResponseError',
      message: `POST ${BASE_URL}${path}: the service responded 200 with an empty body`,
    });
  });

  it('retains unknown fields and an unknown status', async () => {
    const strange = { ...job, status: 'dreaming', shiny: { new: [1] } };
    const response = await create({ success: true, data: { job: strange, eta_seconds: 40 } });
    expect(response.job).toEqual(strange);
    expect(extra(response).eta_seconds).toBe(40);
  });

  const NAME = 'video_reference_fallback_omitted_clips';
  it.each([
    ['data.warnings', { data: { job, warnings: [NAME] } }],
    ['data.warning as a string', { data: { job, warning: NAME } }],
    ['data.warning as an object', { data: { job, warning: { code: NAME, message: 'clips left out' } } }],
    ['data.warnings as objects', { data: { job, warnings: [{ name: NAME }] } }],
    ['data.warnings with types', { data: { job, warnings: [{ type: NAME }] } }],
    ['job.warning', { data: { job: { ...job, warning: NAME } } }],
    ['job.warnings', { data: { job: { ...job, warnings: [NAME] } } }],
    ["the body's warnings", { success: true, warnings: [NAME], data: { job } }],
    ["the body's warning", { success: true, warning: NAME, data: { job } }],
    ['several places', { warning: NAME, data: { warnings: [NAME], job: { ...job, warning: { code: NAME } } } }],
  ])('includes the warning from %s', async (_where, body) => {
    expect((await create(body)).warnings).toEqual([NAME]);
  });

  it.each([[null], [''], [7], [{}], [[]], [[null]], [{ message: 5 }]])('ignores the warning %j', async (warning) => {
    expect((await create({ data: { job, warning, warnings: warning } })).warnings).toEqual([]);
  });
});

describe('a missing or invalid required field', () => {
  it.each([
    ['no ID', { data: { job: { status: 'processing' } } }, 'data.job.id'],
    ['an empty ID', { data: { job: { id: '', status: 'processing' } } }, 'data.job.id'],
    ['a numeric ID', { data: { job: { id: 5, status: 'processing' } } }, 'data.job.id'],
    ['no status', { data: { job: { id: 'job_1' } } }, 'data.job.status'],
    ['a null status', { data: { job: { id: 'job_1', status: null } } }, 'data.job.status'],
    ['a string as the job', { data: { job: 'job_1' } }, 'data.job.id'],
    ['null data', { success: true, data: null }, 'data.job.id'],
    ['an array', [], 'data.job'],
    ['a string', 'done', 'data.job'],
    ['a number', 5, 'data.job'],
  ])('causes a ResponseError with its path and endpoint: %s', async (_what, body, path) => {
    const error = await rejection(
      clientWithResponse(JSON.stringify(body)).videos.create({ prompt: 'x' }, { idempotencyKey: 'order-1' }),
    );
    expect(error).toBeInstanceOf(ResponseError);
    expect(error).toMatchObject({ path, method: 'POST', idempotencyKey: 'order-1' });
    const url = `${BASE_URL}/v1/videos`;
    expect(error).toMatchObject({ url, attempts: 1, message: `POST ${url}: the response has no usable "${path}"` });
  });

  it('of a polled job causes a ResponseError', async () => {
    const error = await rejection(clientWithResponse({ data: { job: { id: 'job_1', status: 7 } } }).jobs.get('job_1'));
    expect(error).toMatchObject({ name: 'ResponseError', path: 'data.job.status', method: 'GET' });
    expect((error as ResponseError).message).toContain(`GET ${BASE_URL}/v1/jobs/job_1:`);
  });

  it('of a character causes a ResponseError', async () => {
    const { characters } = clientWithResponse({ data: { character: { name: 'Ann' } } });
    const error = await rejection(characters.register({ name: 'Ann', upload_id: 'u' }));
    expect(error).toMatchObject({ name: 'ResponseError', path: 'data.character.character_id' });
    expect((error as ResponseError).message).toContain(`POST ${BASE_URL}/v1/characters:`);
  });
});

describe('a job', () => {
  it.each([jobProcessing, jobCompleted, jobFailed])('is returned as documented', async (body) => {
    expect(await clientWithResponse(body).jobs.get('job_123')).toEqual(body.data.job);
  });

  it.each(envelopes('job', job))('is found in %s', async (_where, body) => {
    expect(await clientWithResponse(body).jobs.get('job_123')).toEqual(job);
  });
});

it('jobs.get rejects a response about another job', async () => {
  const error = await rejection(clientWithResponse({ data: { job: { ...job, id: 'job_2' } } }).jobs.get('job_123'));
  expect(error).toBeInstanceOf(ResponseError);
  expect(error).toMatchObject({
    message: `GET ${BASE_URL}/v1/jobs/job_123: the response is about another job`,
    method: 'GET',
    url: `${BASE_URL}/v1/jobs/job_123`,
    attempts: 1,
    path: 'data.job.id',
  });
});

describe('a character', () => {
  it('has its ID in the documented field', async () => {
    const response = await clientWithResponse(characterRegistered).characters.register({ name: 'Ann', upload_id: 'u' });
    expect(response).toEqual({ character_id: 'char_123' });
  });

  it.each(envelopes('character', { character_id: 'c', slug: 'ann', status: 'pending' }))(
    'is found in %s',
    async (_where, body) => {
      expect(await clientWithResponse(body).characters.get('ann')).toEqual({
        character_id: 'c',
        slug: 'ann',
        status: 'pending',
      });
    },
  );

  it.each(envelopes('character', { id: 'c', name: 'Ann' }))(
    'with the field `id` has its ID in both fields, in %s',
    async (_where, body) => {
      expect(await clientWithResponse(body).characters.get('c')).toEqual({ character_id: 'c', id: 'c', name: 'Ann' });
    },
  );

  it('is deleted, whatever the response contains', async () => {
    expect(await clientWithResponse({ success: true, data: { deleted: true } }).characters.delete('c')).toEqual({
      deleted: true,
    });
    expect(await stubbed(() => new Response(null, { status: 204 })).client.characters.delete('c')).toEqual({});
  });

  it.each([
    [{ success: true, data: 'deleted' }, { data: 'deleted' }],
    [{ data: false }, { data: false }],
    [['c'], { data: ['c'] }],
    [null, {}],
  ])("is deleted if the response %j isn't an object", async (body, result) => {
    expect(await clientWithResponse(JSON.stringify(body)).characters.delete('c')).toEqual(result);
  });
});

describe('a list without a documented format', () => {
  const records = [{ id: 'a', more: 1 }, { id: 'b' }];
  const formats = (noun: string): (readonly [string, unknown])[] => [
    [`data.${noun}`, { success: true, data: { [noun]: records } }],
    ['data', { success: true, data: records }],
    [noun, { [noun]: records }],
    ['items', { data: { items: records } }],
    ['results', { results: records }],
    ['an array', records],
    ['an object by name', { data: { [noun]: { a: { more: 1 }, b: {} } } }],
  ];
  it.each(
    (['models', 'voices', 'characters'] as const).flatMap((noun) =>
      formats(noun).map((row) => [noun, ...row] as const),
    ),
  )('of %s is found in %s', async (noun, _where, body) => {
    const namespace: { list(): Promise<object> } = clientWithResponse(body)[noun];
    expect(await namespace.list()).toMatchObject({ [noun]: records });
  });

  it('may contain strings as IDs, and retains other fields', async () => {
    const response = await clientWithResponse({ data: { models: ['svc-video-fast'], next: 'page2' } }).models.list();
    expect(response).toEqual({ models: [{ id: 'svc-video-fast' }], next: 'page2' });
  });

  it('is empty if the response has none', async () => {
    for (const body of [{}, { data: null }, null, 'soon', { data: { models: 5 } }]) {
      expect((await clientWithResponse(JSON.stringify(body)).models.list()).models).toEqual([]);
    }
  });
});

describe('a response without a documented format', () => {
  it('is returned without its envelope by `request` and `integrationData`', async () => {
    const body = { success: true, data: { url: 'https://a.test/speech.mp3' } };
    expect(await clientWithResponse(body).request({ method: 'POST', path: '/v1/speech', body: { text: 'x' } })).toEqual(
      body.data,
    );
    expect(await clientWithResponse({ data: [1, 2] }).request({ method: 'GET', path: '/v1/other' })).toEqual([1, 2]);
    expect(await clientWithResponse({ version: 1 }).models.integrationData()).toEqual({ version: 1 });
  });
});
