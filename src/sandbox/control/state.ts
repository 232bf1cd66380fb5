import { MAIN_ACCOUNT } from '../service/accounts.js';
import { viewSandboxJob } from '../service/view-job.js';
import type { RequestRecord } from '../world/store.js';
import type { World } from '../world/world.js';
import type { SandboxService } from './contract.js';
import { toCurl } from './curl.js';

/** How many of each the state shows. The lists by themselves give all. */
const SHOWN_ITEMS = 100;
/** Bodies of that length may have been cut by the log. */
const CUT_CHARS = 2000;

/** The sandbox as its page shows it, the newest of each list first. Its cost does not grow with the number of jobs. */
export function stateOf(world: World, sandbox: SandboxService, origin: string): Record<string, unknown> {
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
export function curlOf(record: RequestRecord, sandbox: SandboxService, url: string): string {
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
