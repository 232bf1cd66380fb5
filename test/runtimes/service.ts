// A service for the scenario, written from the documentation. It shares no code with the client or the sandbox.
import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { completedEvent } from '../support/completed-event.js';
import type { ScenarioConfig } from './suite.js';

/** The service, and storage for uploads and outputs on another origin. */
export interface Service {
  readonly config: ScenarioConfig;
  /** Adds a file to the service's origin, for a browser. */
  publish(path: string, type: string, content: string | Uint8Array): void;
  /** Resets the state. Throws if any request since the last reset was wrong. */
  reset(): void;
  close(): void;
}

const WIRE: readonly object[] = JSON.parse(readFileSync(new URL('../fixtures/wire.json', import.meta.url), 'utf8'));
const API_KEY = 'gk_test_loopback';
const SECRET = 'whsec_loopback';
const FILE = 'the finished file';

interface State {
  creates: string[];
  polls: number;
  upload: { size: number; digest: string } | undefined;
  problems: string[];
}

/** Starts the service and the storage on two ports. */
export async function startService(): Promise<Service> {
  let state: State = initialState();
  const pages = new Map<string, { type: string; content: string | Uint8Array }>();
  const storage = createServer((request, response) => void serveStorage(request, response, state));
  const storageUrl = await listen(storage);
  const api = createServer((request, response) => {
    const page = pages.get(request.url ?? '');
    if (page) return void response.writeHead(200, { 'content-type': page.type }).end(page.content);
    void serveApi(request, response, { state, storageUrl });
  });
  const baseUrl = await listen(api);
  return {
    // Signed on access, because the suites can take longer than a signature is valid.
    get config() {
      return { baseUrl, apiKey: API_KEY, webhook: signedWebhook(baseUrl), wire: WIRE };
    },
    publish: (path, type, content) => void pages.set(path, { type, content }),
    reset() {
      const { problems } = state;
      state = initialState();
      if (problems.length > 0) throw new Error(problems.join('\n'));
    },
    close() {
      for (const server of [api, storage]) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

function initialState(): State {
  return { creates: [], polls: 0, upload: undefined, problems: [] };
}

async function serveApi(
  request: IncomingMessage,
  response: ServerResponse,
  { state, storageUrl }: { readonly state: State; readonly storageUrl: string },
): Promise<void> {
  const respond = (status: number, body: unknown) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const body = await bodyOf(request);
  if (request.headers.authorization !== `Bearer ${API_KEY}`)
    return respond(401, { error: { code: 'invalid_api_key' } });
  const job = { mediaType: 'video', modelId: 'svc-video-fast', quotedTokenCost: 10 };
  const route = `${request.method} ${request.url}`;
  if (route === 'GET /test/create-keys') return respond(200, { data: { count: new Set(state.creates).size } });
  if (route === 'POST /v1/videos') {
    state.creates.push(String(request.headers['idempotency-key']));
    if (state.creates.length === 1) return respond(500, { error: { code: 'internal_error', message: 'try again' } });
    return respond(200, {
      success: true,
      data: {
        job: { ...job, id: `job_${new Set(state.creates).size}`, status: 'processing' },
        quoted_token_cost: 10,
        balance_tokens: 90,
      },
    });
  }
  if (route === 'GET /v1/jobs/job_1') {
    state.polls += 1;
    return respond(200, {
      success: true,
      data: { job: { ...job, id: 'job_1', ...(state.polls < 3 ? { status: 'processing' } : completed(request)) } },
    });
  }
  if (route === 'GET /v1/jobs/job_1/output')
    return void response.writeHead(302, { location: `${storageUrl}/file` }).end();
  if (route === 'GET /v1/jobs/job_direct/output') return void response.end(FILE);
  if (route === 'GET /v1/jobs/job_hangs') return;
  if (route === 'POST /v1/uploads') {
    const { file_size, mime_type, file_name } = JSON.parse(body.toString()) as Record<string, unknown>;
    if (file_size !== 300_000 || mime_type !== 'image/png' || file_name !== 'fox.png')
      state.problems.push(`the upload was created with ${body}`);
    return respond(200, {
      success: true,
      data: {
        upload_id: 'upl_1',
        direct_upload_url: `${storageUrl}/put?signature=s`,
        headers: { 'content-type': 'image/png', 'x-signed': 's' },
      },
    });
  }
  if (route === 'POST /v1/uploads/complete') {
    if (state.upload?.size !== 300_000 || state.upload.digest !== expectedDigest())
      state.problems.push('the uploaded bytes differ');
    return respond(200, { success: true, data: { upload_id: 'upl_1', status: 'ready' } });
  }
  respond(404, { success: false, error: { code: 'job_not_found', message: 'No such job.' } });
}

function completed(request: IncomingMessage) {
  const providerOutputUrl = `http://${request.headers.host}/v1/jobs/job_1/output`;
  return {
    status: 'completed',
    finalTokenCost: 10,
    providerOutputUrl,
    providerOutputExpiresAt: '2030-01-01T00:00:00Z',
  };
}

async function serveStorage(request: IncomingMessage, response: ServerResponse, state: State): Promise<void> {
  const cors = {
    'access-control-allow-origin': '*',
    'access-control-allow-headers': '*',
    'access-control-allow-methods': '*',
  };
  const body = await bodyOf(request);
  if (request.method === 'OPTIONS') return void response.writeHead(204, cors).end();
  if (request.headers.authorization !== undefined)
    state.problems.push(`the storage received the API key at ${request.url}`);
  if (request.method === 'PUT') {
    if (request.headers['content-length'] !== '300000')
      state.problems.push(`content-length ${request.headers['content-length']}`);
    if (request.headers['x-signed'] !== 's') state.problems.push('a signed header is missing');
    state.upload = { size: body.length, digest: digestOf(body) };
    return void response.writeHead(200, cors).end();
  }
  response.writeHead(200, { ...cors, 'content-type': 'video/mp4' }).end(FILE);
}

function signedWebhook(baseUrl: string): ScenarioConfig['webhook'] {
  const event = completedEvent('job_1', baseUrl, '2026-01-01T00:00:00Z');
  const body = JSON.stringify(event);
  const timestamp = Math.floor(Date.now() / 1000);
  const digest = createHmac('sha256', SECRET).update(`${timestamp}.${body}`).digest('hex');
  const headers = {
    'x-service-event-id': event.id,
    'x-service-event-type': event.type,
    'x-service-job-id': event.data.job.id,
    'x-service-timestamp': String(timestamp),
    'x-service-signature': `t=${timestamp},v1=${digest}`,
  };
  return { secret: SECRET, body, headers };
}

function expectedDigest(): string {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => at % 251);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return digestOf(bytes);
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}
