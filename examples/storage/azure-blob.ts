// Copies a finished file to Azure Blob Storage with a BlockBlobClient of @azure/storage-blob.
import { Readable } from 'node:stream';
import type { ReadableStream as NodeStream } from 'node:stream/web';
import type { OutputDestination } from 'gen-client/storage';

/** The methods of a BlockBlobClient that this example uses. */
interface BlockBlob {
  getProperties(options: object): Promise<{
    contentLength?: number;
    contentType?: string;
    etag?: string;
    metadata?: Record<string, string>;
  }>;
  uploadStream(body: Readable, bufferSize: number, parallel: number, options: object): Promise<{ etag?: string }>;
}

/** Azure's metadata names must be identifiers, so `gen-job` is stored as `gen_job`. */
export function azureBlob(blob: BlockBlob): OutputDestination {
  return {
    store: 'azure',
    head: async ({ signal }) => {
      const { contentLength = 0, metadata, ...rest } = await blob.getProperties({ abortSignal: signal });
      return { ...rest, sizeBytes: contentLength, metadata: { 'gen-job': metadata?.gen_job ?? '' } };
    },
    put: (body, { contentType, metadata, overwrite, signal }) =>
      blob.uploadStream(Readable.fromWeb(body as NodeStream), 4 * 1024 * 1024, 2, {
        abortSignal: signal,
        blobHTTPHeaders: { blobContentType: contentType },
        metadata: { gen_job: metadata['gen-job'] },
        conditions: overwrite ? {} : { ifNoneMatch: '*' },
      }),
  };
}
