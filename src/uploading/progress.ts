/** How far an upload has come. */
export interface UploadProgress {
  /** Bytes sent by this attempt. Starts at 0 again when the PUT is repeated, and ends at exactly `totalBytes`. */
  readonly sentBytes: number;
  /** Size of the file in bytes. */
  readonly totalBytes: number;
}

/** Told how far an upload has come. */
export type ReportProgress = (progress: UploadProgress) => void;

/** What counts the bytes of one attempt. */
export interface Meter {
  readonly sizeBytes: number;
  readonly report: ReportProgress;
  /** Called at each chunk. */
  readonly moved: () => void;
  /** Told the reason when the content cannot be sent: it gave too much, too little, or an error of its own. */
  readonly fail: (reason: unknown) => void;
}

/** A body of exactly `sizeBytes`. Content that gives more or less breaks the request before its last byte. */
export interface MeteredBody {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Call it once the bytes are known to have arrived: a runtime may stop pulling at the last one. */
  finish(): void;
}

/** Turns content into a request body that counts what leaves. A chunk counts once the next one is asked for. */
export function meteredBody(content: AsyncIterator<Uint8Array>, meter: Meter): MeteredBody {
  const { sizeBytes } = meter;
  let queued = 0;
  let reported = -1;
  const report = () => {
    if (queued === reported) return;
    reported = queued;
    meter.report({ sentBytes: queued, totalBytes: sizeBytes });
  };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
    try {
      report();
      meter.moved();
      const chunk = queued < sizeBytes ? await nextChunk(content) : undefined;
      if (queued + (chunk?.length ?? 0) >= sizeBytes)
        await expectEnd(content, queued + (chunk?.length ?? 0), sizeBytes);
      else if (chunk === undefined) throw new RangeError(`The content ended after ${queued} of ${sizeBytes} bytes.`);
      if (chunk === undefined) return controller.close();
      queued += chunk.length;
      controller.enqueue(chunk as Uint8Array<ArrayBuffer>);
    } catch (reason) {
      meter.fail(reason);
      controller.error(reason);
      stop(content);
    }
  };
  const stream = new ReadableStream({ pull, cancel: () => stop(content) }, { highWaterMark: 0 });
  return {
    stream,
    finish() {
      queued = sizeBytes;
      report();
    },
  };
}

/** The next chunk that holds anything. */
async function nextChunk(content: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
  for (;;) {
    const { done, value } = await content.next();
    if (done) return undefined;
    if (value.length > 0) return value;
  }
}

/** Looks past the last byte before it is sent, so that content longer than announced is never taken for whole. */
async function expectEnd(content: AsyncIterator<Uint8Array>, given: number, sizeBytes: number): Promise<void> {
  const more = given > sizeBytes || (await nextChunk(content)) !== undefined;
  if (more) throw new RangeError(`The content is longer than the ${sizeBytes} bytes announced.`);
}

/** Ends the reading of content without waiting for it: a stalled source must not hold up an abort. */
export function stop(content: AsyncIterator<Uint8Array>): void {
  Promise.resolve(content.return?.()).catch(() => undefined);
}
