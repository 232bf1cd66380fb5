// Types of the stores' packages for the examples. In your project, install @vercel/blob or @supabase/storage-js.
declare module '@vercel/blob' {
  export class BlobNotFoundError extends Error {}
  export function head(pathname: string): Promise<{ size: number; contentType: string; etag?: string }>;
  export function put(
    pathname: string,
    body: ReadableStream<Uint8Array>,
    options: { access: 'public' | 'private'; contentType: string; allowOverwrite: boolean; abortSignal: AbortSignal },
  ): Promise<{ etag?: string }>;
}

declare module '@supabase/storage-js' {
  interface Result<T> {
    readonly data: T | null;
    readonly error: (Error & { readonly status?: number }) | null;
  }
  interface Bucket {
    info(
      path: string,
    ): Promise<Result<{ size: number; contentType: string; etag: string; metadata?: Record<string, string> }>>;
    upload(
      path: string,
      body: ReadableStream<Uint8Array>,
      options: { contentType: string; metadata: object; upsert: boolean; headers?: Record<string, string> },
    ): Promise<Result<object>>;
  }
  export class StorageClient {
    constructor(url: string, headers: Record<string, string>);
    from(bucket: string): Bucket;
  }
}
