import { createSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/index.js';

/** A response with its parsed body. */
export interface PlainResponse {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: responses are untyped
  readonly body: any;
}

/** A plain HTTP client, independent of the SDK. */
export interface PlainClient {
  readonly sandbox: Sandbox;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<PlainResponse>;
  /** Returns the `error.code` of an error response. */
  code(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<string>;
  /** Creates a job and returns its initial state. */
  // biome-ignore lint/suspicious/noExplicitAny: responses are untyped
  create(path: string, body?: unknown, headers?: Record<string, string>): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: responses are untyped
  job(id: string): Promise<any>;
  /** Runs the three steps and returns the upload's ID. */
  upload(type: 'IMAGE' | 'VIDEO' | 'AUDIO', name?: string, bytes?: Uint8Array<ArrayBuffer>): Promise<string>;
  as(key: string): PlainClient;
}

const MIME = { IMAGE: 'image/png', VIDEO: 'video/mp4', AUDIO: 'audio/mpeg' } as const;

/** Creates a sandbox with a manual clock and no limits by default, and a client for it. */
export function setUp(options: SandboxOptions = {}): PlainClient {
  return clientFor(createSandbox({ clock: 'manual', limits: 'off', ...options }));
}

/** Creates a client for a sandbox with a key. */
export function clientFor(sandbox: Sandbox, key = sandbox.apiKey): PlainClient {
  const call: PlainClient['call'] = async (method, path, body, headers = {}) => {
    const response = await sandbox.fetch(`${sandbox.baseUrl}${path}`, {
      method,
      headers: { ...(key ? { authorization: `Bearer ${key}` } : {}), 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') && text !== '';
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  return {
    sandbox,
    call,
    code: async (...request) => (await call(...request)).body.error?.code,
    create: async (path, body = { prompt: 'a fox at dawn' }, headers) => {
      const response = await call('POST', path, body, headers);
      if (response.status !== 200) throw new Error(JSON.stringify(response.body));
      return response.body.data.job;
    },
    job: async (id) => (await call('GET', `/v1/jobs/${id}`)).body.data.job,
    async upload(type, name = `file.${type.toLowerCase()}`, bytes = type === 'IMAGE' ? png(640) : new Uint8Array(64)) {
      const params = { file_name: name, mime_type: MIME[type], file_size: bytes.length, upload_type: type };
      const { data } = (await call('POST', '/v1/uploads', params)).body;
      await sandbox.fetch(data.direct_upload_url, { method: 'PUT', headers: data.headers, body: bytes });
      const completed = await call('POST', '/v1/uploads/complete', { upload_id: data.upload_id });
      if (completed.status !== 200) throw new Error(JSON.stringify(completed.body));
      return data.upload_id;
    },
    as: (other) => clientFor(sandbox, other),
  };
}

/** Returns the header of a PNG with this width. */
export function png(width: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(64);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]);
  new DataView(bytes.buffer).setUint32(16, width);
  new DataView(bytes.buffer).setUint32(20, width);
  return bytes;
}

/** Creates a receiver that collects webhooks and responds with the statuses in order. The last one repeats. */
export function receiver(...statuses: number[]) {
  const events: { url: string; headers: Headers; body: string }[] = [];
  const webhookFetch: typeof fetch = async (input, init) => {
    events.push({ url: String(input), headers: new Headers(init?.headers), body: String(init?.body) });
    const status = statuses[Math.min(events.length, statuses.length) - 1] ?? 200;
    return new Response(null, { status });
  };
  return { events, webhookFetch };
}
