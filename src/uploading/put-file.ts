import { FileProblem } from './file-problem.js';
import { type FileOptions, openSource } from './prepare-file.js';
import { type Carrier, type PutTarget, putRequest } from './put-request.js';

/** One PUT: what carries it, where to, and how the call is made. */
export interface Put<C> {
  readonly carrier: Carrier<C>;
  readonly target: PutTarget & { readonly file_size?: number };
  readonly options: Pick<FileOptions, 'sizeBytes' | 'onProgress'> & C;
}

/** Sends a file's bytes. A failure of the source itself is told as such, not as the connection's. */
export async function putFile<C>({ carrier, target, options }: Put<C>, source: unknown): Promise<Response> {
  const file = openSource(source, { sizeBytes: target.file_size, ...options });
  try {
    const answer = await carrier.transfer(putRequest(target, file, carrier.baseUrl), options);
    file.finish();
    return answer;
  } catch (cause) {
    const failure = file.failure();
    if (failure === undefined) throw cause;
    const reason = failure.reason instanceof Error ? failure.reason.message : String(failure.reason);
    throw new FileProblem(`Upload failed at step "put": ${reason}`, {
      step: 'put',
      left: 'upload',
      cause: failure.reason,
    });
  } finally {
    file.discard();
  }
}
