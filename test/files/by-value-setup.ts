import type { GenClient } from '../../src/index.js';
import { createSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/index.js';

export const prompt = 'the fox runs';

/** Creates a PNG whose header states this width. */
export function png(width = 300, bytes = 5_000): Blob {
  const data = new Uint8Array(bytes);
  data.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]);
  new DataView(data.buffer).setUint32(16, width);
  new DataView(data.buffer).setUint32(20, 300);
  return new Blob([data], { type: 'image/png' });
}
export const mp4 = (bytes = 3_000) => new Blob([new Uint8Array(bytes)], { type: 'video/mp4' });
export const mp3 = () => new Blob([new Uint8Array(2_000)], { type: 'audio/mpeg' });

/** Creates a sandbox with a client and a log of its requests, such as `POST /v1/videos`. */
export function createService(options: SandboxOptions = {}): {
  sandbox: Sandbox;
  client: GenClient;
  log: () => string[];
} {
  const sandbox = createSandbox({ balanceTokens: 1e6, jobDurationMs: 0, ...options });
  const log = () =>
    sandbox.requests.map(({ method, path }) => `${method} ${path.replace(/\/(upl|job|chr)_\w+/, '/:id')}`);
  return { sandbox, client: sandbox.client(), log };
}
export const countLines = (log: readonly string[], start: string) =>
  log.filter((line) => line.startsWith(start)).length;
/** Returns the number of uploads that still exist on the service. */
export const countRemaining = ({ requests }: Sandbox) => {
  const completed = requests.filter(({ path }) => path === '/v1/uploads/complete');
  const deleted = requests.filter(({ method, status }) => method === 'DELETE' && status === 200);
  return completed.length - deleted.length;
};
/** Returns `videos.create` and `videos.createAndWait` without types. */
export function createCalls({ videos }: GenClient): ((params: object) => Promise<unknown>)[] {
  return [(params) => videos.create(params as never), (params) => videos.createAndWait(params as never)];
}
/** Parses a request's body. */
export const bodyOf = (request: { readonly body: string | null } | undefined) => JSON.parse(request?.body ?? '{}');
