import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { clientStore } from '../../src/ledger/client-ledger.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { accountFor } from '../../src/store/account.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { created, freshKey, json, stubbed } from '../transport/support.js';
import { virtualClock } from '../waiting/virtual-clock.js';

const REGISTRY = Symbol.for('gen-client.accounts');
const registry = () =>
  Reflect.get(globalThis, REGISTRY) as { accounts: Map<string, unknown>; evicted: Map<string, WeakRef<object>> };
const openAccountsAt = (host: string) => {
  for (let tenant = 0; tenant < 1_600; tenant++) accountFor(`https://${host}.example`, `key-${tenant}`);
};

const warn = () => {};

/** Opens an account and a store on a manual clock. The store records its groups. */
function openAccount() {
  const clock = virtualClock();
  const memory = memoryStoreOn(clock);
  const groups = new Set<string>();
  const store: Store = clientStore({
    read: memory.read,
    write(group, ...rest) {
      groups.add(group);
      return memory.write(group, ...rest);
    },
  });
  return { clock, store, groups, account: accountFor('https://stored.example', 'key', { clock }) };
}

describe('an account', () => {
  it('is the same for all clients with the same base URL and API key, and different for others', () => {
    const account = accountFor('https://a.example', 'key-1');
    expect(accountFor('https://a.example', 'key-1')).toBe(account);
    expect(accountFor('https://a.example', 'key-2')).not.toBe(account);
    expect(accountFor('https://b.example', 'key-1')).not.toBe(account);
    // The boundary between URL and key must be unambiguous.
    expect(accountFor('https://a.example/k', 'ey-1')).not.toBe(accountFor('https://a.example/', 'key-1'));
  });

  it('is shared with another copy of the package', async () => {
    const account = accountFor('https://copy.example', 'key');
    vi.resetModules();
    const copy = await import('../../src/store/account.js');
    expect(copy.accountFor).not.toBe(accountFor);
    expect(copy.accountFor('https://copy.example', 'key')).toBe(account);
  });

  it('creates each shared object once, even if its name is a property of Object.prototype', () => {
    const account = accountFor('https://shared.example', 'key');
    for (const name of ['watcher', 'constructor', '__proto__', 'toString']) {
      const create = vi.fn(() => ({ name }));
      const object = account.shared(name, create);
      expect(object).toEqual({ name });
      expect(account.shared(name, create)).toBe(object);
      expect(create).toHaveBeenCalledOnce();
    }
  });

  it('contains no API key', () => {
    accountFor('https://secret.example', 'sk-very-secret-0123456789');
    const text = inspect(registry(), { depth: 10, showHidden: true, maxArrayLength: null, maxStringLength: null });
    expect(registry().accounts.size).toBeGreaterThan(0);
    expect(text).not.toContain('very-secret');
  });

  it('is evicted if it is idle and not among the 500 most recently used, once 1,000 accounts exist', () => {
    // Other tests' accounts may still be in use.
    registry().accounts.clear();
    openAccountsAt('before');
    const frequent = accountFor('https://often.example', 'key');
    const sizes = new Set<number>();
    for (let tenant = 0; tenant < 2_100; tenant++) {
      accountFor('https://crowd.example', `key-${tenant}`);
      accountFor('https://often.example', 'key');
      sizes.add(registry().accounts.size);
    }
    expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([500, 1_000]);
    expect([...registry().accounts.values()]).toContain(frequent);
    const reopened = accountFor('https://crowd.example', 'key-0');
    expect([...registry().evicted.values()].map((ref) => ref.deref())).not.toContain(reopened);
  });

  it('is retained while one of its clients exists, however many others are created', async () => {
    vi.useFakeTimers();
    const apiKey = freshKey();
    const open = () => stubbed(() => json(created()), { apiKey }).client;
    const first = open();
    await first.jobs.get('job_1');
    await vi.advanceTimersByTimeAsync(120_000);
    openAccountsAt('others');
    const second = open();
    await second.jobs.get('job_1');
    const creates = Array.from({ length: DOCUMENTED_LIMITS['videos.create'].limit }, () =>
      first.videos.create({ prompt: 'x' }),
    );
    await Promise.all(creates);
    expect(second.limits()['videos.create']).toMatchObject({ free: 0 });
    vi.useRealTimers();
  });

  it('is removed after its eviction once no client references it', () => {
    openAccountsAt('referenced');
    const { size } = registry().evicted;
    const CollectedRef = class {
      deref() {}
    };
    vi.stubGlobal('WeakRef', CollectedRef);
    openAccountsAt('collected');
    vi.unstubAllGlobals();
    expect(registry().evicted.size).toBeLessThanOrEqual(size + 500);
  });

  it("has a stable ID that doesn't reveal its API key", () => {
    expect(accountFor('https://named.example', 'sk-key').id).toBe('6af97bc0c42fc6eedbd66a6fa12baf5f');
    const [first, second] = ['sk-1', 'sk-2'].map((key) => accountFor('https://named.example', key, { name: 'main' }));
    expect(first?.id).toBe('cd8460ab319d6ea63bf6979a586c99f9');
    expect(first).toBe(second);
  });

  it('has the same rate limits for all clients with the same settings', () => {
    const account = accountFor('https://limits.example', 'key');
    const limits = { 'videos.create': { limit: 5, windowMs: 1_000 } };
    expect(account.limitsFor({ limits: { ...limits } })).toBe(account.limitsFor({ limits }));
    expect(account.limitsFor({ limits })).not.toBe(account.limitsFor({}));
    expect(account.limitsFor({ limits }).snapshot()['videos.create']).toMatchObject({ limit: 5, windowMs: 1_000 });
    const unlimited = { 'videos.create': { limit: Number.POSITIVE_INFINITY } };
    expect(account.limitsFor({ limits: unlimited })).toBe(account.limitsFor({ limits: { ...unlimited } }));
    expect(account.limitsFor({ limits: unlimited })).not.toBe(account.limitsFor({ limits }));
  });

  it('has one count for clients with equal limits, even if other settings differ', async () => {
    const account = accountFor('https://one-count.example', 'key');
    const other = account.limitsFor({ limits: { 'jobs.get': { limit: 5, windowMs: 1_000 } } });
    (await account.limitsFor({}).acquire('videos.create', { warn }))();
    expect(other.snapshot()['videos.create']).toMatchObject({ free: DOCUMENTED_LIMITS['videos.create'].limit - 1 });
  });

  it('has one queue for all clients of a process with the same limits and store', async () => {
    const { account, store, clock } = openAccount();
    const limits = { 'videos.create': { limit: 1, windowMs: 60_000 } };
    const [first, second] = [account.limitsFor({ store, limits }), account.limitsFor({ store, limits: { ...limits } })];
    const slot = await clock.until(first.acquire('videos.create', { warn }));
    const waiting = first.acquire('videos.create', { warn });
    await clock.advance(0);
    expect(second.snapshot()['videos.create']).toMatchObject({ free: 0, queued: 1 });
    slot('unused');
    (await clock.until(waiting))();
  });

  it('shares only its rate limits with other processes', async () => {
    const { account, store, clock, groups } = openAccount();
    const limits = account.limitsFor({ store });
    (await clock.until(limits.acquire('videos.create', { warn })))();
    account.learned.prices.learn('a', 5);
    account.learned.durations.learn('b', 1_000);
    await clock.advance(5_000);
    expect([...groups].sort()).toEqual([`${account.id}/limits/videos.create`]);
  });
});
