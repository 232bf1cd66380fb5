import { GenError } from '../errors/gen-error.js';
import * as option from '../rules/options.js';
import { nextTurn, systemClock, systemRandom } from '../runtime/clock.js';
import { sleep } from '../runtime/deadline.js';
import type { Store, StoreChanges } from '../store/port.js';

const realPause = (ms: number) => sleep(systemClock, ms);

/** Options of {@link checkStore}. */
export interface CheckStoreOptions {
  /** Advances the store's clock by `ms` milliseconds. @default waits in real time, about five seconds in total */
  readonly advance?: ((ms: number) => unknown) | undefined;
}

const OPTIONS = option.optionsOf({ advance: option.callback });

/**
 * Checks your own store against the contract that rate limits, budgets, and the ledger rely on. `make` returns a new store.
 * The check writes only to groups with unique names. Throws a GenError that describes the first violation.
 *
 * @example
 * await checkStore(() => memoryStore()); // in a test, with yours
 */
export async function checkStore(make: () => Store | Promise<Store>, options: CheckStoreOptions = {}): Promise<void> {
  option.checkOptions('checkStore', OPTIONS, options);
  const { advance } = options;
  const store = await make();
  const run = systemRandom.uuid();
  let groups = 0;
  for (const [says, attempt] of SENTENCES) {
    const trial: Trial = {
      store,
      isReal: advance === undefined,
      group: () => `check ${run} ${++groups}`,
      pass: async (ms) => void (await (advance ?? realPause)(ms)),
      holds(condition, seen) {
        if (!condition) throw new GenError(`The store breaks its contract: ${says}. Seen: ${seen}.`);
      },
    };
    await attempt(trial).catch((cause: unknown) => {
      if (GenError.isInstance(cause)) throw cause;
      throw new GenError(`The store failed where it must not: ${says}. ${String(cause)}`, { cause });
    });
  }
}

interface Trial {
  readonly store: Store;
  /** Returns a unique group name. */
  group(): string;
  /** If true, the store uses real time. */
  readonly isReal: boolean;
  /** Advances the store's clock. */
  pass(ms: number): Promise<void>;
  /** Throws the current sentence if the condition is false. */
  holds(condition: boolean, seen: string): void;
}

/** A promise of the contract, and its test. */
type Sentence = readonly [says: string, attempt: (trial: Trial) => Promise<void>];

/** After this time, every store has deleted its expired values. */
const FORGOTTEN_MS = 30 * 86_400_000;
/** A TTL longer than the check takes. */
const HOUR_MS = 3_600_000;
/** Times below and above whole seconds. */
const TIMES_MS = [300, 1_300, 1_700];
/** Tolerance, because a value may expire between a read and its response. */
const SLACK_MS = 100;
const LOOK_MS = 50;
const MOST_LOOKS = 200;
const WRITERS = 12;
const WRITES_EACH = 4;
/** After this many conflicts in a row, a writer counts as starved. */
const MOST_LOST = 2_000;
/** Number of writes to other groups that triggers a store's cleanup. */
const OTHER_WRITES = 260;

const set = (value: string, ttlMs = HOUR_MS) => ({ value, ttlMs });
const valueIn = async (store: Store, group: string, key: string) => (await store.read(group, [key])).values[key];

async function put(store: Store, group: string, changes: StoreChanges): Promise<boolean> {
  const { version } = await store.read(group, []);
  return store.write(group, version, changes);
}

const SENTENCES: readonly Sentence[] = [
  [
    'read returns { version, nowMs, values }: a text, the time in milliseconds, and the values of the keys that exist',
    async ({ store, group, isReal, holds }) => {
      const { version, nowMs, values } = await store.read(group(), ['a', 'b']);
      holds(typeof version === 'string', `version is a ${typeof version}`);
      // Catches a clock in seconds: as milliseconds, it would be in the 1970s.
      holds(Number.isFinite(nowMs) && !(isReal && nowMs < 1e11), `nowMs is ${String(nowMs)}`);
      holds(typeof values === 'object' && Object.keys(values).length === 0, 'an empty group has values');
    },
  ],
  [
    'read returns a value unchanged, under exactly its group and key',
    async ({ store, group, holds }) => {
      const texts = ['', '0', 'null', '{"a":[1]}', ' ünïcode 🦊 ', 'a\nb\'"\\%_', 'x'.repeat(20_000)];
      const [name, other] = [`${group()} {weird} ü%'`, group()];
      const changes = Object.fromEntries(texts.map((text, at) => [`{ü} %' ${at}`, set(text)]));
      const [first = ''] = Object.keys(changes);
      holds(await put(store, name, changes), 'the first write of a group was refused');
      await put(store, other, { [first]: set('of another group') });
      const { values } = await store.read(name, [...Object.keys(changes), 'other']);
      for (const [key, { value }] of Object.entries(changes)) holds(values[key] === value, `another value of "${key}"`);
      holds(!('other' in values), 'a value of a key that was never written');
    },
  ],
  [
    'a write under a version that is no longer the present one resolves with false and writes nothing',
    async ({ store, group, holds }) => {
      const name = group();
      const { version: first } = await store.read(name, []);
      holds(await store.write(name, first, { a: set('1') }), 'a write under the present version was refused');
      const { version: second } = await store.read(name, ['a']);
      holds(second !== first, 'a write has not changed the version');
      holds(!(await store.write(name, first, { a: set('late'), b: set('late') })), 'a late write was accepted');
      holds(await store.write(name, second, { a: set('2') }), 'a write under the present version was refused');
      holds(!(await store.write(name, second, { b: set('late') })), 'a second write under one version was accepted');
      const { values } = await store.read(name, ['a', 'b']);
      holds(values.a === '2' && !('b' in values), 'a refused write has written something');
    },
  ],
  [
    'a deletion takes the value away and changes the version',
    async ({ store, group, holds }) => {
      // One key, one key beside a new value, and all keys.
      const deletions: readonly StoreChanges[] = [{ a: null }, { b: null, a: set('2') }, { a: null, b: null }];
      for (const changes of deletions) {
        const name = group();
        await put(store, name, { a: set('1'), b: set('1') });
        const { version } = await store.read(name, ['a', 'b']);
        holds(await store.write(name, version, changes), 'a deletion was refused');
        holds(!(await store.write(name, version, { c: set('late') })), 'a late write after a deletion was accepted');
        const { values } = await store.read(name, Object.keys(changes));
        for (const [key, change] of Object.entries(changes))
          holds(values[key] === change?.value, 'a deleted key has its value, or its neighbour has another one');
      }
    },
  ],
  [
    'a read returns all of a write or none of it, with its version',
    async ({ store, group, holds }) => {
      const name = group();
      const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
      const ofVersion = new Map<string, string | undefined>();
      let isWriting = true;
      const look = async () => {
        while (isWriting) {
          const { version, values } = await store.read(name, keys);
          const found = new Set(keys.map((key) => values[key]));
          holds(found.size === 1, 'a read has values of two writes');
          const [value] = found;
          if (ofVersion.has(version)) holds(ofVersion.get(version) === value, 'two reads of one version differ');
          ofVersion.set(version, value);
          await nextTurn();
        }
      };
      const write = async () => {
        for (let at = 0; at < 30; at++) {
          await put(store, name, Object.fromEntries(keys.map((key) => [key, set(String(at))])));
          await nextTurn();
        }
      };
      const written = write().finally(() => {
        isWriting = false;
      });
      await Promise.all([look(), look(), look(), written]);
    },
  ],
  [
    `of ${WRITERS} concurrent writers, each update counts`,
    async ({ store, group, holds }) => {
      const name = group();
      const add = async () => {
        for (let lost = 0; ; lost++) {
          holds(lost < MOST_LOST, 'a writer never wins');
          const { version, values } = await store.read(name, ['n']);
          if (await store.write(name, version, { n: set(String(Number(values.n ?? 0) + 1)) })) return;
          await nextTurn();
        }
      };
      const writer = async () => {
        for (let at = 0; at < WRITES_EACH; at++) await add();
      };
      await Promise.all(Array.from({ length: WRITERS }, writer));
      const [found, made] = [await valueIn(store, name, 'n'), String(WRITERS * WRITES_EACH)];
      holds(found === made, `${made} updates were accepted, and ${found} are there`);
    },
  ],
  [
    'a new value has its own time to live, not that of the previous value',
    async ({ store, group, pass, holds }) => {
      const [longer, shorter] = [group(), group()];
      await put(store, longer, { a: set('1', 600), b: set('1') });
      await put(store, shorter, { a: set('1'), b: set('1') });
      await put(store, longer, { a: set('2') });
      await put(store, shorter, { a: set('2', 600) });
      await pass(1_500);
      holds((await valueIn(store, longer, 'a')) === '2', 'a value for an hour ended with the time of the one before');
      holds((await valueIn(store, shorter, 'a')) === undefined, 'a value for 600 ms has the time of the one before');
    },
  ],
  [
    'a value lives for its ttlMs, to the millisecond and not in whole seconds',
    async (trial) => {
      await Promise.all(TIMES_MS.map((ttlMs) => livesFor(trial, ttlMs)));
    },
  ],
  [
    'a version is never reused, even after everything in the group has expired and was removed',
    async ({ store, group, isReal, pass, holds }) => {
      // The first expires, the second is deleted.
      const seen = [group(), group()].map((name) => ({ name, versions: new Set<string>() }));
      for (let round = 0; round < 2; round++) {
        for (const { name, versions } of seen) {
          for (let write = 0; write < 3; write++) {
            await put(store, name, { a: set(`${round}/${write}`, 400) });
            const { version } = await store.read(name, ['a']);
            holds(!versions.has(version), `version ${version} came again`);
            for (const old of versions)
              holds(!(await store.write(name, old, { a: set('late') })), 'a late write was accepted');
            versions.add(version);
          }
        }
        await put(store, seen[1]?.name ?? '', { a: null });
        await pass(isReal ? 800 : FORGOTTEN_MS);
        const others = Array.from({ length: 20 }, async () => {
          for (let at = 0; at < OTHER_WRITES / 20; at++) await put(store, group(), { a: set('1', 50) });
        });
        await Promise.all(others);
      }
    },
  ],
  [
    'publish and subscribe are both present, and a message reaches each listener of its topic until it stops',
    async ({ store, group, holds }) => {
      holds((store.publish === undefined) === (store.subscribe === undefined), 'only one of the two is there');
      if (!store.publish || !store.subscribe) return;
      const [topic, other] = [group(), group()];
      let [heard, strange] = [0, 0];
      const stop = store.subscribe(topic, (message) => (message === 'm' ? heard++ : strange++));
      const stopOther = store.subscribe(other, () => strange++);
      // The store may need a moment to open a separate connection.
      for (let tries = 0; heard === 0; tries++) {
        holds(tries < MOST_LOOKS / 4, 'no message came');
        await store.publish(topic, 'm');
        await realPause(LOOK_MS);
      }
      stop();
      stopOther();
      holds(strange === 0, 'a message of another topic, or another message');
      const before = heard;
      await store.publish(topic, 'm');
      await realPause(LOOK_MS);
      holds(heard === before, 'a message after the listener has stopped');
    },
  ],
];

/** Polls a value until it has expired. */
async function livesFor({ store, group, pass, holds }: Trial, ttlMs: number): Promise<void> {
  const name = group();
  const { nowMs: before, version } = await store.read(name, []);
  await store.write(name, version, { a: set('1', ttlMs) });
  let { nowMs, values } = await store.read(name, ['a']);
  const after = nowMs;
  for (let looks = 0; nowMs <= after + ttlMs + SLACK_MS; looks++) {
    holds(looks < MOST_LOOKS, 'nowMs does not go on');
    if (nowMs < before + ttlMs - SLACK_MS) holds('a' in values, `a value for ${ttlMs} ms ended before its time`);
    await pass(LOOK_MS);
    ({ nowMs, values } = await store.read(name, ['a']));
  }
  holds(!('a' in values), `a value for ${ttlMs} ms was there after its time`);
}
