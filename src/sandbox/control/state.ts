import type { Sandbox } from '../contract.js';
import type { DeliveryRecord, LedgerView, RequestRecord } from '../world/records.js';
import { toCurl } from './curl.js';

/** How many of each the page shows; the lists by themselves give all. */
const SHOWN = 100;
/** A body that the log may have cut. */
const CUT_CHARS = 2000;

/** The sandbox as its page shows it, newest first. */
export function pageState(sandbox: Sandbox, origin: string) {
  const ledger = sandbox.ledger();
  return {
    url: `${origin}${prefixOf(sandbox)}`,
    apiKey: sandbox.apiKey,
    webhookSecret: sandbox.webhookSecret,
    now: new Date(sandbox.now()).toISOString().slice(0, 19).replace('T', ' '),
    balance: { balanceTokens: ledger.balanceTokens, reservedTokens: ledger.reservedTokens },
    jobs: newest(sandbox.jobs),
    deliveries: newest(sandbox.deliveries).map(deliveryRow),
    requests: newest(sandbox.requests).map((record) => requestRow(record, sandbox, origin)),
    ledger: newest(withBalance(ledger.entries)),
  };
}

/** A logged request as a curl command, with the main key where the log has cut a key out. */
export function curlOf(record: RequestRecord, sandbox: Sandbox, origin: string): string {
  const isMain = record.account === null || record.account === sandbox.accounts[0];
  const key = isMain ? sandbox.apiKey : 'YOUR_API_KEY';
  const headers = Object.entries(record.headers).map(([name, value]) => [name, value.replace('[redacted]', () => key)]);
  const { method, body } = record;
  return toCurl({
    method,
    url: `${origin}${prefixOf(sandbox)}${record.path}${record.query}`,
    headers: Object.fromEntries(headers),
    ...(body !== null && body.length >= CUT_CHARS ? { bodyFile: 'body.json' } : { body }),
  });
}

/** The path below which the API is, or nothing. */
function prefixOf(sandbox: Sandbox): string {
  return new URL(sandbox.baseUrl).pathname.replace(/\/$/, '');
}

function newest<T>(log: readonly T[]): T[] {
  return log.slice(-SHOWN).reverse();
}

function deliveryRow(delivery: DeliveryRecord) {
  const { id: key, at, type, url, attempt, jobId, eventId, ok } = delivery;
  return { key, at, type, url, attempt, jobId, eventId, ok, result: `${delivery.status ?? delivery.error ?? ''}` };
}

function requestRow(record: RequestRecord, sandbox: Sandbox, origin: string) {
  const { id: key, at, method, path, query, status, code, fault } = record;
  const result = [status ?? 'no answer', code, fault === null ? null : `fault: ${fault}`].filter(
    (part) => part !== null,
  );
  const ok = status !== null && status < 400;
  return { key, at, method, path: path + query, ok, result: result.join(' '), curl: curlOf(record, sandbox, origin) };
}

/** What was free after each entry. */
function withBalance(entries: LedgerView['entries']) {
  let balance = 0;
  return entries.map((entry) => {
    if (entry.type === 'reserve') balance -= entry.tokens;
    else if (entry.type !== 'charge') balance += entry.tokens;
    return { ...entry, kind: entry.type, balance };
  });
}
