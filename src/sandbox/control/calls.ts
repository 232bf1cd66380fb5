import { GenError } from '../../errors/index.js';
import type { Fields } from '../../schemas/envelope.js';
import { didYouMean } from '../../schemas/show.js';
import { servedFile, serveFile } from '../http/answers.js';
import { prefixOf } from '../http/caller.js';
import { MAIN_ACCOUNT } from '../service/accounts.js';
import { Refusal } from '../service/request.js';
import { viewSandboxJob } from '../service/view-job.js';
import type { StoredJob } from '../world/state.js';
import type { World } from '../world/world.js';
import type { SandboxService } from './contract.js';

/** A call of the control surface. */
interface ControlCall {
  readonly world: World;
  readonly sandbox: SandboxService;
  readonly request: Request;
  /** The JSON object of its body. A method of the sandbox checks what it is given. */
  readonly body: Fields;
  /** The `{id}` of its path. */
  readonly id: string;
}

/** What answers a call: with what becomes JSON, or `{ ok: true }` for undefined. */
type Answer = (call: ControlCall) => unknown;

/** The whole control surface: the methods and properties of a sandbox, by method and path below `/_sandbox/`. */
export const CONTROL_CALLS: Readonly<Record<string, Answer>> = {
  'GET clock': ({ sandbox }) => clockOf(sandbox),
  'POST advance': async ({ sandbox, body }) => {
    await sandbox.advance(only<{ ms: number }>(body, 'ms').ms);
    return clockOf(sandbox);
  },
  'POST reset': ({ sandbox }) => sandbox.reset(),
  'GET state': stateOf,
  'GET requests': ({ sandbox }) => ({ requests: sandbox.requests }),
  'GET deliveries': ({ sandbox }) => ({ deliveries: sandbox.deliveries }),

  'POST outcomes': ({ sandbox, body }) => sandbox.outcomes.next(body),
  'DELETE outcomes': ({ sandbox }) => sandbox.outcomes.clear(),
  'GET faults': ({ sandbox }) => ({ faults: sandbox.faults.list() }),
  'POST faults': ({ sandbox, body }) => ({ id: sandbox.faults.add(body) }),
  'DELETE faults': ({ sandbox }) => sandbox.faults.clear(),
  'DELETE faults/{id}': ({ sandbox, id }) => foundOr404(sandbox.faults.remove(id), `fault "${id}"`),
  'POST dispatch': ({ sandbox, body }) => {
    sandbox.dispatch = only<Pick<SandboxService, 'dispatch'>>(body, 'dispatch').dispatch;
  },
  'POST prices': ({ sandbox, body }) => sandbox.setPrices(only<{ prices?: number }>(body, 'prices').prices),

  'POST topup': ({ sandbox, body }) => {
    const { usd, account } = only<{ usd: number; account?: string }>(body, 'usd', 'account');
    return { balanceTokens: sandbox.topUp(usd, { account }) };
  },
  'GET ledger': ({ sandbox, request }) => {
    return sandbox.ledger({ account: new URL(request.url).searchParams.get('account') ?? undefined });
  },
  'POST keys': ({ world, sandbox, body }) => {
    const key = sandbox.createKey(body);
    const { account = MAIN_ACCOUNT } = world.state.keys.get(key) ?? {};
    return { key, webhookSecret: world.state.accounts.get(account)?.webhookSecret };
  },
  'DELETE keys/{id}': ({ sandbox, id }) => foundOr404(sandbox.revokeKey(id), 'such key'),

  'GET jobs': ({ sandbox }) => ({ jobs: sandbox.jobs }),
  'GET jobs/{id}': (call) => ({ job: viewSandboxJob(jobOf(call)) }),
  'GET jobs/{id}/output': (call) => {
    const job = jobOf(call);
    if (job.status === 'completed') return serveFile(call.request, servedFile(call.world, job));
    throw new Refusal('output_not_ready', `The job is ${job.status} and has no file.`);
  },
  'POST jobs/{id}/finish': (call) => {
    const job = jobOf(call);
    call.sandbox.finish(job.id, call.body);
    return { job: viewSandboxJob(job) };
  },
  'POST redeliver': async ({ sandbox, body }) => {
    const { jobId } = only<{ jobId: string }>(body, 'jobId');
    await sandbox.redeliver(jobId);
    return { deliveries: sandbox.deliveries.filter((delivery) => delivery.jobId === jobId) };
  },
};

const clockOf = (sandbox: SandboxService) => ({ now: sandbox.now(), iso: new Date(sandbox.now()).toISOString() });

function jobOf({ world, id }: ControlCall): StoredJob {
  world.timeline.catchUp();
  const job = world.state.jobs.get(id);
  if (job !== undefined) return job;
  throw new Refusal('job_not_found', `There is no job "${id}".`);
}

/** A body that has no field but these. The method that takes their values checks them. */
function only<T>(body: Fields, ...names: readonly string[]): T {
  const unknown = Object.keys(body).find((name) => !names.includes(name));
  if (unknown === undefined) return body as T;
  throw new GenError(`The body has no option "${unknown}". ${didYouMean(unknown, names)}`);
}

function foundOr404(isFound: boolean, what: string): void {
  if (!isFound) throw new Refusal('not_found', `There is no ${what}.`);
}

/** How many of each the state shows. The lists by themselves give all. */
const SHOWN_ITEMS = 100;

/** The sandbox as its page shows it, the newest of each list first. Its cost does not grow with the number of jobs. */
function stateOf({ world, sandbox, request }: ControlCall): Record<string, unknown> {
  const { state, timeline, settings } = world;
  timeline.catchUp();
  const account = state.accounts.get(MAIN_ACCOUNT);
  return {
    url: new URL(request.url).origin + prefixOf(settings.baseUrl),
    apiKey: sandbox.apiKey,
    webhookSecret: sandbox.webhookSecret,
    now: sandbox.now(),
    isManual: settings.isManual,
    speed: settings.speed,
    dispatch: state.dispatch,
    faults: state.faults.length,
    outcomes: state.outcomes.map((outcome) => outcome.errorCode ?? outcome.status ?? 'as set'),
    balance: {
      balanceTokens: account?.freeTokens ?? 0,
      reservedTokens: account?.reservedTokens ?? 0,
      spentTokens: account?.spentTokens ?? 0,
    },
    jobCount: state.jobIds.length,
    jobs: newest(state.jobIds).flatMap((id) => {
      const job = state.jobs.get(id);
      return job === undefined ? [] : [{ ...viewSandboxJob(job), warnings: job.warnings }];
    }),
    deliveries: newest(state.deliveries),
    requests: newest(state.requests),
    ledger: newest(account?.entries ?? []),
  };
}

function newest<T>(log: readonly T[]): T[] {
  return log.slice(-SHOWN_ITEMS).reverse();
}
