import type { OpenFile } from './prepared-file.js';

/** Where the bytes of an upload go, as step 1 answered (spec: Uploads). */
export interface PutTarget {
  readonly direct_upload_url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What carries bytes to an absolute URL, and where the service itself is. */
export interface Carrier<C> {
  readonly baseUrl: string;
  transfer(request: PutRequest, call?: C): PromiseLike<Response>;
}

/** Step 2 of an upload as the carrier takes it. */
export interface PutRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (moved: () => void) => BodyInit | Promise<BodyInit>;
  readonly repeatable: boolean;
  readonly lane: 'uploads.put' | undefined;
}

/** The PUT of `file` to its target. The documented limit counts the service's own PUT; storage has none. */
export function putRequest(target: PutTarget, file: OpenFile, baseUrl: string): PutRequest {
  const url = new URL(target.direct_upload_url, `${baseUrl}/`);
  return {
    url: url.href,
    headers: { ...target.headers, 'content-length': `${file.sizeBytes}` },
    body: (moved) => file.body(moved),
    repeatable: file.repeatable,
    lane: url.origin === new URL(baseUrl).origin ? 'uploads.put' : undefined,
  };
}
