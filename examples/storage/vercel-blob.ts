// Copies a finished job's file to Vercel Blob with @vercel/blob. Needs GEN_API_KEY, GEN_BASE_URL, and BLOB_READ_WRITE_TOKEN.
import { BlobNotFoundError, head, put } from '@vercel/blob';
import type { GenClient, Job } from 'gen-client';
import { copyOutput, type OutputDestination } from 'gen-client/storage';

/** Vercel Blob stores no custom metadata, so the file's name identifies its job. */
function vercelBlob(jobId: string): OutputDestination {
  const pathname = `videos/${jobId}.mp4`;
  return {
    store: 'vercel-blob',
    head: async () => {
      try {
        const { size, contentType, etag } = await head(pathname);
        return { sizeBytes: size, contentType, etag, metadata: { 'gen-job': jobId } };
      } catch (error) {
        if (error instanceof BlobNotFoundError) return undefined;
        throw error;
      }
    },
    put: (body, { contentType, overwrite, signal }) =>
      put(pathname, body, { access: 'public', contentType, allowOverwrite: overwrite, abortSignal: signal }),
  };
}

/** Copies a finished job's file. */
export function copyToVercelBlob(client: GenClient, job: Job) {
  return copyOutput(client, job, vercelBlob(job.id));
}
