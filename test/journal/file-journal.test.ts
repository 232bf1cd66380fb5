import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { fileJournal } from '../../src/adapters/node/index.js';
import { GenClient, GenError } from '../../src/index.js';
import { foldJournal, type JournalEntry } from '../../src/rules/journal.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.js';

/** A stand-in for a full disk, for machines on which none can be mounted: as on a real one, a part of a line may fit. */
const double = vi.hoisted(() => ({ isFull: false, failsToFlush: false }));
vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>();
  const writeSync = (file: number, bytes: Uint8Array) => {
    if (!double.isFull) return fs.writeSync(file, bytes);
    fs.writeSync(file, bytes.subarray(0, 10));
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  };
  // A disk of the network, or one with a quota, may say only here that it is full.
  const fdatasync = (file: number, done: (error: Error | null) => void) => {
    if (!double.failsToFlush) return fs.fdatasync(file, done);
    done(Object.assign(new Error('EDQUOT: disk quota exceeded, fdatasync'), { code: 'EDQUOT' }));
  };
  return { ...fs, writeSync, fdatasync };
});

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gen-journal-'));
  return () => rmSync(folder, { recursive: true, force: true });
});

const at = '2026-01-01T00:00:00.000Z';
const path = () => join(folder, 'jobs.jsonl');
const opened = (key: string): JournalEntry => ({ key, call: 'videos', params: { prompt: `a fox ${key}` }, at });
const wholeLife = (key: string): JournalEntry[] => [
  opened(key),
  { phase: 'accepted', key, jobId: `job_${key}`, at },
  { phase: 'final', key, jobId: `job_${key}`, status: 'completed', at },
  { phase: 'stored', jobId: `job_${key}`, at },
];

describe('a journal in a file', () => {
  test('returns what was appended, in its order, also to the next process', async () => {
    const journal = fileJournal(path());
    for (const entry of wholeLife('one')) await journal.append(entry);
    await fileJournal(pathToFileURL(path())).append(opened('two'));
    expect(await fileJournal(path()).entries()).toEqual([...wholeLife('one'), opened('two')]);
  });

  test('is empty before its first entry', async () => {
    expect(await fileJournal(path()).entries()).toEqual([]);
  });

  test('skips a line that was cut, and ends it before the next one', async () => {
    const journal = fileJournal(path());
    await journal.append(opened('one'));
    appendFileSync(path(), '{"key":"two","call":"vid');
    const after = fileJournal(path());
    expect(await after.entries()).toEqual([opened('one')]);
    await after.append(opened('three'));
    expect(await after.entries()).toEqual([opened('one'), opened('three')]);
  });

  test('is readable by its owner only, also when the file was there before', async () => {
    await fileJournal(path()).append(opened('one'));
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    const other = join(folder, 'other.jsonl');
    writeFileSync(other, '', { mode: 0o644 });
    await fileJournal(other).append(opened('one'));
    expect(statSync(other).mode & 0o777).toBe(0o600);
  });

  test('compacts itself, and loses no create that something is left to do for', async () => {
    const journal = fileJournal(path());
    await journal.append(opened('open'));
    for (let at = 0; at < 1_000; at++) for (const entry of wholeLife(`done-${at}`)) await journal.append(entry);
    await journal.append(opened('last'));
    expect(statSync(path()).size).toBeLessThan(160 * 1024);
    const creates = foldJournal(await journal.entries());
    expect(creates.filter(({ state }) => state === 'open').map(({ key }) => key)).toEqual(['open', 'last']);
    expect(statSync(path()).mode & 0o777).toBe(0o600);
  });

  test('keeps every create that is done when it is told to', async () => {
    const journal = fileJournal(path(), { keep: Number.POSITIVE_INFINITY });
    for (let at = 0; at < 300; at++) for (const entry of wholeLife(`done-${at}`)) await journal.append(entry);
    expect(foldJournal(await journal.entries())).toHaveLength(300);
  });

  test('refuses a second process while the first one runs, and not when it was killed', async () => {
    writeFileSync(`${path()}.lock`, `${process.ppid}@${hostname()}\n`);
    await expect(fileJournal(path()).append(opened('one'))).rejects.toThrow(/is using it/);
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    writeFileSync(`${path()}.lock`, `${pid}@${hostname()}\n`);
    const journal = fileJournal(path());
    await journal.append(opened('one'));
    journal.close();
    await fileJournal(path()).append(opened('two'));
    expect(await journal.entries()).toHaveLength(2);
  });

  test('reads without the lock', async () => {
    await fileJournal(path()).append(opened('one'));
    writeFileSync(`${path()}.lock`, `${process.ppid}@${hostname()}\n`);
    expect(await fileJournal(path()).entries()).toEqual([opened('one')]);
  });

  test('rejects what it cannot write or read with a GenError that names the file', async () => {
    mkdirSync(path());
    for (const place of [path(), join(folder, 'missing', 'jobs.jsonl')]) {
      const error = await fileJournal(place)
        .append(opened('one'))
        .catch((reason: unknown) => reason);
      expect(GenError.isInstance(error) && error.message).toContain(place);
    }
    await expect(fileJournal(path()).entries()).rejects.toThrow(/could not be read/);
    for (const wrong of ['', undefined, 7, new URL('https://example.com/jobs')]) {
      expect(() => fileJournal(wrong as string)).toThrow(GenError);
    }
  });

  test('does not append to a file that is something else', async () => {
    writeFileSync(path(), '{"prompt":"a fox"}\n');
    await expect(fileJournal(path()).append(opened('one'))).rejects.toThrow(/other content/);
    expect(readFileSync(path(), 'utf8')).toBe('{"prompt":"a fox"}\n');
  });

  test('notes a stored file by the id of its job', async () => {
    const journal = fileJournal(path());
    for (const entry of wholeLife('one').slice(0, 3)) await journal.append(entry);
    await journal.stored('job_one');
    expect(foldJournal(await journal.entries())).toMatchObject([{ key: 'one', state: 'stored' }]);
    await expect(journal.stored('')).rejects.toThrow(GenError);
  });
});

describe('a full disk', () => {
  const real = mkdtempSync(join(tmpdir(), 'gen-disk-'));
  let disk: SmallDisk | undefined;
  beforeAll(() => {
    disk = mountSmallDisk(real, 64 * 1024);
  });
  afterAll(() => {
    disk?.unmount();
    rmSync(real, { recursive: true, force: true });
  });

  /** The disk: a real one where it can be mounted, else the stand-in. */
  const setFull = (isFull: boolean) => {
    if (disk === undefined) double.isFull = isFull;
    else if (isFull) disk.fill(0);
    else disk.empty();
  };
  const onDisk = () => join(disk === undefined ? folder : real, 'jobs.jsonl');
  /** Appends until the disk, which has room for a page of its own, is full. */
  const appendUntilFull = async (journal: ReturnType<typeof fileJournal>) => {
    for (let at = 0; at < 100; at++) await journal.append(opened(`filling-${at}`));
  };

  test.each(['the disk', 'the stand-in'])('rejects the entry, and leaves the journal as it was (%s)', async (which) => {
    const isDouble = which === 'the stand-in';
    const file = isDouble ? path() : onDisk();
    const journal = fileJournal(file);
    await journal.append(opened('one'));
    if (isDouble) double.isFull = true;
    else setFull(true);
    await expect(appendUntilFull(journal)).rejects.toThrow(
      /^The journal ".*jobs\.jsonl" could not be written: ENOSPC: no space left on device/,
    );
    const whole = readFileSync(file, 'utf8');
    expect(whole.endsWith('\n')).toBe(true);
    double.isFull = false;
    setFull(false);
    const count = (await journal.entries()).length;
    await journal.append(opened('two'));
    expect(readFileSync(file, 'utf8').startsWith(whole)).toBe(true);
    expect((await journal.entries()).slice(count)).toEqual([opened('two')]);
    journal.close();
  });

  test('takes back a create whose line was written and not flushed: resume sends nothing of it', async () => {
    const journal = fileJournal(path());
    const { fetch, baseUrl, apiKey, requests } = createSandbox();
    const client = new GenClient({ apiKey, baseUrl, fetch, journal });
    double.failsToFlush = true;
    const create = client.images.create({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
    await expect(create).rejects.toThrow(/so the create was not sent: .*EDQUOT/);
    double.failsToFlush = false;
    expect(foldJournal(await journal.entries())).toMatchObject([{ key: 'order-1', state: 'closed' }]);
    for await (const job of client.resume()) expect.unreachable(job.id);
    expect(requests).toEqual([]);
    journal.close();
  });

  test('keeps a create open that an earlier attempt may have sent, when the line of another is taken back', async () => {
    const journal = fileJournal(path());
    await journal.append(opened('order-1'));
    double.failsToFlush = true;
    await expect(journal.append(opened('order-1'))).rejects.toThrow('EDQUOT');
    double.failsToFlush = false;
    expect(foldJournal(await journal.entries())).toMatchObject([{ key: 'order-1', state: 'open' }]);
    journal.close();
  });

  test('rejects a create unsent', async () => {
    const sent: string[] = [];
    const fetch = async (url: string) => {
      sent.push(url);
      return Response.json({ data: {} });
    };
    const journal = fileJournal(onDisk());
    const client = new GenClient({ apiKey: 'key', baseUrl: 'https://service.test', journal, fetch, maxRetries: 0 });
    setFull(true);
    // A page of the file may still have room for some entries, whose creates fail for want of an answer.
    let error: unknown;
    for (let tried = 0; tried < 100 && !/ENOSPC/.test(String(error)); tried++) {
      sent.length = 0;
      error = await client.videos.create({ prompt: 'a fox' }).catch((reason: unknown) => reason);
    }
    setFull(false);
    expect(GenError.isInstance(error) && error.message).toMatch(/The journal .* ENOSPC/);
    expect(sent).toEqual([]);
    journal.close();
  });
});
