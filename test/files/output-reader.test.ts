// Reading a file from several responses, with recorded pauses.
import { describe, expect, it } from 'vitest';
import { OutputReader, type OutputReading } from '../../src/downloading/output-reader.js';
import { APIError, ConnectionError, type DownloadError, ServerError } from '../../src/errors/index.js';
import { countedSignal, rejection } from '../transport/support.js';

const UNSIZED = { 'content-type': 'video/mp4', etag: '"a"' };
const HEADERS = { ...UNSIZED, 'content-length': '10' };
const bytesOf = (text: string) => new TextEncoder().encode(text);
/** Creates a body that ends after the text, or errors with a reason. */
function body(text: string, error?: unknown): ReadableStream {
  let isSent = text === '';
  return new ReadableStream({
    pull(controller) {
      if (!isSent) controller.enqueue(bytesOf(text));
      else if (error !== undefined) controller.error(error);
      else controller.close();
      isSent = true;
    },
  });
}
const complete = (text: string, headers: object = {}, error?: unknown) =>
  new Response(body(text, error), { headers: { ...HEADERS, ...headers } });
const partial = (text: string, range: string, headers: object = {}) =>
  new Response(body(text), { status: 206, headers: { ...HEADERS, 'content-range': range, ...headers } });
const apiError = (status: number, Class = APIError, code = `http_${status}`) =>
  new Class('no', { status, code, recovery: 'retry', method: 'GET', url: '/x', attempts: 1 });
const connectionError = () => new ConnectionError('no connection', { method: 'GET', url: '/x', attempts: 1 });

/** Creates a response that never ends after these chunks, and records its cancellation reasons. */
function endlessResponse(chunks: readonly string[], headers: object = {}, status = 200) {
  const reasons: unknown[] = [];
  const remaining = chunks.map(bytesOf);
  const stream = new ReadableStream({
    pull(controller) {
      const next = remaining.shift();
      if (next !== undefined) controller.enqueue(next);
    },
    cancel: (reason) => void reasons.push(reason),
  });
  return { response: new Response(stream, { status, headers: { ...HEADERS, ...headers } }), reasons };
}

/** Creates a reader for these responses. Its pauses are recorded and end immediately. */
function startReading(responses: readonly (Response | Error)[], options: Partial<OutputReading> = {}) {
  const requestedRanges: unknown[] = [];
  const pauses: number[] = [];
  const remaining = [...responses];
  const reader = new OutputReader({
    jobId: 'job_1',
    open: async (_, rest) => {
      requestedRanges.push(rest && [rest.range.start, rest.range.end, rest.ifRange]);
      const response = remaining.shift();
      if (response instanceof Response) return response;
      throw response ?? new Error('too many requests');
    },
    info: async () => ({ sizeBytes: undefined }),
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
  /** Reads the rest of the opened version. */
  const readRest = async () => {
    let text = '';
    for (let bytes = await reader.read(); bytes; bytes = await reader.read()) text += new TextDecoder().decode(bytes);
    return text;
  };
  /** Reads each version from its first byte. */
  const readVersions = async () => {
    const versions: string[] = [];
    await reader.fromStart(async () => {
      const at = versions.push('') - 1;
      for (let bytes = await reader.read(); bytes; bytes = await reader.read()) {
        versions[at] += new TextDecoder().decode(bytes);
      }
    });
    return versions;
  };
  return { reader, readRest, readVersions, requestedRanges, pauses };
}
const errorOf = async (work: Promise<unknown>) => {
  const { name, message, code, cause } = (await rejection(work)) as DownloadError;
  return { name, message, code, cause };
};
const interruptedError = (problem: string, cause?: unknown) => ({
  name: 'DownloadError',
  message: `The download of job job_1 ${problem}.`,
  code: 'interrupted',
  cause,
});
const CHANGED = { ...interruptedError('cannot continue after 4 bytes: the file has changed'), code: 'file_changed' };

describe('reading a file', () => {
  it('resumes after interruptions, with pauses that double until another byte arrives', async () => {
    const interruptions = [
      complete('0123', {}, connectionError()),
      partial('', 'bytes 4-9/10'),
      connectionError(),
      apiError(503, ServerError),
    ];
    const { readVersions, requestedRanges, pauses } = startReading([
      ...interruptions,
      partial('45', 'bytes 4-9/10'),
      partial('6789', 'bytes 6-9/10'),
    ]);
    expect(await readVersions()).toEqual(['0123456789']);
    expect(requestedRanges).toEqual([undefined, ...Array(4).fill([4, undefined, '"a"']), [6, undefined, '"a"']]);
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 250]);
  });

  it.each<[string, Response | Error]>([
    ['the complete file again, from a service without ranges', complete('abcdefghij')],
    ['a response with another ETag', complete('abcdefghij', { etag: '"b"' })],
    ['a response without an ETag', new Response(body('abc'), { headers: { 'content-type': 'video/mp4' } })],
    ['a response with another size', complete('abcdefghijk', { 'content-length': '11' })],
    ["another file's first range", partial('abcde', 'bytes 0-4/5', { etag: '"b"' })],
    ['another range', partial('56789', 'bytes 5-9/10')],
    ['a range with another size', partial('456789', 'bytes 4-9/11')],
    ['a range past the end', partial('456789x', 'bytes 4-10/10')],
    ["another file's range", partial('456789', 'bytes 4-9/10', { etag: '"b"' })],
    ['a 416', apiError(416)],
  ])('starts over after %s, or fails if it may not start over', async (_, second) => {
    const again = () => (second instanceof Response ? second.clone() : second);
    const { readVersions, requestedRanges } = startReading([complete('0123'), again(), complete('abcdefghij')]);
    expect(await readVersions()).toEqual(['0123', 'abcdefghij']);
    expect(requestedRanges).toEqual([undefined, [4, undefined, '"a"'], undefined]);
    const strict = startReading([second]);
    await strict.reader.startWith(complete('0123'));
    expect(await errorOf(strict.readRest())).toEqual(CHANGED);
  });

  it('starts over without an ETag, or fails if it may not start over', async () => {
    const weak = () => complete('0123', { etag: 'W/"a"' });
    expect(await startReading([weak(), complete('0123456789')]).readVersions()).toEqual(['0123', '0123456789']);
    const strict = startReading([]);
    await strict.reader.startWith(weak());
    expect(await errorOf(strict.readRest())).toEqual(
      interruptedError('was interrupted after 4 bytes and cannot be resumed: the file has no strong entity tag'),
    );
  });

  it("stays within its first response's range", async () => {
    const { reader, readRest, requestedRanges } = startReading([
      partial('89', 'bytes 8-9/20'),
      partial('ab', 'bytes 10-11/20'),
    ]);
    await reader.startWith(partial('567', 'bytes 5-11/20'));
    expect(await readRest()).toEqual('56789ab');
    expect(requestedRanges).toEqual([
      [8, 11, '"a"'],
      [10, 11, '"a"'],
    ]);
    const toTheEnd = startReading([partial('89', 'bytes 8-9/10')]);
    await toTheEnd.reader.startWith(partial('567', 'bytes 5-9/10'));
    expect([await toTheEnd.readRest(), toTheEnd.requestedRanges]).toEqual(['56789', [[8, undefined, '"a"']]]);
  });

  it('stays within its range even if no byte has arrived', async () => {
    const { reader, readRest, requestedRanges } = startReading([partial('0123', 'bytes 0-3/10')]);
    await reader.startWith(partial('', 'bytes 0-3/10'));
    expect([await readRest(), requestedRanges]).toEqual(['0123', [[0, 3, '"a"']]]);
  });

  it('resumes after an interruption even if only the partial responses include the size', async () => {
    const first = new Response(body('0123', connectionError()), { headers: UNSIZED });
    const { readVersions, requestedRanges } = startReading([first, partial('456789', 'bytes 4-9/10')]);
    expect(await readVersions()).toEqual(['0123456789']);
    expect(requestedRanges).toEqual([undefined, [4, undefined, '"a"']]);
  });

  it('ends at the announced size, or otherwise at the end of the body', async () => {
    for (const chunks of [['56789xx'], ['567', '89', 'xx'], ['567', '89x']]) {
      const ranged = startReading([]);
      const stream = new ReadableStream({
        start(controller) {
          for (const chunk of chunks) controller.enqueue(bytesOf(chunk));
          controller.close();
        },
      });
      const headers = { 'content-type': 'video/mp4', 'content-range': 'bytes 5-9/20' };
      await ranged.reader.startWith(new Response(stream, { status: 206, headers }));
      expect(await ranged.readRest()).toEqual('56789');
    }
    expect(await startReading([new Response(body('0123'), { headers: UNSIZED })]).readVersions()).toEqual(['0123']);
    const counted = startReading([new Response(body('0123456'), { headers: UNSIZED })]);
    await counted.reader.open(4);
    expect(await errorOf(counted.readRest())).toEqual({
      ...interruptedError('is longer than its size of 4 bytes'),
      code: 'file_changed',
    });
  });
});

describe('a download fails', () => {
  it('after six interruptions in a row, and the message states the progress and the reason', async () => {
    const silent = startReading([complete('0123'), ...Array.from({ length: 5 }, () => partial('', 'bytes 4-9/10'))]);
    expect(await errorOf(silent.readVersions())).toEqual(
      interruptedError('was interrupted 6 times in a row, last after 4 of 10 bytes: the connection closed early'),
    );
    expect(silent.pauses).toEqual([250, 500, 1_000, 2_000, 4_000]);
    const cause = connectionError();
    const responses = [complete('0123'), ...Array(5).fill(cause)];
    expect(await errorOf(startReading(responses).readVersions())).toEqual(
      interruptedError('was interrupted 6 times in a row, last after 4 of 10 bytes', cause),
    );
    expect(await errorOf(startReading([partial('x', 'bytes 7-9/10')]).readVersions())).toEqual(
      interruptedError('cannot start: the service sent a range that was not requested'),
    );
  });

  it('immediately if the first response fails, or a later one fails permanently', async () => {
    const [first, later] = [connectionError(), apiError(403)];
    expect(await rejection(startReading([first]).readVersions())).toBe(first);
    expect(await rejection(startReading([complete('0123'), later]).readVersions())).toBe(later);
    const unsatisfiable = apiError(416);
    expect(await rejection(startReading([unsatisfiable]).readVersions())).toBe(unsatisfiable);
  });

  it('if a response is empty or lacks its range', async () => {
    const zipped = () => new Response(body('01'), { headers: { ...UNSIZED, 'content-encoding': 'gzip' } });
    // The end of the chunked encoding proves that the body is complete.
    expect(await startReading([zipped()]).readVersions()).toEqual(['01']);
    expect(await startReading([zipped()], { info: async () => ({ sizeBytes: 2 }) }).readVersions()).toEqual(['01']);
    for (const range of ['bytes ?', 'x bytes 0-1/2', 'bytes 0-1/2x', 'bytes 0-1', 'bytes */2']) {
      await expect(startReading([]).reader.startWith(partial('01', range))).rejects.toThrow(
        'The download of job job_1 cannot be resumed: the response does not include its range.',
      );
    }
    const message = 'The service sent an empty file for job job_1. Save the file again later.';
    const empty = new Response(body(''), { headers: UNSIZED });
    expect(await errorOf(startReading([empty]).readVersions())).toMatchObject({ message, code: 'not_media' });
  });

  it("with its signal's reason after an abort, and with an AbortError after a cancellation", async () => {
    const stop = new AbortController();
    const { readVersions, reader } = startReading([complete('0123456789')], { signal: stop.signal });
    stop.abort(new Error('enough'));
    expect(await rejection(readVersions())).toMatchObject({ message: 'enough' });
    reader.cancel();
    const canceled = startReading([complete('0123456789')]);
    await canceled.reader.open();
    canceled.reader.cancel();
    const message = 'The output stream was canceled.';
    expect(await rejection(canceled.readRest())).toMatchObject({ name: 'AbortError', message });
  });
});

describe("a response's connection", () => {
  it('is closed with the reason when reading is canceled', async () => {
    const { response, reasons } = endlessResponse([], { 'content-range': 'bytes 5-9/20' }, 206);
    const { reader } = startReading([]);
    await reader.startWith(response);
    reader.cancel('enough');
    await expect.poll(() => reasons).toEqual(['enough']);
  });

  it('leaves no listener on the signal after the end or a failure', async () => {
    for (const responses of [[complete('0123456789')], [apiError(403)]]) {
      const { signal, listeners } = countedSignal();
      const { readVersions } = startReading(responses, { signal });
      const ended = readVersions().catch(() => {});
      expect(listeners()).toBe(1);
      await ended;
      expect(listeners()).toBe(0);
    }
  });
});
