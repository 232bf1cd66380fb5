import { withKnownLength } from '../runtime/bytes.js';
import { OutputReader, type OutputReading } from './output-reader.js';

/** How the rest of an answer is read after a cut. */
export type Resuming = Pick<OutputReading, 'jobId' | 'open' | 'sizeOf' | 'signal' | 'clock'>;

/**
 * The answer with a body that goes on by itself after a cut, as long as the file is the same. It keeps status, headers and
 * length. Throws a DownloadError for an answer that is a page or JSON.
 */
export async function resumedResponse(response: Response, resuming: Resuming): Promise<Response> {
  const { status, statusText, url } = response;
  const reader = new OutputReader({ ...resuming, restarts: false });
  await reader.begin(response);
  const body = new ReadableStream(
    {
      type: 'bytes',
      async pull(controller) {
        const piece = await reader.read();
        if (piece.type === 'bytes') return controller.enqueue(piece.bytes);
        controller.close();
        // Whoever brought a buffer of their own gets it back.
        controller.byobRequest?.respond(0);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const headers = new Headers(response.headers);
  // The bytes come decoded: the length of the encoded ones, and their ranges, would be wrong.
  if ((headers.get('content-encoding') ?? 'identity') !== 'identity') {
    for (const name of ['content-encoding', 'content-length', 'content-range', 'accept-ranges']) headers.delete(name);
  }
  const length = headers.get('content-length');
  const sizeBytes = length === null || !/^\d+$/.test(length) ? undefined : Number(length);
  return Object.defineProperty(new Response(withKnownLength(body, sizeBytes), { status, statusText, headers }), 'url', {
    value: url,
  });
}
