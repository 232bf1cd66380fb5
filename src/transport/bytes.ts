// Only importer of ky. Loaded with the first file that is sent: creating and waiting need nothing of it.
import ky from 'ky';
import type { AddBody, Send } from './call.js';
import type { TransferRequest } from './transport.js';

/** Retries, deadlines and refusals are the transport's own. */
const WITHOUT_KYS_OWN = { retry: 0, timeout: false, throwHttpErrors: false } as const;
/** A body on its way is given this much more time: even a slow line moves that many bytes in a millisecond. */
const SLOWEST_BYTES_PER_MS = 100;

/** One HTTP request for a file, through ky. Its own wrapper of a failure says nothing more than the cause, which is thrown. */
export function throughKy(send: Send, url: string, init: RequestInit): Promise<Response> {
  return ky(url, { ...WITHOUT_KYS_OWN, fetch: () => send(url, init) }).catch((error: unknown) => {
    throw error instanceof Error && error.name === 'NetworkError' && error.cause !== undefined ? error.cause : error;
  });
}

/** Asks for the file's body once per attempt, and gives it time for as long as it moves. */
export async function addBody(body: TransferRequest['body'], ...[init, extend]: Parameters<AddBody>): Promise<void> {
  let size = Number(init.headers['content-length']) || 0;
  const enough = () => extend(size / SLOWEST_BYTES_PER_MS);
  init.body = await body(enough);
  const known = sizeOf(init.body);
  // The runtime tells this length by itself; the Edge runtime would send the header twice.
  if (known !== undefined) delete init.headers['content-length'];
  size = known ?? size;
  enough();
  if (init.body instanceof ReadableStream) Object.assign(init, { duplex: 'half' });
}

function sizeOf(body: BodyInit): number | undefined {
  if (body instanceof Blob) return body.size;
  return body instanceof ArrayBuffer || ArrayBuffer.isView(body) ? body.byteLength : undefined;
}
