// The Durable Object and its store, with a fake runtime and a real SQLite database. For workerd, see one-account.test.ts.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { durableObjectStore, GenAccount } from '../../src/adapters/cloudflare/index.js';
import { GenError } from '../../src/errors/index.js';
import { openSql } from './sqlite.js';

const runtime = vi.hoisted(() => ({ pending: [] as Promise<unknown>[], hasWaitUntil: true }));
vi.mock('cloudflare:workers', () => ({
  DurableObject: class {
    readonly state: unknown;
    constructor(state: unknown) {
      this.state = state;
    }
  },
  get waitUntil() {
    return runtime.hasWaitUntil ? (work: Promise<unknown>) => runtime.pending.push(work) : undefined;
  },
}));

const START_MS = 1_700_000_000_000;
beforeEach(() => {
  vi.useFakeTimers({ now: START_MS });
  Object.assign(runtime, { pending: [], hasWaitUntil: true });
});
afterEach(() => {
  vi.useRealTimers();
});

const value = (text: string, ttlMs = 1_000) => ({ value: text, ttlMs });

describe('GenAccount', () => {
  const setup = () => {
    const alarms: number[] = [];
    const sql = openSql();
    const storage = {
      sql,
      alarms,
      transactions: 0,
      setAlarm: (timeMs: number) => alarms.push(timeMs),
      transactionSync<T>(write: () => T) {
        this.transactions++;
        return write();
      },
    };
    return { alarms, storage, account: new GenAccount({ storage }, {}) };
  };

  it('performs each write in one transaction', () => {
    const { account, storage } = setup();
    expect(account.write('g', '0', { a: value('1') })).toBe(true);
    expect(account.write('g', '0', { a: value('2') })).toBe(false);
    expect(account.read('g', ['a']).values).toEqual({ a: '1' });
    expect(storage.transactions).toBe(2);
  });

  it('schedules one alarm at a time, for the first expiry', () => {
    const { account, alarms } = setup();
    account.write('g', '1', {});
    expect(alarms).toEqual([]);
    account.write('g', '0', { a: value('1', 70_000) });
    account.write('h', '0', { a: value('1', 200_000) });
    expect(alarms).toEqual([START_MS + 70_001]);
    vi.setSystemTime(START_MS + 70_001);
    account.alarm();
    expect(alarms.slice(1)).toEqual([START_MS + 200_001]);
    vi.setSystemTime(START_MS + 200_001);
    account.alarm();
    expect(alarms).toHaveLength(2);
    account.write('g', '0', {});
    expect(alarms.slice(2)).toEqual([START_MS + 260_002]);
  });
});

describe('durableObjectStore', () => {
  type Stub = Record<'read' | 'write', (...values: unknown[]) => Promise<unknown>>;
  /** Creates a store whose object first fails with these errors, and logs its calls. */
  const binding = (...failures: unknown[]) => {
    const log: unknown[][] = [];
    const respond = async (...call: unknown[]) => {
      log.push(call);
      if (failures.length > 0) throw failures.shift();
      return call[0] === 'read' ? { version: '1', nowMs: 1, values: {} } : true;
    };
    const stub: Stub = {
      read: (...args) => respond('read', ...args),
      write: (...args) => respond('write', ...args),
    };
    const namespace = {
      idFromName: (name: string) => `id of ${name}`,
      get(id: unknown) {
        log.push([id]);
        return stub;
      },
    };
    const calls = () => log.filter(([name]) => name === 'read' || name === 'write');
    return { log, calls, store: durableObjectStore(namespace, 'main') };
  };
  /** Returns a call's result or error after a minute, or `pending`. */
  const afterMinute = async <T>(call: Promise<T>) => {
    const outcome = call.catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(60_000);
    return Promise.race([outcome, 'pending']);
  };

  it('sends requests to the object with the name', async () => {
    const { log, store } = binding();
    expect(await afterMinute(store.read('g', ['a']))).toEqual({ version: '1', nowMs: 1, values: {} });
    expect(await afterMinute(store.write('g', '1', { a: null }))).toBe(true);
    expect(log).toEqual([['id of main'], ['read', 'g', ['a']], ['id of main'], ['write', 'g', '1', { a: null }]]);
  });

  it('passes requests to waitUntil if the runtime has it, without an unhandled rejection', async () => {
    const { store } = binding(Object.assign(new Error('full'), { overloaded: true }));
    expect(await afterMinute(store.read('g', []))).toMatchObject({ message: 'full' });
    expect(await Promise.allSettled(runtime.pending)).toEqual([{ status: 'fulfilled', value: undefined }]);
    runtime.hasWaitUntil = false;
    expect(await afterMinute(store.read('g', []))).toMatchObject({ version: '1' });
  });

  it.each([
    [Object.assign(new Error('Too much to do.'), { overloaded: true }), 1],
    [Object.assign(new Error('Moved.'), { overloaded: false }), 5],
    [null, 5],
    ['moved', 5],
  ])('fails with %s after %i attempts', async (failure, times) => {
    const { store, calls } = binding(...Array.from({ length: 9 }, () => failure));
    expect(await afterMinute(store.read('g', []))).toBe(failure);
    expect(calls()).toHaveLength(times);
  });

  const NO_SQLITE =
    'The Durable Object has no SQLite. List GenAccount under new_sqlite_classes in the migrations of the Wrangler configuration, not under new_classes.';
  const NO_METHOD =
    'The binding does not point to a GenAccount. Bind a class that is exported with: export { GenAccount } from "gen-client/cloudflare".';
  it.each([
    ['SQL is not enabled for this Durable Object class.', NO_SQLITE],
    ['The RPC receiver does not implement the method "read".', NO_METHOD],
    ['The object does not have a method read', NO_METHOD],
    ['The receiver does not support RPC', NO_METHOD],
  ])('throws an error that explains how to fix the misconfiguration "%s"', async (reason, message) => {
    const failure = new Error(reason);
    const { store, calls } = binding(failure);
    const error = await afterMinute(store.read('g', []));
    expect(error).toBeInstanceOf(GenError);
    expect(error).toMatchObject({ message, cause: failure, recovery: 'fix_setup' });
    expect(calls()).toHaveLength(1);
  });

  it.each(['The script does not have a quota.', 'The method failed.'])('retries after "%s"', async (reason) => {
    const { store, calls } = binding(new Error(reason));
    expect(await afterMinute(store.read('g', []))).toMatchObject({ version: '1' });
    expect(calls()).toHaveLength(2);
  });

  const object = { idFromName() {}, get() {} };
  it.each([
    [undefined, 'main', 'namespace', 'the binding of a Durable Object, such as env.ACCOUNT'],
    [{ idFromName() {} }, 'main', 'namespace', 'the binding of a Durable Object, such as env.ACCOUNT'],
    [object, '', 'name', 'a non-empty string'],
    [object, 7, 'name', 'a non-empty string'],
  ])('throws for %j and %j: %s must be %s', (namespace, name, argument, expected) => {
    const create = () => durableObjectStore(namespace as never, name as never);
    expect(create).toThrow(GenError);
    expect(create).toThrow(`${argument} must be ${expected}, not `);
  });
});
