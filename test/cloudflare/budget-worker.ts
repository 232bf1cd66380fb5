// An isolate that creates under a shared budget. Its calls to the object are lost as each request says.
import { createBudget, GenClient } from 'gen-client';
import {
  type DurableObjectStateLike,
  durableObjectBudget,
  GenAccount,
  type GenAccountNamespace,
} from 'gen-client/cloudflare';

/** An object that can be moved. */
export class MovableAccount extends GenAccount {
  readonly #ctx: { abort(reason: string): void };
  constructor(ctx: DurableObjectStateLike & { abort(reason: string): void }, env: unknown) {
    super(ctx, env);
    this.#ctx = ctx;
  }
  /** Ends the object at once, as an update or a move does. */
  crash() {
    this.#ctx.abort('moved');
  }
}

interface Env {
  readonly ACCOUNT: GenAccountNamespace;
  readonly BASE_URL: string;
  readonly KEY: string;
}
interface Stub {
  applyBudget(...values: Parameters<GenAccount['applyBudget']>): Promise<ReturnType<GenAccount['applyBudget']>>;
  crash(): Promise<void>;
}

/** What is lost: each first answer to a step, every answer, or every call, so that the object never hears of it. */
type Loss = 'first answers' | 'answers' | 'calls' | null;

/** The object behind a network that loses calls. */
function losing(namespace: GenAccountNamespace, { loss, heard }: { loss: Loss; heard: string[] }): GenAccountNamespace {
  const lost = new Set<string>();
  return {
    idFromName: (name) => namespace.idFromName(name),
    get: (id) => ({
      async applyBudget(...values: Parameters<Stub['applyBudget']>) {
        if (loss === 'calls') throw new Error('the call was lost');
        const reply = await (namespace.get(id) as Stub).applyBudget(...values);
        heard.push(`${values[1].op} ${reply.outcome}`);
        const step = JSON.stringify(values);
        if (loss === 'answers' || (loss === 'first answers' && !lost.has(step))) {
          lost.add(step);
          throw new Error('the answer was lost');
        }
        return reply;
      },
    }),
  };
}

export default {
  async fetch(request: Request, { ACCOUNT, BASE_URL, KEY }: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const option = (name: string) => searchParams.get(name) ?? undefined;
    if (pathname === '/crash') {
      await (ACCOUNT.get(ACCOUNT.idFromName('main') as never) as Stub).crash().catch(() => {});
      return Response.json('ok');
    }
    const heard: string[] = [];
    const store = durableObjectBudget(losing(ACCOUNT, { loss: searchParams.get('loss') as Loss, heard }), 'main');
    const budget = createBudget({
      maxTokens: Number(option('max')),
      per: option('ms') ? Number(option('ms')) : 'day',
      scope: option('scope'),
      store,
    });
    if (pathname === '/usage') return Response.json(await budget.usage());
    const client = new GenClient({ apiKey: KEY, baseUrl: BASE_URL, rateLimit: 'off', budget });
    const idempotencyKey = option('key');
    const creates = Array.from({ length: Number(option('count') ?? 1) }, async (_, at) => {
      const duration = at % 2 === 0 ? 4 : 8;
      return client.videos.create({ prompt: 'fox', duration }, idempotencyKey ? { idempotencyKey } : {}).then(
        () => 'made',
        (error: Error) => `${error.name}: ${error.message}`,
      );
    });
    const made = await Promise.all(creates);
    return Response.json({ made, heard });
  },
};
