// How a file is read over several connections, answer by answer, on a held clock; and what each refused file is told as.
import { describe, expect, it } from 'vitest';
import { APIError, ConnectionError, type DownloadError, ServerError } from '../../src/errors/index.js';
import { readOutputAnswer, refuseNonMedia } from '../../src/resources/output.js';
import { OutputReader, type OutputReading } from '../../src/resources/output-reader.js';
import { explainRefusal } from '../../src/resources/output-source.js';
import { seeCall, sendRunCreate, shortenKey } from '../../src/resources/run-calls.js';
import { rejection } from '../transport/support.js';

const HEADERS = { 'content-type': 'video/mp4', etag: '"a"', 'content-length': '10' };
const bytesOf = (text: string) => new TextEncoder().encode(text);
/** A body that gives this text and then ends, or is cut by a reason. */
function body(text: string, cut?: unknown): ReadableStream {
  let isGiven = text === '';
  return new ReadableStream({
    pull(controller) {
      if (!isGiven) controller.enqueue(bytesOf(text));
      else if (cut !== undefined) controller.error(cut);
      else controller.close();
      isGiven = true;
    },
  });
}
const whole = (text: string, headers: object = {}, cut?: unknown) =>
  new Response(body(text, cut), { headers: { ...HEADERS, ...headers } });
const part = (text: string, range: string, headers: object = {}) =>
  new Response(body(text), { status: 206, headers: { ...HEADERS, 'content-range': range, ...headers } });
const refusal = (status: number, Class = APIError, code = `http_${status}`) =>
  new Class('no', { status, code, recovery: 'retry', method: 'GET', url: '/x', attempts: 1 });
const away = () => new ConnectionError('away', { method: 'GET', url: '/x', attempts: 1 });

/** Reads over these answers to the end. Pauses are over at once, and are noted. */
function reading(answers: readonly (Response | Error)[], options: Partial<OutputReading> = {}) {
  const asked: unknown[] = [];
  const pauses: number[] = [];
  const left = [...answers];
  const reader = new OutputReader({
    jobId: 'job_1',
    open: async (_, rest) => {
      asked.push(rest && [rest.range.start, rest.range.end, rest.ifRange]);
      const answer = left.shift();
      if (answer instanceof Response) return answer;
      throw answer ?? new Error('asked too often');
    },
    sizeOf: async () => undefined,
    clock: {
      now: () => 0,
      after(ms, fire) {
        pauses.push(ms);
        queueMicrotask(fire);
        return () => {};
      },
    },
    ...options,
  });
  /** The text of each version. */
  const rest = async () => {
    const versions = [''];
    for (;;) {
      const piece = await reader.read();
      if (piece.type === 'end') return versions;
      if (piece.type === 'version') versions.push('');
      else versions.push(`${versions.pop()}${new TextDecoder().decode(piece.bytes)}`);
    }
  };
  return { reader, rest, asked, pauses };
}
const failed = async (read: ReturnType<typeof reading>) => {
  const { name, message, code, cause } = (await rejection(read.rest())) as DownloadError;
  return { name, message, code, cause };
};
const interrupted = (what: string, cause?: unknown) => ({
  name: 'DownloadError',
  message: `The download of job job_1 ${what}.`,
  code: 'interrupted',
  cause,
});
const CHANGED = (at: number) => ({
  ...interrupted(`cannot go on after ${at} bytes: the file has changed`),
  code: 'file_changed',
});

describe('a file is read', () => {
  it('on from where it broke off, with pauses that double until a byte more has come', async () => {
    const cuts = [whole('0123', {}, away()), part('', 'bytes 4-9/10'), away(), refusal(503, ServerError)];
    const { rest, asked, pauses } = reading([...cuts, part('45', 'bytes 4-9/10'), part('6789', 'bytes 6-9/10')]);
    expect(await rest()).toEqual(['', '0123456789']);
    expect(asked).toEqual([undefined, ...Array(4).fill([4, undefined, '"a"']), [6, undefined, '"a"']]);
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 250]);
  });

  it.each<[string, Response]>([
    ['without ranges, the first bytes thrown away', whole('0123456789')],
    ['of which the part has no size', part('456789', 'bytes 4-9/*', { etag: '"a"' })],
  ])('on in a file %s', async (_, second) => {
    const { rest } = reading([whole('0123'), second]);
    expect(await rest()).toEqual(['', '0123456789']);
  });

  it.each<[string, Response, string]>([
    ['another tag', whole('abcdefghij', { etag: '"b"' }), 'abcdefghij'],
    ['no tag', new Response(body('abc'), { headers: { 'content-type': 'video/mp4' } }), 'abc'],
    ['another size', whole('abcdefghijk', { 'content-length': '11' }), 'abcdefghijk'],
    ['a part of another file from its first byte', part('abcde', 'bytes 0-4/5', { etag: '"b"' }), 'abcde'],
  ])('anew where the second answer has %s', async (_, second, text) => {
    const { rest, pauses } = reading([whole('0123'), second]);
    expect(await rest()).toEqual(['', '0123', text]);
    expect(pauses).toEqual([250]);
  });

  it.each<[string, Response | Error]>([
    ['another range', part('56789', 'bytes 5-9/10')],
    ['a range of another size', part('456789', 'bytes 4-9/11')],
    ['a range past the end', part('456789x', 'bytes 4-10/10')],
    ['a range of another file', part('456789', 'bytes 4-9/10', { etag: '"b"' })],
    ['a range that cannot be', refusal(416)],
  ])('anew after %s, or not at all where it must not begin anew', async (_, second) => {
    const answers = () => [whole('0123'), second instanceof Response ? second.clone() : second, whole('abcdefghij')];
    const { rest, asked } = reading(answers());
    expect(await rest()).toEqual(['', '0123', 'abcdefghij']);
    expect(asked).toEqual([undefined, [4, undefined, '"a"'], undefined]);
    const strict = reading([second], { restarts: false });
    await strict.reader.begin(whole('0123'));
    expect(await failed(strict)).toEqual(CHANGED(4));
  });

  it('from its first byte where it has no tag, or not at all where it must not begin anew', async () => {
    const weak = () => whole('0123', { etag: 'W/"a"' });
    expect(await reading([weak(), whole('0123456789')]).rest()).toEqual(['', '0123', '0123456789']);
    const strict = reading([], { restarts: false });
    await strict.reader.begin(weak());
    expect(await failed(strict)).toEqual(
      interrupted('broke off after 4 bytes and cannot go on: the file has no strong entity tag'),
    );
  });

  it('within the range of the answer that it began with', async () => {
    const { reader, rest, asked } = reading([part('89', 'bytes 8-9/20'), part('ab', 'bytes 10-11/20')]);
    await reader.begin(part('567', 'bytes 5-11/20'));
    expect(await rest()).toEqual(['56789ab']);
    expect(asked).toEqual([
      [8, 11, '"a"'],
      [10, 11, '"a"'],
    ]);
    const toItsEnd = reading([part('89', 'bytes 8-9/10')]);
    await toItsEnd.reader.begin(part('567', 'bytes 5-9/10'));
    expect([await toItsEnd.rest(), toItsEnd.asked]).toEqual([['56789'], [[8, undefined, '"a"']]]);
  });

  it('without the bytes that the caller has', async () => {
    const { reader, rest, asked } = reading([part('456789', 'bytes 4-9/10')]);
    await reader.begin(whole('0123456789'));
    reader.skip(0);
    reader.skip(4);
    expect([await rest(), asked]).toEqual([['456789'], [[4, undefined, '"a"']]]);
  });

  it('to the size that was announced, and one that has none to where it ends', async () => {
    const ranged = reading([]);
    await ranged.reader.begin(part('56789xx', 'bytes 5-9/20'));
    expect(await ranged.rest()).toEqual(['56789']);
    const { 'content-length': _, ...unsized } = HEADERS;
    expect(await reading([new Response(body('0123'), { headers: unsized })]).rest()).toEqual(['', '0123']);
  });
});

describe('a download gives up', () => {
  it('after five cuts in a row, and says how far it came and why', async () => {
    const silent = () => [whole('0123'), ...Array.from({ length: 5 }, () => part('', 'bytes 4-9/10'))];
    const gone = reading(silent());
    expect(await failed(gone)).toEqual(
      interrupted('broke off 6 times in a row, last after 4 of 10 bytes: the connection closed early'),
    );
    expect(gone.pauses).toEqual([250, 500, 1_000, 2_000, 4_000]);
    const cause = away();
    const answers = [whole('0123'), ...Array.from({ length: 5 }, () => cause)];
    expect(await failed(reading(answers))).toEqual(
      interrupted('broke off 6 times in a row, last after 4 of 10 bytes', cause),
    );
    const strays = Array.from({ length: 6 }, () => part('x', 'bytes 7-9/10'));
    expect(await failed(reading([whole('0123'), ...strays]))).toEqual(
      interrupted(
        'broke off 6 times in a row, last after 4 bytes: the service sends the range "bytes 7-9/10", which it was not asked for',
      ),
    );
  });

  it('at once when the first answer fails, or a later one for good', async () => {
    const [first, later] = [away(), refusal(403)];
    expect(await rejection(reading([first]).rest())).toBe(first);
    expect(await rejection(reading([whole('0123'), later]).rest())).toBe(later);
  });

  it('when there are more bytes than were announced', async () => {
    expect(await failed(reading([whole('0123456789x')]))).toEqual(interrupted('is longer than the 10 bytes announced'));
  });

  it('when an answer cannot be checked: encoded without a size, a range that is not told, no byte', async () => {
    const encoded = { 'content-encoding': 'gzip' };
    expect(await failed(reading([whole('01', encoded)]))).toEqual(
      interrupted(
        'is refused: the answer has Content-Encoding gzip and does not tell its size, so that a cut could not be noticed',
      ),
    );
    expect(await reading([whole('01', encoded)], { sizeOf: async () => 2 }).rest()).toEqual(['', '01']);
    await expect(reading([]).reader.begin(part('01', 'bytes ?'))).rejects.toThrow(
      'The download of job job_1 cannot be resumed: the answer does not tell its range.',
    );
    const { 'content-length': _, ...unsized } = HEADERS;
    expect(await failed(reading([new Response(body(''), { headers: unsized })]))).toMatchObject({
      message: 'The service answered with an empty file for job job_1.',
      code: 'not_media',
    });
  });

  it('with the reason of its signal, and is not asked for again', async () => {
    const stop = new AbortController();
    const { rest, reader } = reading([whole('0123456789')], { signal: stop.signal });
    stop.abort(new Error('enough'));
    expect(await rejection(rest())).toMatchObject({ message: 'enough' });
    reader.cancel();
    const left = reading([whole('0123456789')]);
    left.reader.cancel();
    expect(await rejection(left.rest())).toMatchObject({
      name: 'AbortError',
      message: 'The output is no longer read.',
    });
  });
});

describe('an answer is no file', () => {
  const said = (type: string | undefined, text: string) => {
    try {
      refuseNonMedia('job_1', type, bytesOf(text));
    } catch (error) {
      expect(error).toMatchObject({ name: 'DownloadError', code: 'not_media', jobId: 'job_1' });
      return (error as Error).message;
    }
    return undefined;
  };

  it.each<[string | undefined, string, string]>([
    ['text/html; charset=utf-8', 'x', 'an HTML page'],
    ['application/xhtml+xml', 'x', 'an HTML page'],
    [undefined, '  <!DOCTYPE html>', 'an HTML page'],
    ['video/mp4', '<!-- a --> <?xml version="1"?><html lang="en">', 'an HTML page'],
    ['application/xml', 'x', 'XML'],
    ['text/xml', '', 'XML'],
    [
      undefined,
      '<?xml version="1"?><Error><Code>NoSuchKey</Code></Error>',
      'XML instead of the file of job job_1 (NoSuchKey)',
    ],
    ['application/json', 'x', 'JSON'],
    ['application/problem+json', 'x', 'JSON'],
    ['text/json', 'x', 'JSON'],
    ['video/mp4', '{"error" : "expired"}', 'JSON instead of the file of job job_1 (expired)'],
    [undefined, '{ "a": {"code":"gone.now"}}', 'JSON instead of the file of job job_1 (gone.now)'],
    [undefined, '{}', 'JSON'],
    [undefined, ' [ {', 'JSON'],
    [undefined, '[]', 'JSON'],
  ])('of the type %s that begins with %j: %s', (type, text, what) => {
    const end = what.includes('instead') ? '' : ' instead of the file of job job_1';
    expect(said(type, text)).toBe(`The service answered with ${what}${end}.`);
  });

  it.each<[string | undefined, string]>([
    ['image/svg+xml', '<?xml version="1"?><svg xmlns="x">'],
    ['video/mp4', '<htmlish'],
    ['video/mp4', '{x'],
    ['video/mp4', '[1'],
    ['video/mp4', '<!-- never ends'],
    ['video/mp4', `${'x'.repeat(512)}<html>`],
    ['text/plain', 'a'],
    [undefined, ''],
  ])('but one of the type %s that begins with %j is', (type, text) => {
    expect(said(type, text)).toBeUndefined();
  });

  it.each([204, 205, 304])('of the status %i', (status) => {
    expect(() => readOutputAnswer('job_1', new Response(null, { status }))).toThrow(
      `The service answered with ${status} and no file for job job_1.`,
    );
  });
});

describe('a refused file', () => {
  const now = Date.parse('2026-01-02T00:00:00.000Z');
  const [past, future] = ['2026-01-01T00:00:00.000Z', '2026-01-03T00:00:00.000Z'];
  const told = async (cause: unknown, job: object | undefined) => {
    const error = await explainRefusal({ jobId: 'job_1', cause, job: async () => job as never, now });
    if (error === cause) return 'as it is';
    const { message, code, expiredAt, cause: inner } = error as DownloadError;
    expect(inner).toBe(cause);
    return [message, code, expiredAt];
  };
  const expired = (when: string, at?: string) => [
    `The link to the file of job job_1 ${when}. Files are kept for a while only: save each one when its job completes.`,
    'output_expired',
    at,
  ];

  it.each<[string, unknown, object | undefined, unknown]>([
    ['410', refusal(410), undefined, expired('has expired')],
    ['410', refusal(410), { providerOutputExpiresAt: future }, expired(`expired at ${future}`, future)],
    ['403', refusal(403), { providerOutputExpiresAt: past }, expired(`expired at ${past}`, past)],
    ['403 later than now', refusal(403), { providerOutputExpiresAt: future, status: 'completed' }, 'as it is'],
    ['code', refusal(404, APIError, 'link_Expired'), undefined, expired('has expired')],
    ['404', refusal(404), undefined, 'as it is'],
    ['404', refusal(404), { status: 'completed' }, 'as it is'],
    ['500', refusal(500), { status: 'failed' }, 'as it is'],
    ['other', new Error('expired'), { status: 'failed' }, 'as it is'],
    ...['failed', 'canceled', 'blocked'].map((status): [string, unknown, object, unknown] => [
      '409',
      refusal(409),
      { status },
      [`Job job_1 has no file: its status is ${status}.`, 'job_without_output', undefined],
    ]),
    [
      '404',
      refusal(404),
      { status: 'processing' },
      [
        'Job job_1 has no file: its status is processing. Wait for it with waitForJob first.',
        'job_not_finished',
        undefined,
      ],
    ],
  ])('with %s is told by its job', async (_, cause, job, expected) => {
    expect(await told(cause, job)).toEqual(expected);
  });
});

describe('a create of a run', () => {
  it('goes to its namespace under the key of the run, with the model of the run or its own', async () => {
    const sent: unknown[] = [];
    const namespace = (call: string) => ({
      create: async (...words: unknown[]) => void sent.push([call, ...words]),
    });
    const calls = ['images', 'videos', 'videoEdits', 'characters'];
    const client = Object.fromEntries(calls.map((call) => [call, namespace(call)])) as never;
    const params = { prompt: 'a', model: 'm', idempotency_key: 'own' };
    await sendRunCreate(client, { call: 'images', params, key: 'k', model: null });
    await sendRunCreate(client, { call: 'videoEdits', params, key: 'k', model: 'n' }, { maxRetries: 2 });
    expect(sent).toEqual([
      ['images', { prompt: 'a', model: 'm' }, { idempotencyKey: 'k' }],
      ['videoEdits', { prompt: 'a', model: 'n' }, { maxRetries: 2, idempotencyKey: 'k' }],
    ]);
  });

  it('comes to its job, or to a failure of this package; what else is thrown is no outcome', async () => {
    const job = { id: 'job_1', status: 'queued' } as never;
    expect(await seeCall(async () => job)).toEqual({ event: { type: 'job', job }, job });
    const refused = refusal(400);
    expect(await seeCall(() => Promise.reject(refused))).toEqual({
      event: { type: 'failed', failure: expect.any(Object) },
      error: refused,
    });
    const defect = new TypeError('x is undefined');
    expect(await rejection(seeCall(() => Promise.reject(defect)))).toBe(defect);
  });

  it('has its key kept to 200 characters, and a fingerprint in place of a longer one', () => {
    const [fits, long] = ['k'.repeat(200), 'k'.repeat(201)];
    expect(shortenKey(fits)).toBe(fits);
    expect(shortenKey(long).length).toBeLessThan(200);
    expect(shortenKey(long)).toBe(shortenKey(long));
    expect(shortenKey(long)).not.toBe(shortenKey(`${long}k`));
  });
});
