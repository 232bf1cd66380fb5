// Copies a finished file to Supabase Storage with @supabase/storage-js.
import { StorageClient } from '@supabase/storage-js';
import type { GenClient, Job } from 'gen-client';
import { copyOutput, type OutputDestination } from 'gen-client/storage';

const { SUPABASE_URL = '', SUPABASE_SERVICE_KEY = '' } = process.env;
const key = { apikey: SUPABASE_SERVICE_KEY, authorization: `Bearer ${SUPABASE_SERVICE_KEY}` };

function supabase(path: string): OutputDestination {
  const bucket = new StorageClient(`${SUPABASE_URL}/storage/v1`, key).from('videos');
  return {
    store: 'supabase',
    head: async () => {
      const { data, error } = await bucket.info(path);
      if (error) throw error; // a 404 means that the object doesn't exist
      const { size = 0, contentType, etag, metadata } = data ?? {};
      // The SDK converts metadata names to camel case.
      return { sizeBytes: size, contentType, etag, metadata: { 'gen-job': metadata?.genJob ?? '' } };
    },
    put: async (body, { contentType, metadata, overwrite }) => {
      const { error } = await bucket.upload(path, body, { contentType, metadata, upsert: overwrite });
      if (error) throw error; // the SDK returns errors instead of throwing them
    },
  };
}

/** Copies a finished job's file. */
export function copyToSupabase(client: GenClient, job: Job) {
  return copyOutput(client, job, supabase(`${job.id}.mp4`));
}
