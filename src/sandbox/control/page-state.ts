import { dimensionsFor } from '../media/index.js';
import { MAIN_ACCOUNT } from '../service/accounts.js';
import { viewSandboxJob } from '../service/view-job.js';
import type { DeliveryRecord, RequestRecord } from '../world/records.js';
import type { DocumentedStatus, StoredJob } from '../world/store.js';
import type { World } from '../world/world.js';
import type { SandboxService } from './contract.js';
import { toCurl } from './curl.js';

/** How many of each the page shows. The lists by themselves give all. */
const SHOWN = 100;
/** How many jobs are looked through for those of a status. */
const SEARCHED = 20_000;
/** Bodies of that length may have been cut by the log. */
const CUT_CHARS = 2000;
const TITLE_CHARS = 80;

/** What the page looks at. */
export interface PageView {
  /** Where the page is served. */
  readonly origin: string;
  /** Only jobs of this status. @default all jobs */
  readonly status?: string | undefined;
}

/** A row of a list on the page, with a key of its own. */
export interface PageRow {
  readonly key: string;
}

/** What the page shows, the newest rows first. */
export interface PageState {
  /** Everything that is not a list. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** The lists by name. */
  readonly lists: Readonly<Record<'jobs' | 'deliveries' | 'requests' | 'ledger', readonly PageRow[]>>;
}

/** The sandbox as its page shows it. Its cost does not grow with the number of jobs. */
export function pageState(world: World, sandbox: SandboxService, { origin, status }: PageView): PageState {
  const { state, timeline, settings } = world;
  timeline.catchUp();
  const account = state.accounts.get(MAIN_ACCOUNT);
  const url = origin + new URL(settings.baseUrl).pathname.replace(/\/$/, '');
  return {
    facts: {
      url,
      apiKey: sandbox.apiKey,
      webhookSecret: sandbox.webhookSecret,
      balance: {
        balanceTokens: account?.freeTokens ?? 0,
        reservedTokens: account?.reservedTokens ?? 0,
        spentTokens: account?.spentTokens ?? 0,
      },
      isManual: settings.isManual,
      speed: settings.speed,
      dispatch: state.dispatch,
      faults: state.faults.length,
      outcomes: state.outcomes.map((outcome) => outcome.errorCode ?? outcome.status ?? 'as set'),
      counts: { total: state.jobIds.length, ...Object.fromEntries(state.jobCounts) },
    },
    lists: {
      jobs: newestJobs(world, status).map(jobRow),
      deliveries: newest(state.deliveries).map((delivery) => deliveryRow(delivery, state.jobs.get(delivery.jobId))),
      requests: newest(state.requests).map((record) => requestRow(record, sandbox, url)),
      ledger: newest(account?.entries ?? []).map((entry, at) => ({
        key: `entry_${(account?.entries.length ?? 0) - at}`,
        ...entry,
      })),
    },
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
  return log.slice(-SHOWN).reverse();
}

function newestJobs({ state }: World, status: string | undefined): StoredJob[] {
  const found: StoredJob[] = [];
  const first = Math.max(0, state.jobIds.length - SEARCHED);
  for (let at = state.jobIds.length - 1; at >= first && found.length < SHOWN; at--) {
    const job = state.jobs.get(state.jobIds[at] ?? '');
    if (job !== undefined && (status === undefined || groupOf(job.status) === status)) found.push(job);
  }
  return found;
}

/** The filter of the page that a status belongs to. */
function groupOf(status: DocumentedStatus): string {
  if (status === 'created' || status === 'queued' || status === 'processing') return 'running';
  return status === 'completed' ? 'completed' : 'ended';
}

function jobRow(job: StoredJob) {
  const { kind, aspectRatio, resolution, durationS } = job.media;
  const isPicture = kind !== 'audio';
  const view = viewSandboxJob(job);
  return {
    key: job.id,
    ...view,
    warnings: job.warnings,
    isFinal: job.completedAt !== null,
    ...(isPicture ? dimensionsFor({ kind, aspectRatio, resolution }) : {}),
    details: [resolution, aspectRatio, durationS > 0 ? `${durationS} s` : ''].filter(Boolean).join(' · '),
    hasWebhook: job.webhookUrl !== null,
  };
}

function deliveryRow(delivery: DeliveryRecord, job: StoredJob | undefined) {
  const { id: key, at, type, url, attempt, reason, jobId, eventId, ok, status, error } = delivery;
  const isLatest = job?.deliveryCount === attempt;
  const title = job === undefined ? jobId : job.prompt.slice(0, TITLE_CHARS);
  return {
    key,
    at,
    type,
    url,
    attempt,
    reason,
    jobId,
    eventId,
    ok,
    title,
    isLatest,
    result: `${status ?? error ?? ''}`,
  };
}

function requestRow(record: RequestRecord, sandbox: SandboxService, url: string) {
  const { id: key, at, method, path, query, status, code, fault } = record;
  const result = [status ?? 'no answer', code, fault === null ? null : `fault: ${fault}`];
  const ok = status !== null && status < 400;
  return {
    key,
    at,
    method,
    path: path + query,
    ok,
    result: result.filter((part) => part !== null).join(' '),
    curl: curlOf(record, sandbox, url),
  };
}
