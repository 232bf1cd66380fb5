// An isolate for one-account.test.ts. It creates videos with shared rate limits, and its Durable Object fails at random.
import { GenClient } from 'gen-client';
import { durableObjectStore, GenAccount, type GenAccountNamespace } from 'gen-client/cloudflare';
import { createWebhookHandler } from 'gen-client/webhooks';
import type { DurableObjectStateLike } from '../../src/adapters/cloudflare/gen-account.js';

interface Env {
  readonly ACCOUNT: GenAccountNamespace;
  readonly BASE_URL: string;
  readonly LIMIT: number;
  readonly WINDOW_MS: number;
}

type Methods = Pick<GenAccount, 'read' | 'write'>;

/** A Durable Object that fails one call in twenty, half of them before the call takes effect and half after. */
export class FlakyAccount extends GenAccount {
  readonly #ctx: { abort(reason: string): void };
  constructor(ctx: DurableObjectStateLike & { abort(reason: string): void }, env: unknown) {
    super(ctx, env);
    this.#ctx = ctx;
  }
  override read(...values: Parameters<Methods['read']>) {
    return failAtRandom(() => super.read(...values));
  }
  override write(...values: Parameters<Methods['write']>) {
    return failAtRandom(() => super.write(...values));
  }
  /** Stops the object immediately, as a deploy or a migration does. */
  crash() {
    this.#ctx.abort('moved');
  }
}

function failAtRandom<T>(call: () => T): T {
  const roll = Math.random();
  if (roll < 1 / 40) throw new Error('the request was lost');
  const result = call();
  if (roll < 1 / 20) throw new Error('the response was lost');
  return result;
}

const errors: string[] = [];
let client: GenClient | undefined;
const handled: string[] = [];

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    // On a busy machine, the object must not count as unavailable. Local limits would exceed the shared one.
    const store = { ...durableObjectStore(env.ACCOUNT, 'main'), timeoutMs: 60_000 };
    client ??= new GenClient({
      // Keys differ, as during a rotation. The name identifies the account.
      account: 'studio',
      apiKey: `key-${crypto.randomUUID()}`,
      baseUrl: env.BASE_URL,
      store,
      limits: { 'videos.create': { limit: env.LIMIT, windowMs: env.WINDOW_MS } },
      logger: { error() {}, warn: (message) => void errors.push(message), info() {}, debug() {} },
    });
    if (pathname === '/errors') return Response.json(errors);
    if (pathname === '/crash') {
      const object = env.ACCOUNT.get(env.ACCOUNT.idFromName('main') as never) as { crash(): Promise<void> };
      await object.crash().catch(() => {});
      return Response.json('ok');
    }
    if (pathname === '/create') {
      const { videos } = client;
      const count = Number(searchParams.get('count'));
      const created = await Promise.all(Array.from({ length: count }, () => videos.create({ prompt: 'fox' })));
      return Response.json(created.length);
    }
    if (pathname === '/handled') return Response.json(handled);
    if (pathname === '/webhook') {
      const receive = createWebhookHandler({
        secret: 'whsec_test',
        store,
        on: { '*': (event) => void handled.push(event.id) },
      });
      return receive(request);
    }
    return new Response(null, { status: 404 });
  },
};
