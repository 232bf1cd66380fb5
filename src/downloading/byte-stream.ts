/**
 * Whether the stream hands each chunk over for good. By the standard a byte stream takes the buffer away from whoever gave it
 * and copies it for a second branch, so nobody else can still be reading what comes out of it.
 */
export function isByteStream(stream: ReadableStream): boolean {
  try {
    stream.getReader({ mode: 'byob' }).releaseLock();
    return true;
  } catch {
    return false;
  }
}
