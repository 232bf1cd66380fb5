import { channel } from 'node:diagnostics_channel';
import { describe, expect, it } from 'vitest';
import { JOB_ERRORS, REQUEST_ERRORS } from '../../src/errors/codes.js';
import { DEFAULT_VIDEO_MODEL, type GenClient, MODELS, modelCapabilities, type RequestEvent } from '../../src/index.js';
import {
  CHARACTER_WIDTH,
  DOCUMENTED_LIMITS,
  UPLOAD_BYTES,
  USD_PER_TOKEN,
  VIDEO_POLL_MS,
  WEBHOOK_TOLERANCE_S,
} from '../../src/rules/limits.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { isFinal } from '../../src/schemas/job.js';
import { WEBHOOK_EVENT_TYPES } from '../../src/schemas/webhook-event.js';
import type { RequestTrace } from '../../src/transport/events.js';
import uploadCreated from '../fixtures/bodies/upload-created.json' with { type: 'json' };
import endpoints from '../fixtures/endpoints.json' with { type: 'json' };
import fields from '../fixtures/fields.json' with { type: 'json' };
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import limits from '../fixtures/limits.json' with { type: 'json' };
import models from '../fixtures/models.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };
import { BASE_URL, json, type ReceivedRequest, stubbed } from '../transport/support.js';

type Method = (...args: unknown[]) => Promise<unknown>;

/** Calls the method of a row in endpoints.json. */
async function callMethod(
  client: GenClient,
  { call, args = [] }: { readonly call: string; readonly args?: readonly unknown[] },
) {
  const [namespace = '', method = ''] = call.split('.');
  const target: Record<string, Method> = Reflect.get(client, namespace);
  // JSON has no bytes.
  await target[method]?.(...args, ...(call === 'uploads.put' ? [new Uint8Array(1)] : []));
}

/** Creates a response that is valid for every call. */
function respond({ method }: ReceivedRequest): Response {
  if (method === 'HEAD') return new Response(null, { headers: { 'content-length': '1' } });
  return json({ data: { ...uploadCreated.data, job: { id: 'a b', status: 'queued' }, character_id: 'c' } });
}

describe('the model table', () => {
  it('matches the documentation, row by row', () => {
    expect(Object.keys(MODELS)).toEqual(models.map(({ alias }) => alias));
    for (const { alias, ...row } of models) {
      // The documentation doesn't state whether a model is fast.
      const { isFast: _, ...documented } = modelCapabilities(alias) ?? {};
      expect(documented).toEqual(row);
    }
  });

  it('has no other aliases', () => {
    for (const alias of ['svc-video-next', '', 'toString', '__proto__'])
      expect(modelCapabilities(alias)).toBeUndefined();
  });

  it('contains the default video model', () => {
    expect(DEFAULT_VIDEO_MODEL).toBe(limits.defaultVideoModel);
  });
});

describe('the endpoints', () => {
  it.each(endpoints)('$call is $method $path', async (row) => {
    const { method, path } = row;
    const limits: string[] = [];
    const onRequest = ({ limit }: RequestEvent) => void (limit !== undefined && limits.push(limit));
    const names: string[] = [];
    const addName = (trace: unknown) => void names.push((trace as RequestTrace).name);
    const starts = channel('tracing:gen-client:request:start');
    starts.subscribe(addName);
    const { client, requests } = stubbed(respond, { hooks: { onRequest } });
    await callMethod(client, row);
    starts.unsubscribe(addName);
    expect(names).toEqual([row.call]);
    expect(requests).toHaveLength(1);
    expect(requests[0]?.method).toBe(method);
    expect(requests[0]?.url.replace(/\?.*/, '')).toBe(BASE_URL + path.replace(/\{\w+\}/, 'a%20b'));
    if (row.public !== true) expect(requests[0]?.headers.authorization).toMatch(/^Bearer sk-test-/);
    if (row.creates) expect(requests[0]?.headers['idempotency-key']).toMatch(/^[\da-f-]{36}$/);
    expect(limits).toEqual(row.limit ? [row.limit] : []);
  });

  it.each(endpoints)('$method $path is a route of the sandbox', async ({ method, path }) => {
    const sandbox = createSandbox();
    const headers = { authorization: `Bearer ${sandbox.apiKey}` };
    await sandbox.fetch(sandbox.baseUrl + path.replace(/\{\w+\}/, 'x'), { method, headers });
    expect(sandbox.requests).toHaveLength(1);
    expect(sandbox.requests[0]?.code).not.toBe('not_found');
  });

  it.each(endpoints)(
    "$method $path needs an API key with the endpoint's scope in the sandbox",
    async ({ method, path, call }) => {
      const sandbox = createSandbox();
      const codeFor = async (key: string) => {
        const headers = { authorization: `Bearer ${key}` };
        await sandbox.fetch(sandbox.baseUrl + path.replace(/\{\w+\}/, 'x'), { method, headers });
        return sandbox.requests.at(-1)?.code;
      };
      const expected = {
        'models.list': [null, null],
        'models.integrationData': ['invalid_api_key', null],
      }[call] ?? ['invalid_api_key', 'scope_missing'];
      expect([await codeFor('wrong'), await codeFor(sandbox.createKey({ scopes: [] }))]).toEqual(expected);
    },
  );

  it.each(endpoints.filter(({ limit, method }) => limit !== undefined && method !== 'HEAD'))(
    '$method $path counts against $limit through client.request, too',
    async ({ method, path, limit }) => {
      const limits: unknown[] = [];
      const { client } = stubbed(respond, { hooks: { onRequest: (event) => void limits.push(event.limit) } });
      await client.request({ method: method as 'POST', path: `${path.replace(/\{\w+\}/, 'x')}?x=1` });
      expect(limits).toEqual([limit]);
    },
  );

  it('only GET /v1/models needs no API key', async () => {
    const { client, requests } = stubbed(respond, { apiKey: undefined });
    await client.models.list();
    expect(requests[0]?.headers.authorization).toBeUndefined();
    for (const row of endpoints.filter(({ public: isPublic }) => isPublic !== true)) {
      await expect(callMethod(client, row), row.call).rejects.toThrow(/apiKey|GEN_API_KEY/);
    }
    expect(requests).toHaveLength(1);
  });

  it('receive `mode` from characters.register, but not from characters.create', async () => {
    const { client, requests } = stubbed(respond);
    await client.characters.register({ name: 'Ann', upload_id: 'u' });
    await client.characters.create({ name: 'Ann', prompt: 'x' });
    expect(requests.map(({ body }) => JSON.parse(body))).toEqual([
      { mode: 'register', name: 'Ann', upload_id: 'u' },
      { name: 'Ann', prompt: 'x' },
    ]);
  });
});

describe('the fields', () => {
  const sample = (row: { type: string; example?: string | number; examples?: readonly string[] }): unknown =>
    row.example ?? row.examples?.[0] ?? SAMPLES[row.type];
  const SAMPLES: Readonly<Record<string, unknown>> = {
    string: 'x',
    'string[]': ['x'],
    boolean: true,
    number: 1,
    references: [{ type: 'image_url', url: 'https://a.test/a.png' }],
    content: [{ type: 'text', text: 'x' }],
  };

  it.each(Object.entries(fields))('of %s are sent unchanged, under the same names', async (call, rows) => {
    const [resource = '', method = ''] = call.split('.');
    for (const row of rows) {
      const { client, requests } = stubbed(respond, { preflight: false });
      const body = Object.fromEntries(
        rows.filter((other) => 'required' in other || other === row).map((other) => [other.name, sample(other)]),
      );
      const target: Record<string, (params: unknown) => Promise<unknown>> = Reflect.get(client, resource);
      await target[method]?.(body);
      expect(JSON.parse(requests[0]?.body ?? ''), row.name).toEqual(body);
    }
  });

  it.each([
    ['images.create', { prompt: '', watermark: false }],
    ['videos.create', { prompt: '', duration: 0, generate_audio: false, seed: 0 }],
  ])('of %s are sent if they are 0, false, or empty', async (call, body) => {
    const { client, requests } = stubbed(respond, { preflight: false });
    await callMethod(client, { call, args: [body] });
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual(body);
  });

  it("include `idempotency_key`, which is the call's idempotency key", async () => {
    const { client, requests } = stubbed(respond);
    const { idempotencyKey } = await client.videos.create({ prompt: 'x', idempotency_key: 'order-7' });
    expect([idempotencyKey, requests[0]?.headers['idempotency-key']]).toEqual(['order-7', 'order-7']);
  });
});

describe('the limits', () => {
  it('match the documented calls per minute', () => {
    const documented = endpoints.flatMap(({ limit, limitPerMinute }) =>
      limitPerMinute ? [[limit, { limit: limitPerMinute, windowMs: 60_000 }]] : [],
    );
    expect(DOCUMENTED_LIMITS).toEqual(Object.fromEntries(documented));
  });
});

describe('the constants', () => {
  it('match the documentation', () => {
    const uploads = Object.entries(UPLOAD_BYTES).map(([type, bytes]) => [type, `${bytes / 1024 ** 2} MB`]);
    expect(Object.fromEntries(uploads)).toEqual(limits.uploadBytes);
    expect(CHARACTER_WIDTH).toBe(limits.characterImageWidthPx);
    expect(WEBHOOK_TOLERANCE_S).toBe(limits.webhookToleranceSeconds);
    expect([VIDEO_POLL_MS.min / 1000, VIDEO_POLL_MS.max / 1000]).toEqual(limits.videoPollSeconds);
    expect(USD_PER_TOKEN).toBe(limits.tokenUsd);
  });

  it('include every webhook event', () => {
    expect(WEBHOOK_EVENT_TYPES).toEqual(limits.webhookEvents);
  });
});

describe('the states', () => {
  it('only the documented final states are final', () => {
    const final = [...limits.jobStatuses, 'dreaming', '', 'Completed'].filter((status) => isFinal({ id: 'j', status }));
    expect(final).toEqual(limits.finalStatuses);
  });
});

describe('the error tables', () => {
  it('contain the 29 request errors, with their statuses and advice', () => {
    expect(requestErrors).toHaveLength(29);
    expect(REQUEST_ERRORS).toEqual(
      Object.fromEntries(requestErrors.map(({ code, status, recovery }) => [code, [status, recovery]])),
    );
  });

  it('contain the 7 job errors, with advice', () => {
    expect(jobErrors).toHaveLength(7);
    expect(JOB_ERRORS).toEqual(Object.fromEntries(jobErrors.map(({ code, recovery }) => [code, recovery])));
  });
});
