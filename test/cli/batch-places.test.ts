// Where the files of a batch go: what a store is asked before anything is paid, and which names are taken.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type BatchPlaces,
  isPlaced,
  placedBefore,
  placeFile,
  refuseTaken,
  storeAt,
  tryStore,
} from '../../src/cli/batch/places.js';
import type { RowRecord } from '../../src/cli/batch/records.js';
import type { Row } from '../../src/cli/batch/rows.js';
import type { Machine } from '../../src/cli/session.js';
import { StorageError } from '../../src/errors/index.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gen-places-'));
  return () => rmSync(folder, { recursive: true, force: true });
});

const signal = new AbortController().signal;
const inFolder = (name: string) => join(folder, name);
const write = (name: string) => writeFileSync(inFolder(name), 'mine');
type Make = NonNullable<BatchPlaces['destination']>;
/** A store whose objects are named `s3://b/NAME`, and do what is given. */
const store =
  (acts: object): Make =>
  (name) =>
    ({ url: `s3://b/${name}`, destination: acts }) as never;
/** A store whose first call is cut by Ctrl-C. */
const cutStore = (stop: AbortController) =>
  store({
    async head() {
      stop.abort(new Error('Ctrl-C'));
      throw new Error('cut');
    },
  });
const KEYS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
const at = (text: string, env: object) => storeAt(text, { env } as Machine);
const create = (places?: readonly string[]): RowRecord => ({ ...(places && { places }) });
const row = (fields: Partial<Row>) => ({ line: 1, call: 'images', id: 'fox', ...fields }) as Row;

describe('--dest', () => {
  it.each([
    ['s3://b', 's3://b/fox.png'],
    ['s3://b/', 's3://b/fox.png'],
    ['s3://b/foxes', 's3://b/foxes/fox.png'],
    ['s3://b/foxes/', 's3://b/foxes/fox.png'],
    ['s3://b/a/b c', 's3://b/a/b c/fox.png'],
  ])('%s puts fox.png at %s', (text, url) => {
    expect(at(text, KEYS)('fox.png').url).toBe(url);
  });

  it.each(['', 's3://', 's3:///x', 's3:/b', 'x s3://b', 'https://b/x'])('"%s" is no place', (text) => {
    expect(() => at(text, KEYS)).toThrow(`--dest: "${text}" is not a place. Give s3://bucket or s3://bucket/prefix/.`);
  });

  it.each([{}, { AWS_ACCESS_KEY_ID: 'id' }, { AWS_SECRET_ACCESS_KEY: 'secret' }, { ...KEYS, AWS_ACCESS_KEY_ID: ' ' }])(
    'needs both credentials, and has %j',
    (env) => {
      expect(() => at('s3://b', env)).toThrow(
        '--dest needs credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
      );
    },
  );
});

describe('the store is tried before anything is paid', () => {
  const refused = (code: string, status = 403) => new StorageError(`refused: ${code}`, { code, status, store: 's3' });
  /** What the store was asked for, when it answers so. */
  const tried = async (answers: { readonly head?: Error; readonly get?: Error; readonly put?: Error }) => {
    const asked: unknown[] = [];
    const answer = (name: 'head' | 'get' | 'put') => (answers[name] ? Promise.reject(answers[name]) : undefined);
    const destination = {
      async head() {
        asked.push('head');
        await answer('head');
      },
      async get({ method, range }: Record<string, unknown>) {
        asked.push([method, range]);
        await answer('get');
      },
      async put(body: ReadableStream, { contentType, sizeBytes, overwrite }: Record<string, unknown>) {
        asked.push([(await new Response(body).text()).length, contentType, sizeBytes, overwrite]);
        await answer('put');
      },
    };
    const names: unknown[] = [];
    const make: Make = (name, headers) => {
      names.push(name, headers);
      return store(destination)(name);
    };
    const failure = await tryStore(make, signal).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(names).toEqual(['.gen-client.try', { 'if-match': '"none"' }]);
    return { asked, failure };
  };
  const LOOK = ['head', ['GET', 'bytes=0-0']];
  const PUT = [0, 'application/octet-stream', 0, true];

  it('looks for an object that is not there, and puts an empty one under a condition that cannot hold', async () => {
    expect(await tried({})).toEqual({ asked: [...LOOK, PUT], failure: undefined });
    const failed = refused('PreconditionFailed', 412);
    expect(await tried({ put: failed })).toEqual({ asked: [...LOOK, PUT], failure: undefined });
  });

  it('puts nothing where it may not look, since a refusal would say nothing then', async () => {
    for (const code of ['NoSuchKey', 'AccessDenied']) {
      expect(await tried({ get: refused(code) })).toEqual({ asked: LOOK, failure: undefined });
    }
  });

  it.each<[string, Parameters<typeof tried>[0], number]>([
    ['refused: SignatureDoesNotMatch', { head: refused('SignatureDoesNotMatch') }, 1],
    ['refused: NoSuchBucket', { get: refused('NoSuchBucket', 404) }, 2],
    ['fetch failed', { get: new TypeError('fetch failed') }, 2],
    ['refused: AccessDenied', { put: refused('AccessDenied') }, 3],
    ['fetch failed', { put: new TypeError('fetch failed') }, 3],
  ])('tells %s for %j after %i calls', async (reason, answers, calls) => {
    const { asked, failure } = await tried(answers);
    expect(asked).toHaveLength(calls);
    expect(failure).toMatchObject({
      name: 'UsageError',
      message: `--dest: s3://b/.gen-client.try cannot be asked for: ${reason}`,
      cause: Object.values(answers)[0],
    });
  });

  it('ends with the reason of the abort, and not with a fault of the store', async () => {
    const stop = new AbortController();
    await expect(tryStore(cutStore(stop), stop.signal)).rejects.toThrow('Ctrl-C');
  });
});

describe('the file of an earlier run', () => {
  const places = (to: Partial<BatchPlaces>): BatchPlaces => ({
    out: undefined,
    force: false,
    destination: undefined,
    ...to,
  });

  it('is placed where this run wants it: in the directory, in the store, or in both', () => {
    write('fox.png');
    mkdirSync(inFolder('dir.png'));
    const file = inFolder('fox.png');
    const placed = (kept: readonly string[] | undefined, to: Partial<BatchPlaces>) =>
      isPlaced(create(kept), places(to));
    const destination = store({});
    expect(placed([file], { out: folder })).toBe(true);
    expect(placed([file], { out: `${folder}/` })).toBe(true);
    expect(placed([file], { out: inFolder('other') })).toBe(false);
    expect(placed([inFolder('gone.png')], { out: folder })).toBe(false);
    expect(placed([inFolder('dir.png')], { out: folder })).toBe(false);
    expect(placed(undefined, { out: folder })).toBe(false);
    expect(placed(['s3://b/fox.png'], { out: folder })).toBe(false);
    expect(placed(['s3://b/fox.png'], { destination })).toBe(true);
    expect(placed(['s3://c/fox.png'], { destination })).toBe(false);
    expect(placed([file], { destination })).toBe(false);
    expect(placed([file], { out: folder, destination })).toBe(false);
    expect(placed([file, 's3://b/fox.png'], { out: folder, destination })).toBe(true);
  });

  it('is told with its size while it is there, and with its object', () => {
    write('fox.png');
    const file = inFolder('fox.png');
    expect(placedBefore(create([file, 's3://b/fox.png']))).toEqual({
      file: { path: file, sizeBytes: 4, contentType: undefined },
      stored: { url: 's3://b/fox.png' },
    });
    expect(placedBefore(create([inFolder('gone.png')]))).toEqual({});
    expect(placedBefore(create())).toEqual({});
  });

  /** Places the file of job_1 where something is already. */
  const placing = (to: { readonly id?: string; readonly force?: boolean; readonly create?: RowRecord }) => {
    const client = { jobs: { outputInfo: async () => ({ contentType: 'image/png' }) } };
    const entries: unknown[] = [];
    const records = {
      of: () => to.create ?? {},
      note: async (_row: unknown, more: unknown) => {
        entries.push(more);
        throw new Error('as far as this');
      },
    };
    const row = { id: to.id, key: 'row' };
    const options = { client, records, signal, row, out: folder };
    const placed = placeFile({ id: 'job_1' } as never, { ...options, force: to.force ?? false } as never);
    return placed.then(
      () => expect.fail('was placed'),
      ({ name, message, code }: Record<string, unknown>) => ({ name, message, code, entries }),
    );
  };

  it('is not replaced by another one, and has the name of its job without an id', async () => {
    for (const [id, name] of [
      ['fox', 'fox.png'],
      [undefined, 'job_1.png'],
    ] as const) {
      write(name);
      const others = [undefined, create([]), create(), create([inFolder('other.png')])];
      for (const create of others) {
        expect(await placing({ ...(id && { id }), ...(create && { create }) })).toEqual({
          name: 'DownloadError',
          message: `"${inFolder(name)}" is already there. Pass --force to replace it.`,
          code: 'file_exists',
          entries: [],
        });
      }
    }
  });

  it('is replaced when told to, or when an earlier run was writing it for the same job; the store knows it first', async () => {
    write('fox.png');
    const path = inFolder('fox.png');
    for (const how of [{ force: true }, { create: create([path]) }]) {
      expect(await placing({ id: 'fox', ...how })).toMatchObject({
        message: 'as far as this',
        entries: [{ places: [path] }],
      });
    }
  });

  it('cannot have the name of a directory', async () => {
    mkdirSync(inFolder('fox.png'));
    expect(await placing({ id: 'fox', force: true })).toMatchObject({
      name: 'UsageError',
      message: `"${inFolder('fox.png')}" is a directory, so no file can have that name.`,
    });
  });
});

describe('a name that is taken', () => {
  const refusal = (rows: readonly Partial<Row>[], to: Partial<BatchPlaces>, kept: RowRecord = {}) =>
    refuseTaken(
      rows.map((fields) => ({ row: row(fields), record: kept })),
      { out: undefined, force: false, destination: undefined, ...to },
      signal,
    ).then(
      () => undefined,
      ({ name, message }: Error) => `${name}: ${message}`,
    );

  it('in the directory is told by the line of the row, in either case and with any extension', async () => {
    for (const name of ['FOX.jpg', 'owl.png', 'foxes.png']) write(name);
    mkdirSync(inFolder('hen.png'));
    const rows = [{ id: 'fox' }, { line: 4, id: 'Owl' }, { id: 'fo' }, { id: undefined }, { line: 5, id: 'hen' }];
    const there = (line: number, name: string) => `line ${line}: "${inFolder(name)}" is there already.`;
    const free = 'Pass --force to replace it, or give the row another id.';
    expect(await refusal(rows, { out: folder })).toBe(
      `UsageError: ${there(1, 'FOX.jpg')} ${free}\n${there(4, 'owl.png')} ${free}\n${there(5, 'hen.png')} Give the row another id.`,
    );
    expect(await refusal(rows, { out: folder, force: true })).toBe(
      `UsageError: ${there(5, 'hen.png')} Give the row another id.`,
    );
    const own = create(['FOX.jpg', 'owl.png', 'hen.png'].map(inFolder));
    expect(await refusal(rows, { out: folder }, own)).toBeUndefined();
    expect(await refusal(rows, {})).toBeUndefined();
  });

  it('is listed twenty times at most', async () => {
    for (let at = 10; at < 35; at++) write(`${at}.png`);
    const rows = Array.from({ length: 25 }, (_, at) => ({ id: `${at + 10}`, line: at + 1 }));
    const lines = (await refusal(rows, { out: folder }))?.split('\n') ?? [];
    expect([lines.length, lines.at(-1)?.slice(0, 8)]).toEqual([20, 'line 20:']);
  });

  /** A store that has these names. It counts the names that it is asked for, and how many at once. */
  const storeWith = (taken: readonly string[]) => {
    const asked: string[] = [];
    const counts = { now: 0, most: 0 };
    const make: Make = (name) =>
      store({
        async head() {
          asked.push(name);
          counts.now += 1;
          counts.most = Math.max(counts.most, counts.now);
          await Promise.resolve();
          counts.now -= 1;
          if (name.startsWith('mute')) throw new Error('no answer');
          return taken.includes(name) ? { sizeBytes: 4 } : undefined;
        },
      })(name);
    return { make, asked, counts };
  };

  it('in the store is told, for each type that the call of the row may make', async () => {
    const { make, asked } = storeWith(['a.webp', 'c.mov', 'mute.png']);
    const calls = ['images', 'characters', 'videos', 'videoEdits'] as const;
    const rows: Partial<Row>[] = calls.map((call, at) => ({ line: at + 1, call, id: 'abcd'[at] }));
    const said = await refusal([...rows, { id: 'mute' }, { id: undefined }], { destination: make });
    const free = 'is there already. Pass --force to replace it, or give the row another id.';
    expect(said).toBe(`UsageError: line 1: "s3://b/a.webp" ${free}\nline 3: "s3://b/c.mov" ${free}`);
    const pictures = (id: string) => [`${id}.png`, `${id}.jpg`, `${id}.webp`];
    const clips = (id: string) => [`${id}.mp4`, `${id}.webm`, `${id}.mov`];
    expect(asked).toEqual([...pictures('a'), ...pictures('b'), ...clips('c'), ...clips('d'), ...pictures('mute')]);
  });

  it('in the store is not asked for with --force, and sixteen are asked for at once', async () => {
    const rows = Array.from({ length: 12 }, (_, at) => ({ id: `n${at}` }));
    const { make, asked, counts } = storeWith([]);
    expect(await refusal(rows, { destination: make, force: true })).toBeUndefined();
    expect(asked).toEqual([]);
    expect(await refusal(rows, { destination: make })).toBeUndefined();
    expect([asked.length, new Set(asked).size, counts.most]).toEqual([36, 36, 16]);
  });

  it('is left where the run is interrupted', async () => {
    const stop = new AbortController();
    const destination = cutStore(stop);
    const taken = refuseTaken(
      [{ row: row({}), record: {} }],
      { out: undefined, force: false, destination },
      stop.signal,
    );
    await expect(taken).rejects.toThrow('Ctrl-C');
  });
});
