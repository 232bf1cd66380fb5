// The cost of verifying a webhook, compared with well-known libraries: for a typical event and for a large one.
import { createHmac, createSecretKey } from 'node:crypto';
import { signWebhook, verifyWebhook } from 'gen-client/webhooks';
import { type Candidate, type Figures, formatSpread, interleaved, peer, ratio, spread, table } from './frame.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 21);
const SIZES = [
  { title: '1 KB', bytes: 1_000, times: 10_000 },
  { title: '100 KB', bytes: 100_000, times: 300 },
] as const;
/** Minimum fraction of Stripe's throughput. */
const TARGET = 0.8;
const BASE = 'stripe constructEvent';
const OWN = 'gen-client verifyWebhook';
/** A verification's lower bound. */
const BOUND = 'HMAC-SHA256 and JSON.parse alone';
const WEB_CRYPTO = `${OWN}, WebCrypto only`;

const KEY = Buffer.from('a secret of two dozen by');
/** Node is several times slower with a key in bytes. */
const KEY_OBJECT = createSecretKey(KEY);
const SECRET = `whsec_${KEY.toString('base64')}`;

type Verify = () => unknown;
/** Signs a body with a fresh timestamp, and returns its verification. */
type Prepare = (body: string) => Verify | Promise<Verify>;

interface Stripe {
  readonly webhooks: {
    constructEvent(body: string | Buffer, header: string, secret: string): unknown;
    generateTestHeaderString(options: { payload: string; secret: string }): string;
  };
}

interface Unwrapper {
  unwrap(body: string, ...rest: unknown[]): unknown;
}

/** A verifier of the Standard Webhooks scheme, which svix, openai, and anthropic use. */
interface Standard {
  verify(body: string, headers: Record<string, string>): unknown;
}

function standardHeaders(body: string): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', KEY).update(`msg_1.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': 'msg_1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}

async function own(body: string, received: string | Buffer = body): Promise<Verify> {
  const { headers } = await signWebhook(body, { secret: SECRET });
  return () => verifyWebhook({ body: received, headers }, { secret: SECRET });
}

/** Measures without the runtime's own crypto, as on a runtime with only WebCrypto. */
async function withWebCrypto(measureOnce: Candidate['measure']): Promise<number> {
  const { getBuiltinModule } = process;
  Reflect.set(process, 'getBuiltinModule', undefined);
  try {
    return await measureOnce();
  } finally {
    Reflect.set(process, 'getBuiltinModule', getBuiltinModule);
  }
}

async function candidates(): Promise<Record<string, Prepare>> {
  const { default: Stripe } = await peer<{ default: new (key: string) => Stripe }>('stripe');
  const { default: OpenAI } = await peer<{ default: new (options: object) => { webhooks: Unwrapper } }>('openai');
  const { default: Anthropic } = await peer<{ default: new (options: object) => { beta: { webhooks: Unwrapper } } }>(
    '@anthropic-ai/sdk',
  );
  const { Webhook: Svix } = await peer<{ Webhook: new (secret: string) => Standard }>('svix');
  const { Webhook } = await peer<{ Webhook: new (secret: string) => Standard }>('standardwebhooks');
  const { webhooks } = new Stripe('sk_test_none');
  const openai = new OpenAI({ apiKey: 'none', webhookSecret: SECRET }).webhooks;
  const anthropic = new Anthropic({ apiKey: 'none' }).beta.webhooks;
  const byStripe = (body: string, received: string | Buffer = body): Verify => {
    const header = webhooks.generateTestHeaderString({ payload: body, secret: SECRET });
    return () => webhooks.constructEvent(received, header, SECRET);
  };
  const byStandard = (verifier: Standard, body: string): Verify => {
    const headers = standardHeaders(body);
    return () => verifier.verify(body, headers);
  };
  return {
    [OWN]: (body) => own(body),
    [`${OWN}, bytes`]: (body) => own(body, Buffer.from(body)),
    [BASE]: (body) => byStripe(body),
    [`${BASE}, bytes`]: (body) => byStripe(body, Buffer.from(body)),
    [BOUND]: (body) => () => [
      createHmac('sha256', KEY_OBJECT).update(`1767225600.${body}`).digest('hex'),
      JSON.parse(body),
    ],
    svix: (body) => byStandard(new Svix(SECRET), body),
    standardwebhooks: (body) => byStandard(new Webhook(SECRET), body),
    'openai webhooks.unwrap': (body) => {
      const headers = standardHeaders(body);
      return () => openai.unwrap(body, headers);
    },
    'anthropic webhooks.unwrap': (body) => {
      const headers = standardHeaders(body);
      return () => anthropic.unwrap(body, { headers, key: SECRET });
    },
  };
}

/** Creates an event of about `bytes` bytes, with additional fields. */
function eventOf(bytes: number): string {
  const job = { id: 'job_1', status: 'completed', providerOutputUrl: 'https://gen.test/v1/jobs/job_1/output' };
  const event = { object: 'developer_webhook_event', id: 'evt_job_1_completed', type: 'job.completed' };
  const bare = JSON.stringify({ ...event, created: '2026-01-02T03:04:05.000Z', data: { job: { ...job, prompt: '' } } });
  return bare.replace(
    '"prompt":""',
    `"prompt":"${'a fox at dawn, '.repeat(bytes / 15).slice(0, bytes - bare.length)}"`,
  );
}

/** Measures one verification in microseconds. */
async function measure(verify: Verify, times: number): Promise<number> {
  const start = performance.now();
  for (let call = 0; call < times; call += 1) await verify();
  return ((performance.now() - start) * 1000) / times;
}

async function section({ title, bytes, times }: (typeof SIZES)[number]): Promise<string> {
  const body = eventOf(bytes);
  const all = Object.entries(await candidates()).map(
    ([name, prepare]): Candidate => ({ name, measure: async () => measure(await prepare(body), times) }),
  );
  const figures = await interleaved(all, { rounds: ROUNDS, warmups: 3 });
  // Measured separately, because removing the runtime's crypto invalidates code compiled with it.
  const withoutCrypto = all
    .filter(({ name }) => name === OWN || name === BASE)
    .map(({ name, measure }) =>
      name === OWN ? { name: WEB_CRYPTO, measure: () => withWebCrypto(measure) } : { name, measure },
    );
  const separate = await interleaved(withoutCrypto, { rounds: Math.ceil(ROUNDS / 3) });
  const row = (from: Figures, name: string) => {
    const perSecond = Math.round(1e6 / spread(from.get(name) ?? []).median).toLocaleString('en-US');
    return [name, perSecond, formatSpread(ratio(from, name, BASE))];
  };
  const rows = [...all.map(({ name }) => row(figures, name)), row(separate, WEB_CRYPTO)];
  const share = 1 / ratio(figures, OWN, BASE).median;
  const verdict = `${share.toFixed(2)} of Stripe's throughput (target: at least ${TARGET}): ${share >= TARGET ? 'met' : 'missed'}.`;
  return `### An event of ${title}\n\n${table(['', 'a second', 'time, relative to Stripe'], rows)}\n\n${verdict}`;
}

/** Returns the section of bench/README.md. */
export async function run(): Promise<string> {
  const sections: string[] = [];
  for (const size of SIZES) sections.push(await section(size));
  const intro =
    "Sequential verifications on one thread, with the body as a string unless the row says bytes. Each library verifies its own scheme, always with HMAC-SHA256, and parses the event. The lower bound is the runtime's HMAC and the parsing.";
  return ['## Webhooks', intro, ...sections].join('\n\n');
}
