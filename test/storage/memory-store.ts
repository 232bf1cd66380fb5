import { createHash } from 'node:crypto';
import type { PutObjectOptions, StoredObject } from '../../src/adapters/storage/destination.js';
import type { OutputDestination } from '../../src/adapters/storage/index.js';

/** A custom store with a minimal `put` and `head`. */
export class MemoryStore {
  readonly objects = new Map<string, { readonly bytes: Buffer; readonly options: PutObjectOptions }>();
  /** Functions that replace the next puts. */
  readonly failures: ((body: ReadableStream<Uint8Array>, options: PutObjectOptions) => Promise<unknown>)[] = [];
  puts = 0;

  at(key: string): Required<Pick<OutputDestination, 'head' | 'put'>> {
    return {
      head: async () => this.head(key),
      put: async (body, options) => {
        this.puts += 1;
        const fail = this.failures.shift();
        if (fail) return (await fail(body, options)) as undefined;
        const bytes = Buffer.from(await new Response(body).arrayBuffer());
        if (!options.overwrite && this.objects.has(key))
          throw Object.assign(new Error('It already exists.'), { status: 412 });
        this.objects.set(key, { bytes, options });
        return { etag: etagOf(bytes) };
      },
    };
  }

  head(key: string): StoredObject | undefined {
    const object = this.objects.get(key);
    if (object === undefined) return undefined;
    const { contentType, metadata } = object.options;
    return { sizeBytes: object.bytes.length, contentType, metadata, etag: etagOf(object.bytes) };
  }
}

const etagOf = (bytes: Buffer) => `"${createHash('md5').update(bytes).digest('hex')}"`;
