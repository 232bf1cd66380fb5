import { FileProblem } from './file-problem.js';
import { type FileOptions, openSource } from './prepare-file.js';
import type { OpenFile } from './prepared-file.js';

/** Sends a file's bytes by `send`. A failure of the source itself is told as such, not as the connection's. */
export async function putFile<T>(
  send: (file: OpenFile) => PromiseLike<T>,
  source: unknown,
  options: Pick<FileOptions, 'sizeBytes' | 'onProgress'>,
): Promise<T> {
  const file = openSource(source, options);
  try {
    const answer = await send(file);
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
