// The contract of a store, as sentences that hold or do not.

import { nextTurn } from '../runtime/clock.js';
import type { Store, StoreChanges } from '../store/port.js';
import { realPause } from './world/real-time.js';

/** A store that is tried, with names that nobody else uses. */
export interface Trial {
  readonly store: Store;
  /** A new name of a group. */
  group(): string;
  /** Whether the store's clock is the real one. */
  readonly isReal: boolean;
  /** Lets time pass for the store. */
  pass(ms: number): Promise<void>;
}

/** Throws the sentence where it does not hold. */
export interface Sentence {
  readonly says: string;
  /** Tries it. `holds` throws when the condition is false. */
  try(trial: Trial, holds: (condition: boolean, seen: string) => void): Promise<void>;
}

const FIRST_KEY = "{ü} %' 0";
/** After this time, no store remembers what is over. */
const FORGOTTEN_MS = 30 * 86_400_000;
/** Long enough to live through the check. */
const HOUR_MS = 3_600_000;
/** Times below and above whole seconds. */
const TIMES_MS = [300, 1_300, 1_700];
/** Between a read and its answer, a time may end. */
const SLACK_MS = 100;
const LOOK_MS = 50;
const MOST_LOOKS = 200;
const WRITERS = 12;
const WRITES_EACH = 4;
/** A writer that loses so often in a row will never win. */
const MOST_LOST = 2_000;
/** Writes to other groups, after which stores forget what is over. */
const OTHER_WRITES = 260;

const set = (value: string, ttlMs = HOUR_MS) => ({ value, ttlMs });

async function put(store: Store, group: string, changes: StoreChanges): Promise<boolean> {
  const { version } = await store.read(group, []);
  return store.write(group, version, changes);
}

const valueIn = async (store: Store, group: string, key: string) => (await store.read(group, [key])).values[key];

const shape: Sentence = {
  says: 'read answers { version, nowMs, values }: a text, the time in milliseconds, and the values of the keys that exist',
  async try({ store, group, isReal }, holds) {
    const { version, nowMs, values } = await store.read(group(), ['a', 'b']);
    holds(typeof version === 'string', `version is a ${typeof version}`);
    // The year 2001 in seconds would be before 1971 in milliseconds.
    holds(Number.isFinite(nowMs) && !(isReal && nowMs < 1e11), `nowMs is ${String(nowMs)}`);
    holds(typeof values === 'object' && Object.keys(values).length === 0, 'an empty group has values');
  },
};

const exact: Sentence = {
  says: 'a value is given back exactly, under exactly its group and key',
  async try({ store, group }, holds) {
    const texts = ['', '0', 'null', '{"a":[1]}', ' ünïcode 🦊 ', 'a\nb\'"\\%_', 'x'.repeat(20_000)];
    const name = `${group()} {weird} ü%'`;
    const changes = Object.fromEntries(texts.map((text, at) => [`{ü} %' ${at}`, set(text)]));
    holds(await put(store, name, changes), 'the first write of a group was refused');
    const { values } = await store.read(name, [...Object.keys(changes), 'other']);
    for (const [key, { value }] of Object.entries(changes)) holds(values[key] === value, `another value of "${key}"`);
    holds(!('other' in values), 'a value of a key that was never written');
    const other = group();
    await put(store, other, { [FIRST_KEY]: set('other') });
    holds((await valueIn(store, name, FIRST_KEY)) === '', 'the value of another group');
  },
};

const onceForEachVersion: Sentence = {
  says: 'a write under a version that is no longer the present one resolves with false and writes nothing',
  async try({ store, group }, holds) {
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
};

const deletions: Sentence = {
  says: 'a deletion takes the value away and changes the version',
  async try({ store, group }, holds) {
    for (const changes of [{ a: null }, { b: null, a: set('2') }] as StoreChanges[]) {
      const name = group();
      await put(store, name, { a: set('1'), b: set('1') });
      const { version } = await store.read(name, ['a', 'b']);
      holds(await store.write(name, version, changes), 'a deletion was refused');
      holds(!(await store.write(name, version, { c: set('late') })), 'a late write after a deletion was accepted');
      const { values } = await store.read(name, Object.keys(changes));
      for (const [key, change] of Object.entries(changes))
        holds(values[key] === change?.value, 'a deleted key has its value, or its neighbour has another one');
    }
    const name = group();
    await put(store, name, { a: set('1') });
    const { version } = await store.read(name, ['a']);
    await store.write(name, version, { a: null });
    holds(!(await store.write(name, version, { a: set('late') })), 'a late write after the last deletion was accepted');
  },
};

const timesToLive: Sentence = {
  says: 'a value lives for its ttlMs, to the millisecond and not in whole seconds',
  async try({ store, group, pass }, holds) {
    await Promise.all(
      TIMES_MS.map(async (ttlMs) => {
        const name = group();
        const { nowMs: before, version } = await store.read(name, []);
        await store.write(name, version, { a: set('1', ttlMs) });
        let { nowMs, values } = await store.read(name, ['a']);
        const after = nowMs;
        for (let looks = 0; ; looks++) {
          holds(looks < MOST_LOOKS, 'nowMs does not go on');
          if (nowMs < before + ttlMs - SLACK_MS) holds('a' in values, `a value for ${ttlMs} ms ended before its time`);
          if (nowMs > after + ttlMs + SLACK_MS) {
            holds(!('a' in values), `a value for ${ttlMs} ms was there after its time`);
            break;
          }
          await pass(LOOK_MS);
          ({ nowMs, values } = await store.read(name, ['a']));
        }
      }),
    );
  },
};

const newTimes: Sentence = {
  says: 'a new value has its own time to live, and not that of the value before',
  async try({ store, group, pass }, holds) {
    const [longer, shorter] = [group(), group()];
    await put(store, longer, { a: set('1', 600), b: set('1') });
    await put(store, shorter, { a: set('1'), b: set('1') });
    await put(store, longer, { a: set('2') });
    await put(store, shorter, { a: set('2', 600) });
    await pass(1_500);
    holds(
      (await valueIn(store, longer, 'a')) === '2',
      'a value for an hour ended with the shorter time of the one before',
    );
    holds(
      (await valueIn(store, shorter, 'a')) === undefined,
      'a value for 600 ms has the longer time of the one before',
    );
  },
};

const versionsNeverReturn: Sentence = {
  says: 'a version never comes again, also when everything in the group is over and was forgotten',
  async try({ store, group, isReal, pass }, holds) {
    const names = [group(), group()];
    const seen = new Map(names.map((name) => [name, new Set<string>()]));
    for (let round = 0; round < 2; round++) {
      for (const [name, versions] of seen) {
        for (let write = 0; write < 3; write++) {
          await put(store, name, { a: set(`${round}/${write}`, 400) });
          const { version } = await store.read(name, ['a']);
          holds(!versions.has(version), `version ${version} came again`);
          for (const old of versions)
            holds(!(await store.write(name, old, { a: set('late') })), 'a late write was accepted');
          versions.add(version);
        }
      }
      // One ends by itself, one is deleted.
      await put(store, names[1] ?? '', { a: null });
      await pass(isReal ? 800 : FORGOTTEN_MS);
      await writeElsewhere(store, group);
    }
  },
};

async function writeElsewhere(store: Store, group: () => string): Promise<void> {
  const some = Array.from({ length: 20 }, async () => {
    for (let at = 0; at < OTHER_WRITES / 20; at++) await put(store, group(), { a: set('1', 50) });
  });
  await Promise.all(some);
}

const wholeReads: Sentence = {
  says: 'a read sees all of a write or nothing of it, and the version that belongs to it',
  async try({ store, group }, holds) {
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
      try {
        for (let at = 0; at < 30; at++) {
          await put(store, name, Object.fromEntries(keys.map((key) => [key, set(String(at))])));
          await nextTurn();
        }
      } finally {
        isWriting = false;
      }
    };
    await Promise.all([look(), look(), look(), write()]);
  },
};

const messages: Sentence = {
  says: 'publish and subscribe come together, and a message reaches each listener of its topic until it stops',
  async try({ store, group }, holds) {
    holds((store.publish === undefined) === (store.subscribe === undefined), 'only one of the two is there');
    if (!store.publish || !store.subscribe) return;
    const topic = group();
    let heard = 0;
    const stops = ['m', 'other'].map((kind) =>
      store.subscribe?.(kind === 'm' ? topic : group(), (message) => {
        holds(kind === 'm' && message === 'm', 'a message of another topic');
        heard += 1;
      }),
    );
    // A connection of its own for listening may take a moment.
    for (let tries = 0; heard === 0; tries++) {
      holds(tries < MOST_LOOKS / 4, 'no message came');
      await store.publish(topic, 'm');
      await realPause(LOOK_MS);
    }
    for (const stop of stops) stop?.();
  },
};

const noLostUpdate: Sentence = {
  says: `of ${WRITERS} writers at once each update counts`,
  async try({ store, group }, holds) {
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
};

/** The contract, in the order in which it is read. */
export const SENTENCES: readonly Sentence[] = [
  shape,
  exact,
  onceForEachVersion,
  deletions,
  wholeReads,
  noLostUpdate,
  newTimes,
  timesToLive,
  versionsNeverReturn,
  messages,
];
