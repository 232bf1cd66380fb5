import { type Clock, sleep } from '../clock.js';
import { APIError, DownloadError } from '../errors/index.js';
import { isByteStream } from '../bytes.js';
import { outputInfoOf } from './output.js';

/** Where the bytes go. */
export interface OutputSink {
  /** Appends. */
  write(chunk: Uint8Array, at: WrittenAt): Promise<void>;
  /** Throws away all that was written. */
  restart(): Promise<void>;
}

/** What is known of a chunk beside its bytes. */
export interface WrittenAt {
  /** Size of the whole file in bytes, where it is known. */
  readonly totalBytes: number | undefined;
  /** Whether nobody else holds the chunk: its memory may be given back as soon as it is written. */
  readonly isOwned: boolean;
}

/** The rest of a file, from a byte on, provided that it is still the same file. */
export interface RestOfOutput {
  readonly range: { readonly start: number };
  readonly ifRange: string;
}

/** How a job's output is read. */
export interface OutputReading {
  readonly jobId: string;
  /** Asks for the file, or for what is left of it; resolves with the answer's head. */
  readonly open: (rest?: RestOfOutput) => PromiseLike<Response>;
  /** The file's size by other means, asked for where the answer does not tell it. */
  readonly sizeOf: () => Promise<number | undefined>;
  readonly sink: OutputSink;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** A file that was read whole. */
export interface WholeOutput {
  readonly sizeBytes: number;
  readonly contentType: string | undefined;
}

/** Cuts in a row, without a byte more than before, after which it is given up. */
const MAX_CUTS = 5;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;

/** How far the reading has come. */
interface Place {
  written: number;
  /** The most that was ever written: only more than this counts as getting on. */
  furthest: number;
  cuts: number;
  /** A strong validator: the only thing by which a later part is known to be of the same file. */
  etag: string | undefined;
  total: number | undefined;
  contentType: string | undefined;
}

/**
 * Reads a file to its last byte. After a cut it asks for the rest with Range and If-Range; whatever does not continue the
 * very same file begins anew, so that parts of two files are never glued. Throws a {@link DownloadError} when it gives up.
 */
export async function readOutput(reading: OutputReading): Promise<WholeOutput> {
  const place: Place = { written: 0, furthest: 0, cuts: 0, etag: undefined, total: undefined, contentType: undefined };
  for (;;) {
    const body = await openRest(reading, place);
    const cut = body === undefined ? undefined : await drain(reading, place, body);
    reading.signal?.throwIfAborted();
    if (cut === undefined && body !== undefined && isWhole(place)) {
      return { sizeBytes: place.written, contentType: place.contentType };
    }
    await pauseAfterCut(reading, place, cut?.reason);
  }
}

/** Opens the file where the reading stands; undefined when what came is of no use and the next try must begin anew. */
async function openRest(reading: OutputReading, place: Place): Promise<ReadableStream<Uint8Array> | undefined> {
  const { written, etag } = place;
  const isRest = written > 0 && etag !== undefined;
  const response = await openOr416(reading, isRest ? { range: { start: written }, ifRange: etag } : undefined);
  const continues = isRest && response !== undefined && continuesAt(response, place);
  if (!continues && written > 0) {
    await reading.sink.restart();
    Object.assign(place, { written: 0, etag: undefined });
  }
  if (response === undefined || (response.status === 206 && !continues)) {
    response?.body?.cancel().catch(() => undefined);
    return undefined;
  }
  const { contentType, sizeBytes, etag: tag } = outputInfoOf(response);
  place.contentType = contentType;
  place.total = sizeBytes ?? (await reading.sizeOf());
  place.etag = tag?.startsWith('W/') ? undefined : tag;
  return response.body ?? undefined;
}

/** A part that lies beyond the end means that the file has changed. */
async function openOr416({ open }: OutputReading, rest?: RestOfOutput): Promise<Response | undefined> {
  try {
    return await open(rest);
  } catch (cause) {
    if (rest !== undefined && APIError.isInstance(cause) && cause.status === 416) return undefined;
    throw cause;
  }
}

/** Whether an answer is the rest of the same file: right start, same whole size, same tag where it is told. */
function continuesAt(response: Response, { written, etag, total }: Place): boolean {
  const [, start, end, size] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(response.headers.get('content-range') ?? '') ?? [];
  const tag = response.headers.get('etag');
  if (response.status !== 206 || Number(start) !== written || (tag !== null && tag !== etag)) return false;
  const whole = size === '*' ? total : Number(size);
  return whole === undefined || ((total === undefined || whole === total) && Number(end) < whole);
}

/** Hands on all that comes; a broken body is a cut, a failure of the sink is thrown. */
async function drain(
  { sink, jobId, signal }: OutputReading,
  place: Place,
  body: ReadableStream<Uint8Array>,
): Promise<{ readonly reason: unknown } | undefined> {
  const isOwned = isByteStream(body);
  const reader = body.getReader();
  for (;;) {
    const next = await reader.read().catch((reason: unknown) => ({ done: true as const, value: undefined, reason }));
    if (signal?.aborted) reader.cancel().catch(() => undefined);
    signal?.throwIfAborted();
    if (next.done) return 'reason' in next ? { reason: next.reason } : undefined;
    place.written += next.value.length;
    if (place.total !== undefined && place.written > place.total) {
      reader.cancel().catch(() => undefined);
      throw new DownloadError(`The file of job ${jobId} is longer than the ${place.total} bytes announced.`, { jobId });
    }
    try {
      await sink.write(next.value, { totalBytes: place.total, isOwned });
    } catch (cause) {
      reader.cancel().catch(() => undefined);
      throw cause;
    }
  }
}

function isWhole({ written, total }: Place): boolean {
  return total === undefined || written === total;
}

async function pauseAfterCut({ jobId, clock, signal }: OutputReading, place: Place, cause: unknown): Promise<void> {
  const { written, total, furthest } = place;
  place.cuts = written > furthest ? 1 : place.cuts + 1;
  place.furthest = Math.max(furthest, written);
  if (place.cuts > MAX_CUTS) {
    const whole = total === undefined ? '' : ` of ${total}`;
    throw new DownloadError(
      `The download of job ${jobId} broke off ${MAX_CUTS + 1} times in a row, last after ${written}${whole} bytes.`,
      {
        jobId,
        cause,
      },
    );
  }
  await sleep(clock, Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (place.cuts - 1)), signal);
}
