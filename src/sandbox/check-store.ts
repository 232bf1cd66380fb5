import { GenError } from '../errors/gen-error.js';
import * as option from '../rules/options.js';
import { nextTurn, systemClock, systemRandom } from '../runtime/clock.js';
import { sleep } from '../runtime/deadline.js';
import type { Store, StoreChanges } from '../store/port.js';

const realPause = (ms: number) => sleep(systemClock, ms);

/** Options for {@link checkStore}. */
export interface CheckStoreOptions {
  /** Advances the store's clock by `ms` milliseconds. @default waits in real time, about five seconds in total */
  readonly advance?: ((ms: number) => unknown) | undefined;
}

const OPTIONS = option.optionsOf({ advance: option.callback });

/**
 * Tests a custom store for the behavior that rate limits, budgets, and creates rely on. Writes only to groups with unique
 * names. Throws a GenError that describes the first violation.
 *
 * @example
 * await checkStore(() => memoryStore()); // in a test, with your store
 */
export async function checkStore(create: () => Store | Promise<Store>, options: CheckStoreOptions = {}): Promise<void> {
  option.checkOptions('checkStore', OPTIONS, options);
  const { advance } = options;
  const store = await create();
  const run = systemRandom.uuid();
  let groups = 0;
  for (const [rule, check] of RULES) {
    const context: CheckContext = {
      store,
      isReal: advance === undefined,
      group: () => `check ${run} ${++groups}`,
      advance: async (ms) => void (await (advance ?? realPause)(ms)),
      assert(condition, observed) {
        if (!condition) throw new GenError(`The store violates its contract: ${rule}. Observed: ${observed}.`);
      },
    };
    await check(context).catch((cause: unknown) => {
      if (GenError.isInstance(cause)) throw cause;
      throw new GenError(`checkStore: the store threw an error while checking that ${rule}. ${String(cause)}`, {
        cause,
      });
    });
  }
}

interface CheckContext {
  readonly store: Store;
  /** Returns a unique group name. */
  group(): string;
  /** If true, the store uses real time. */
  readonly isReal: boolean;
  /** Advances the store's clock. */
  advance(ms: number): Promise<void>;
  /** Throws an error with the current rule if the condition is false. */
  assert(condition: boolean, observed: string): void;
}

type Rule = readonly [rule: string, check: (context: CheckContext) => Promise<void>];

/** By this time, every store has deleted its expired values. */
const DELETED_AFTER_MS = 30 * 86_400_000;
/** A TTL longer than the check takes. */
const HOUR_MS = 3_600_000;
/** TTLs that aren't whole seconds. */
const TTLS_MS = [300, 1_300, 1_700];
/** Tolerance, because a value may expire between a read and its response. */
const SLACK_MS = 100;
const POLL_MS = 50;
const MAX_POLLS = 200;
const WRITERS = 12;
const WRITES_EACH = 4;
/** After this many conflicts in a row, a writer counts as starved. */
const MAX_CONFLICTS = 2_000;
/** Number of writes to other groups that triggers a store's cleanup. */
const OTHER_WRITES = 260;

const set = (value: string, ttlMs = HOUR_MS) => ({ value, ttlMs });
const valueIn = async (store: Store, group: string, key: string) => (await store.read(group, [key])).values[key];

async function put(store: Store, group: string, changes: StoreChanges): Promise<boolean> {
  const { version } = await store.read(group, []);
  return store.write(group, version, changes);
}

const RULES: readonly Rule[] = [
  [
    'read returns { version, nowMs, values }: a string, the time in milliseconds, and the values of the keys that exist',
    async ({ store, group, isReal, assert }) => {
      const { version, nowMs, values } = await store.read(group(), ['a', 'b']);
      assert(typeof version === 'string', `version is a ${typeof version}`);
      // Catches a clock in seconds: as milliseconds, it would be in the 1970s.
      assert(Number.isFinite(nowMs) && !(isReal && nowMs < 1e11), `nowMs is ${String(nowMs)}`);
      assert(typeof values === 'object' && Object.keys(values).length === 0, 'an empty group has values');
    },
  ],
  [
    'read returns a value unchanged, under its exact group and key',
    async ({ store, group, assert }) => {
      const texts = ['', '0', 'null', '{"a":[1]}', ' ünïcode 🦊 ', 'a\nb\'"\\%_', 'x'.repeat(20_000)];
      const [name, otherGroup] = [`${group()} {weird} ü%'`, group()];
      const changes = Object.fromEntries(texts.map((text, at) => [`{ü} %' ${at}`, set(text)]));
      const [firstKey = ''] = Object.keys(changes);
      assert(await put(store, name, changes), 'the first write of a group was rejected');
      await put(store, otherGroup, { [firstKey]: set('another group') });
      const { values } = await store.read(name, [...Object.keys(changes), 'other']);
      for (const [key, { value }] of Object.entries(changes))
        assert(values[key] === value, `a different value of "${key}"`);
      assert(!('other' in values), 'a value for a key that was never written');
    },
  ],
  [
    'a write with an outdated version resolves to false and writes nothing',
    async ({ store, group, assert }) => {
      const name = group();
      const { version: firstVersion } = await store.read(name, []);
      assert(await store.write(name, firstVersion, { a: set('1') }), 'a write with the current version was rejected');
      const { version: secondVersion } = await store.read(name, ['a']);
      assert(secondVersion !== firstVersion, "a write didn't change the version");
      assert(
        !(await store.write(name, firstVersion, { a: set('late'), b: set('late') })),
        'an outdated write was accepted',
      );
      assert(await store.write(name, secondVersion, { a: set('2') }), 'a write with the current version was rejected');
      assert(
        !(await store.write(name, secondVersion, { b: set('late') })),
        'a second write with the same version was accepted',
      );
      const { values } = await store.read(name, ['a', 'b']);
      assert(values.a === '2' && !('b' in values), 'a rejected write changed a value');
    },
  ],
  [
    'a deletion removes the value and changes the version',
    async ({ store, group, assert }) => {
      // One key, one key together with a new value, and all keys.
      const deletions: readonly StoreChanges[] = [{ a: null }, { b: null, a: set('2') }, { a: null, b: null }];
      for (const changes of deletions) {
        const name = group();
        await put(store, name, { a: set('1'), b: set('1') });
        const { version } = await store.read(name, ['a', 'b']);
        assert(await store.write(name, version, changes), 'a deletion was rejected');
        assert(!(await store.write(name, version, { c: set('late') })), 'a write with the version before was accepted');
        const { values } = await store.read(name, Object.keys(changes));
        for (const [key, change] of Object.entries(changes))
          assert(values[key] === change?.value, 'a deleted key still has a value, or another key lost its own');
      }
    },
  ],
  [
    'a read returns all of a write or none of it, with the matching version',
    async ({ store, group, assert }) => {
      const name = group();
      const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
      const valueByVersion = new Map<string, string | undefined>();
      let isWriting = true;
      const reader = async () => {
        while (isWriting) {
          const { version, values } = await store.read(name, keys);
          const distinctValues = new Set(keys.map((key) => values[key]));
          assert(distinctValues.size === 1, 'a read returned values of two writes');
          const [value] = distinctValues;
          if (valueByVersion.has(version)) {
            assert(valueByVersion.get(version) === value, 'two reads of the same version differ');
          }
          valueByVersion.set(version, value);
          await nextTurn();
        }
      };
      const writer = async () => {
        for (let at = 0; at < 30; at++) {
          await put(store, name, Object.fromEntries(keys.map((key) => [key, set(String(at))])));
          await nextTurn();
        }
      };
      const writing = writer().finally(() => {
        isWriting = false;
      });
      await Promise.all([reader(), reader(), reader(), writing]);
    },
  ],
  [
    `${WRITERS} concurrent writers lose no update`,
    async ({ store, group, assert }) => {
      const name = group();
      const add = async () => {
        for (let conflicts = 0; ; conflicts++) {
          assert(conflicts < MAX_CONFLICTS, 'a writer never succeeded');
          const { version, values } = await store.read(name, ['n']);
          if (await store.write(name, version, { n: set(String(Number(values.n ?? 0) + 1)) })) return;
          await nextTurn();
        }
      };
      const writer = async () => {
        for (let at = 0; at < WRITES_EACH; at++) await add();
      };
      await Promise.all(Array.from({ length: WRITERS }, writer));
      const [storedCount, acceptedCount] = [await valueIn(store, name, 'n'), String(WRITERS * WRITES_EACH)];
      assert(
        storedCount === acceptedCount,
        `${acceptedCount} updates were accepted, but only ${storedCount} are stored`,
      );
    },
  ],
  [
    'a new value has its own TTL, not that of the previous value',
    async ({ store, group, advance, assert }) => {
      const [extendedGroup, shortenedGroup] = [group(), group()];
      await put(store, extendedGroup, { a: set('1', 600), b: set('1') });
      await put(store, shortenedGroup, { a: set('1'), b: set('1') });
      await put(store, extendedGroup, { a: set('2') });
      await put(store, shortenedGroup, { a: set('2', 600) });
      await advance(1_500);
      assert((await valueIn(store, extendedGroup, 'a')) === '2', 'a value kept the previous, shorter TTL');
      assert((await valueIn(store, shortenedGroup, 'a')) === undefined, 'a value kept the previous, longer TTL');
    },
  ],
  [
    "a value expires after its ttlMs, which isn't rounded to seconds",
    async (context) => {
      await Promise.all(TTLS_MS.map((ttlMs) => checkTtl(context, ttlMs)));
    },
  ],
  [
    'a version is never reused, even after the entire group has expired and was deleted',
    async ({ store, group, isReal, advance, assert }) => {
      // The first group expires, the second is deleted.
      const groups = [group(), group()].map((name) => ({ name, versions: new Set<string>() }));
      for (let round = 0; round < 2; round++) {
        for (const { name, versions } of groups) {
          for (let write = 0; write < 3; write++) {
            await put(store, name, { a: set(`${round}/${write}`, 400) });
            const { version } = await store.read(name, ['a']);
            assert(!versions.has(version), `version ${version} was reused`);
            for (const oldVersion of versions)
              assert(!(await store.write(name, oldVersion, { a: set('late') })), 'an outdated write was accepted');
            versions.add(version);
          }
        }
        await put(store, groups[1]?.name ?? '', { a: null });
        await advance(isReal ? 800 : DELETED_AFTER_MS);
        const otherWrites = Array.from({ length: 20 }, async () => {
          for (let at = 0; at < OTHER_WRITES / 20; at++) await put(store, group(), { a: set('1', 50) });
        });
        await Promise.all(otherWrites);
      }
    },
  ],
  [
    'publish and subscribe are both present, and a message reaches every listener of its topic until it unsubscribes',
    async ({ store, group, assert }) => {
      assert((store.publish === undefined) === (store.subscribe === undefined), 'only one of the two is present');
      if (!store.publish || !store.subscribe) return;
      const [topic, otherTopic] = [group(), group()];
      let [received, unexpected] = [0, 0];
      const stop = store.subscribe(topic, (message) => (message === 'm' ? received++ : unexpected++));
      const stopOther = store.subscribe(otherTopic, () => unexpected++);
      // The store may need a moment to open a separate connection.
      for (let polls = 0; received === 0; polls++) {
        assert(polls < MAX_POLLS / 4, 'no message arrived');
        await store.publish(topic, 'm');
        await realPause(POLL_MS);
      }
      stop();
      stopOther();
      assert(unexpected === 0, 'a message from another topic, or a changed message');
      const receivedCount = received;
      await store.publish(topic, 'm');
      await realPause(POLL_MS);
      assert(received === receivedCount, 'a message after the listener unsubscribed');
    },
  ],
];

async function checkTtl({ store, group, advance, assert }: CheckContext, ttlMs: number): Promise<void> {
  const name = group();
  const { nowMs: beforeWriteMs, version } = await store.read(name, []);
  await store.write(name, version, { a: set('1', ttlMs) });
  let { nowMs, values } = await store.read(name, ['a']);
  const afterWriteMs = nowMs;
  for (let polls = 0; nowMs <= afterWriteMs + ttlMs + SLACK_MS; polls++) {
    assert(polls < MAX_POLLS, "nowMs doesn't advance");
    if (nowMs < beforeWriteMs + ttlMs - SLACK_MS)
      assert('a' in values, `a value with a TTL of ${ttlMs} ms expired early`);
    await advance(POLL_MS);
    ({ nowMs, values } = await store.read(name, ['a']));
  }
  assert(!('a' in values), `a value with a TTL of ${ttlMs} ms didn't expire`);
}
