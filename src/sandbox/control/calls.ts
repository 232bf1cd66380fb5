import { GenError } from '../../errors/index.js';
import type { Fields } from '../../schemas/envelope.js';
import { didYouMean } from '../../schemas/show.js';
import { servedFile, serveFile } from '../http/answers.js';
import { prefixOf } from '../http/caller.js';
import { MAIN_ACCOUNT } from '../service/accounts.js';
import { Refusal } from '../service/request.js';
import { viewSandboxJob } from '../service/view-job.js';
import type { RequestRecord, StoredJob } from '../world/state.js';
import type { World } from '../world/world.js';
import type { SandboxService } from './contract.js';
import { toCurl } from './curl.js';

/** What a call of the control surface comes with. */
interface ControlRequest {
  readonly request: Request;
  /** The JSON object of its body. A method of the sandbox checks what it is given. */
  readonly body: Fields;
  /** The `{id}` of its path. */
  readonly id: string;
}

/** Answers a call, with what becomes JSON; `{ ok: true }` for undefined. */
type ControlCall = (request: ControlRequest) => unknown;

type ControlCalls = Readonly<Record<string, ControlCall>>;

/** The whole control surface: the methods and properties of a sandbox, by method and path below `/_sandbox/`. */
export function controlCalls(world: World, sandbox: SandboxService): ControlCalls {
  const clock = () => ({ now: sandbox.now(), iso: new Date(sandbox.now()).toISOString() });
  return {
    'GET clock': clock,
    'POST advance': async ({ body }) => {
      await sandbox.advance(only<{ ms: number }>(body, 'ms').ms);
      return clock();
    },
    'POST reset': () => sandbox.reset(),
    'GET state': ({ request }) => stateOf(world, sandbox, new URL(request.url).origin),
    'GET requests': ({ request }) => {
      const url = new URL(request.url).origin + prefixOf(sandbox.baseUrl);
      return { requests: sandbox.requests.map((record) => ({ ...record, curl: curlOf(record, sandbox, url) })) };
    },
    ...ruleCalls(sandbox),
    ...accountCalls(world, sandbox),
    ...jobCalls(world, sandbox),
  };
}

function ruleCalls(sandbox: SandboxService): ControlCalls {
  return {
    'POST outcomes': ({ body }) => sandbox.outcomes.next(body),
    'DELETE outcomes': () => sandbox.outcomes.clear(),
    'GET faults': () => ({ faults: sandbox.faults.list() }),
    'POST faults': ({ body }) => ({ id: sandbox.faults.add(body) }),
    'DELETE faults': () => sandbox.faults.clear(),
    'DELETE faults/{id}': ({ id }) => foundOr404(sandbox.faults.remove(id), `fault "${id}"`),
    'POST dispatch': ({ body }) => {
      sandbox.dispatch = only<Pick<SandboxService, 'dispatch'>>(body, 'dispatch').dispatch;
    },
    'POST prices': ({ body }) => sandbox.setPrices(only<{ prices?: number }>(body, 'prices').prices),
  };
}

function accountCalls(world: World, sandbox: SandboxService): ControlCalls {
  return {
    'POST topup': ({ body }) => {
      const { usd, account } = only<{ usd: number; account?: string }>(body, 'usd', 'account');
      return { balanceTokens: sandbox.topUp(usd, { account }) };
    },
    'GET ledger': ({ request }) => {
      const account = new URL(request.url).searchParams.get('account') ?? undefined;
      return sandbox.ledger({ account });
    },
    'POST keys': ({ body }) => {
      const key = sandbox.createKey(body);
      const account = world.state.keys.get(key)?.account ?? MAIN_ACCOUNT;
      return { key, webhookSecret: world.state.accounts.get(account)?.webhookSecret };
    },
    'DELETE keys/{id}': ({ id }) => foundOr404(sandbox.revokeKey(id), 'such key'),
    'POST suspend': ({ body }) => {
      const { account, suspended } = only<{ account: string; suspended?: boolean }>(body, 'account', 'suspended');
      sandbox.suspend(account, suspended);
    },
  };
}

function jobCalls(world: World, sandbox: SandboxService): ControlCalls {
  const find = (id: string): StoredJob => {
    world.timeline.catchUp();
    const job = world.state.jobs.get(id);
    if (job !== undefined) return job;
    throw new Refusal('job_not_found', `There is no job "${id}".`);
  };
  const redeliver = async (body: Fields, copies: number) => {
    const { jobId } = only<{ jobId: string }>(body, 'jobId');
    await Promise.all(Array.from({ length: copies }, () => sandbox.redeliver(jobId)));
    return { deliveries: sandbox.deliveries.filter((delivery) => delivery.jobId === jobId) };
  };
  return {
    'GET jobs': () => ({ jobs: sandbox.jobs }),
    'GET jobs/{id}': ({ id }) => ({ job: viewSandboxJob(find(id)) }),
    'GET jobs/{id}/output': ({ id, request }) => {
      const job = find(id);
      if (job.status === 'completed') return serveFile(request, servedFile(world, job));
      throw new Refusal('output_not_ready', `The job is ${job.status} and has no file.`);
    },
    'POST jobs/{id}/finish': ({ id, body }) => {
      const job = find(id);
      sandbox.finish(id, body);
      return { job: viewSandboxJob(job) };
    },
    'POST redeliver': ({ body }) => redeliver(body, 1),
    'POST duplicates': ({ body }) => redeliver(body, 2),
    'GET deliveries': () => ({ deliveries: sandbox.deliveries }),
  };
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
/** Bodies of that length may have been cut by the log. */
const CUT_CHARS = 2000;

/** The sandbox as its page shows it, the newest of each list first. Its cost does not grow with the number of jobs. */
function stateOf(world: World, sandbox: SandboxService, origin: string): Record<string, unknown> {
  const { state, timeline, settings } = world;
  timeline.catchUp();
  const account = state.accounts.get(MAIN_ACCOUNT);
  const url = origin + new URL(settings.baseUrl).pathname.replace(/\/$/, '');
  return {
    url,
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
    requests: newest(state.requests).map((record) => ({ ...record, curl: curlOf(record, sandbox, url) })),
    ledger: newest(account?.entries ?? []),
  };
}

/** A logged request as a curl command, with the main key where the log has removed a key. */
function curlOf(record: RequestRecord, sandbox: SandboxService, url: string): string {
  const isMain = record.account === null || record.account === MAIN_ACCOUNT;
  const key = isMain ? sandbox.apiKey : 'YOUR_API_KEY';
  const headers = Object.entries(record.headers).map(([name, value]) => [name, value.replace('[redacted]', () => key)]);
  const { method, body } = record;
  return toCurl({
    method,
    url: url + record.path + record.query,
    headers: Object.fromEntries(headers),
    ...(body !== null && body.length >= CUT_CHARS ? { bodyFile: 'body.json' } : { body }),
  });
}

function newest<T>(log: readonly T[]): T[] {
  return log.slice(-SHOWN_ITEMS).reverse();
}
