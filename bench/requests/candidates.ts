import ky from 'ky';
import { peer } from '../frame.js';

/** One way to call the service: a poll and a create, each until its JSON is there. */
export interface Caller {
  readonly name: string;
  readonly get: () => Promise<unknown>;
  readonly post: () => Promise<unknown>;
}

const PAYLOAD = { model: 'svc-video-fast', prompt: 'a fox at dawn, slow dolly in, soft light', duration: 5 } as const;
const KEY = 'sk-bench-0123456789';

/** What a Stainless-made client (openai, anthropic, runway) offers for any path. */
interface Stainless {
  get(path: string): Promise<unknown>;
  post(path: string, options: { readonly body: unknown }): Promise<unknown>;
}
type Made<T> = new (options: Record<string, unknown>) => T;

/** This SDK, with its rate limits at work but never full. */
export async function own(base: string): Promise<Caller> {
  const { GenClient } = await import('gen-client');
  const wide = { limit: 10_000_000, windowMs: 1_000 };
  const limits = { 'videos.create': wide, 'jobs.get': wide };
  const client = new GenClient({ apiKey: KEY, baseUrl: base, limits });
  return { name: 'gen-client', get: () => client.jobs.get('job_1'), post: () => client.videos.create(PAYLOAD) };
}

/** What everything is held against: fetch as one writes it by hand. */
export function bare(base: string, redirect?: RequestRedirect): Caller {
  const init = { ...(redirect && { redirect }) };
  const authorization = `Bearer ${KEY}`;
  return {
    name: redirect ? `bare fetch, redirect: '${redirect}'` : 'bare fetch',
    get: async () => (await fetch(`${base}/v1/jobs/job_1`, { ...init, headers: { authorization } })).json(),
    async post() {
      const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() };
      const body = JSON.stringify(PAYLOAD);
      return (await fetch(`${base}/v1/videos`, { ...init, method: 'POST', headers, body })).json();
    },
  };
}

/** ky with its defaults. */
export function kyAlone(base: string): Caller {
  const headers = { authorization: `Bearer ${KEY}` };
  return {
    name: 'ky',
    get: () => ky.get(`${base}/v1/jobs/job_1`, { headers }).json(),
    post: () => ky.post(`${base}/v1/videos`, { headers, json: PAYLOAD }).json(),
  };
}

/** The peers, each with its defaults, sent to the local service. */
export async function peers(base: string): Promise<Caller[]> {
  const { default: OpenAI } = await peer<{ default: Made<Stainless> }>('openai');
  const { default: Anthropic } = await peer<{ default: Made<Stainless> }>('@anthropic-ai/sdk');
  const { default: Runway } = await peer<{ default: Made<Stainless> }>('@runwayml/sdk');
  return [
    stainless('openai', new OpenAI({ apiKey: KEY, baseURL: base })),
    stainless('@anthropic-ai/sdk', new Anthropic({ apiKey: KEY, baseURL: base })),
    stainless('@runwayml/sdk', new Runway({ apiKey: KEY, baseURL: base })),
    await fal(base),
    await replicate(base),
  ];
}

function stainless(name: string, client: Stainless): Caller {
  return { name, get: () => client.get('/v1/jobs/job_1'), post: () => client.post('/v1/videos', { body: PAYLOAD }) };
}

interface Fal {
  readonly queue: {
    status(app: string, options: { readonly requestId: string }): Promise<unknown>;
    submit(app: string, options: { readonly input: unknown }): Promise<unknown>;
  };
}

async function fal(base: string): Promise<Caller> {
  const { createFalClient } = await peer<{ createFalClient: (options: Record<string, unknown>) => Fal }>(
    '@fal-ai/client',
  );
  // It has no base URL; its own hook leads every request to the local service.
  const requestMiddleware = async (request: { url: string }) => ({
    ...request,
    url: base + new URL(request.url).pathname,
  });
  const client = createFalClient({ credentials: KEY, requestMiddleware });
  return {
    name: '@fal-ai/client',
    get: () => client.queue.status('bench/model', { requestId: 'job_1' }),
    post: () => client.queue.submit('bench/model', { input: PAYLOAD }),
  };
}

interface Replicate {
  readonly predictions: {
    get(id: string): Promise<unknown>;
    create(options: { readonly version: string; readonly input: unknown }): Promise<unknown>;
  };
}

async function replicate(base: string): Promise<Caller> {
  const { default: Client } = await peer<{ default: Made<Replicate> }>('replicate');
  const client = new Client({ auth: KEY, baseUrl: base, useFileOutput: false });
  return {
    name: 'replicate',
    get: () => client.predictions.get('job_1'),
    post: () => client.predictions.create({ version: 'v1', input: PAYLOAD }),
  };
}
