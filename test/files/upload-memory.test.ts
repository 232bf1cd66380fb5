// Which uploads are known: by the object in this process, and by the content of the file in a store that processes share.
import { describe, expect, it, vi } from 'vitest';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import {
  contentKey,
  type KnownUpload,
  printOf,
  rememberedUploads,
  UploadMemory,
} from '../../src/uploading/upload-memory.js';
import { seeded } from '../support/seeded.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { hash } from './loopback-service.js';

const params = { file_name: 'fox.png', mime_type: 'image/png', file_size: 5, upload_type: 'IMAGE' } as const;
const known = (id: string): KnownUpload => ({ id, params });
const DAY_MS = 86_400_000;

describe('the uploads of a process', () => {
  const lookup = { print: 'as it was' };
  const uploadsOf = (memory: UploadMemory, source: unknown) => {
    let made = 0;
    return () => memory.use(source, lookup, async () => known(`upl_${++made}`));
  };

  it('are known by the object and what it contained', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    expect(await memory.find(file, lookup)).toBeUndefined();
    const use = await memory.use(file, lookup, async () => ({ ...known('upl_1'), key: 'content' }));
    expect(use).toMatchObject({ id: 'upl_1', isOld: false, key: 'content' });
    expect(await memory.find(file, lookup)).toEqual({ id: 'upl_1', params, key: 'content' });
    expect(await memory.find(file, { print: 'changed' })).toBeUndefined();
    expect(await memory.find({}, lookup)).toBeUndefined();
    expect(await uploadsOf(memory, file)()).toMatchObject({ id: 'upl_1', isOld: true });
  });

  it('are to be deleted after the last use, where one was unwanted and none is kept', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    const use = uploadsOf(memory, file);
    const [first, second] = [await use(), await use()];
    expect([first.end('unwanted'), second.end('unwanted')]).toEqual([false, true]);
    expect(await memory.find(file, lookup)).toBeUndefined();
    const [third, fourth] = [await use(), await use()];
    expect([third.id, fourth.id, third.end('kept'), fourth.end('unwanted')]).toEqual(['upl_2', 'upl_2', false, false]);
    expect(await memory.find(file, lookup)).toMatchObject({ id: 'upl_2' });
  });

  it('that another process has made are never to be deleted', async () => {
    const memory = new UploadMemory(true);
    const use = await memory.use({}, lookup, async () => ({ ...known('upl_1'), isForeign: true }));
    expect([use.isOld, use.end('unwanted')]).toEqual([true, false]);
  });

  it('that were deleted are made again, and the end of a call with the old one does not touch the new one', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    const use = uploadsOf(memory, file);
    const old = await use();
    memory.deleted('upl_1');
    expect(await memory.find(file, lookup)).toBeUndefined();
    expect((await use()).id).toBe('upl_2');
    expect(old.end('unwanted')).toBe(true);
    old.forget();
    expect(await memory.find(file, lookup)).toMatchObject({ id: 'upl_2' });
  });

  it('are remembered as deleted for the last ten thousand deletions, so that memory does not grow', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    await uploadsOf(memory, file)();
    memory.deleted('upl_1');
    for (let at = 1; at < 10_000; at++) memory.deleted(`other_${at}`);
    expect(await memory.find(file, lookup)).toBeUndefined();
    memory.deleted('one_more');
    expect(await memory.find(file, lookup)).toMatchObject({ id: 'upl_1' });
  });

  it('that fail are not known, and the next call makes its own', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    await expect(memory.use(file, lookup, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await uploadsOf(memory, file)()).toMatchObject({ id: 'upl_1', isOld: false });
  });

  it('of a function are made for each call', async () => {
    const memory = new UploadMemory(true);
    const upload = vi.fn(async () => known('upl_1'));
    const print = await printOf(() => new Blob([]).stream());
    expect(print).toBeUndefined();
    for (let at = 0; at < 2; at++) await memory.use(() => {}, { print }, upload);
    expect(upload).toHaveBeenCalledTimes(2);
  });
});

describe('what tells whether an object has changed', () => {
  const bytes = Uint8Array.from([0, 1, 2, 3, 250]);

  it.each<[string, (from: Uint8Array<ArrayBuffer>) => unknown]>([
    ['bytes', (from) => from],
    ['an ArrayBuffer', (from) => from.slice().buffer],
    ['a view of a part', (from) => new DataView(Uint8Array.from([9, ...from, 9]).buffer, 1, from.length)],
    ['a view of shared memory', (from) => shared(from)],
    ['shared memory itself', (from) => shared(from).buffer],
  ])('is the digest of %s', async (_, make) => {
    expect(await printOf(make(bytes))).toBe(hash(bytes));
  });

  it('is the size and the time of a file, and nothing is read', async () => {
    const stream = vi.fn();
    expect(await printOf({ size: 7, lastModified: 9, stream })).toBe('7:9');
    expect(await printOf(new File(['fox'], 'fox.txt', { lastModified: 5 }))).toBe('3:5');
    expect(stream).not.toHaveBeenCalled();
  });

  it.each(['upl_1', undefined, null, 7])('is nothing for %j', async (source) => {
    expect(await printOf(source)).toBeUndefined();
  });

  function shared(from: Uint8Array): Uint8Array {
    const view = new Uint8Array(new SharedArrayBuffer(from.length));
    view.set(from);
    return view;
  }
});

describe('the key of a file', () => {
  it('is the digest of its content, and what the service takes it for', async () => {
    const content = new TextEncoder().encode('fox');
    for (const source of [content, new Blob([content])]) {
      expect(await contentKey(source, params)).toBe(`${hash(content)}:image/png:IMAGE`);
    }
  });

  it('is missing for what can be read once, and for a function, and neither is read', async () => {
    const pull = vi.fn();
    const stream = new ReadableStream({ pull }, { highWaterMark: 0 });
    const factory = vi.fn(() => stream);
    for (const source of [stream, new Response('fox'), factory]) {
      expect(await contentKey(source, params)).toBeUndefined();
    }
    expect([pull, factory].map((it) => it.mock.calls.length)).toEqual([0, 0]);
  });
});

describe('uploads in a store', () => {
  const start = (faults: Partial<Store> = {}) => {
    const clock = virtualClock();
    const store = { ...memoryStoreOn(clock), ...faults };
    const read = vi.spyOn(store, 'read');
    const write = vi.spyOn(store, 'write');
    const warn = vi.fn();
    const random = { next: seeded(1), uuid: () => 'id' };
    return { clock, read, write, warn, uploads: rememberedUploads({ store, group: 'g', clock, random }, warn) };
  };

  it('are kept for 30 days after their last use', async () => {
    const { clock, read, write, uploads } = start();
    expect(await uploads.find('fox')).toBeUndefined();
    expect(write).not.toHaveBeenCalled();
    await uploads.keep('fox', 'upl_1');
    await clock.advance(29 * DAY_MS);
    expect(await uploads.find('fox')).toBe('upl_1');
    const entry = { fox: { value: 'upl_1', ttlMs: 30 * DAY_MS } };
    expect(write.mock.calls.map(([group, , changes]) => [group, changes])).toEqual([
      ['g', entry],
      ['g', entry],
    ]);
    expect(read.mock.calls).toEqual(Array(3).fill(['g', ['fox']]));
    await clock.advance(29 * DAY_MS);
    expect(await uploads.find('fox')).toBe('upl_1');
    await clock.advance(30 * DAY_MS);
    expect(await uploads.find('fox')).toBeUndefined();
  });

  it('are forgotten one by one: a newer one with the same content stays', async () => {
    const { uploads, write } = start();
    await uploads.keep('fox', 'upl_2');
    await uploads.forget('fox', 'upl_1');
    expect(await uploads.find('fox')).toBe('upl_2');
    await uploads.forget('fox', 'upl_2');
    expect(await uploads.find('fox')).toBeUndefined();
    expect(write).toHaveBeenLastCalledWith('g', expect.anything(), { fox: null });
  });

  it('leave no timer behind', async () => {
    const { clock, uploads } = start();
    await uploads.keep('fox', 'upl_1');
    await uploads.find('fox');
    await uploads.forget('fox', 'upl_1');
    expect(clock.timers).toBe(0);
  });

  it('are not known while the store fails, and one warning says why', async () => {
    const { uploads, warn } = start({ read: () => Promise.reject(new Error('away')) });
    expect(await uploads.find('fox')).toBeUndefined();
    expect(warn.mock.calls).toEqual([
      ['uploads.remember: the store failed, so a file may be uploaded again: ConnectionError: away'],
    ]);
    await uploads.keep('fox', 'upl_1');
    await uploads.forget('fox', 'upl_1');
    expect(warn).toHaveBeenCalledTimes(3);
  });

  it('hold a call up for two seconds at most where the store answers and never writes', async () => {
    const { clock, uploads, warn } = start({ write: async () => false });
    const kept = uploads.keep('fox', 'upl_1');
    const ended = vi.fn();
    void kept.then(ended);
    await clock.advance(1_999);
    expect(ended).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(ended).toHaveBeenCalledOnce();
    expect(warn.mock.calls).toEqual([
      ['uploads.remember: the store failed, so a file may be uploaded again: Error: no answer within 2000 ms'],
    ]);
  });
});
