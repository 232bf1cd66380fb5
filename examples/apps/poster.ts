// An app that creates a client. poster.test.ts tests it.
import { GenClient, idempotencyKeyFrom, JobError } from 'gen-client';

const client = new GenClient();

/** Creates a film's poster, once per film. Returns the job ID, or the reason that the job failed. */
export async function makePoster(filmId: number, prompt: string): Promise<string> {
  try {
    const job = await client.images.createAndWait({ prompt }, { idempotencyKey: idempotencyKeyFrom('poster', filmId) });
    return job.id;
  } catch (error) {
    if (!JobError.isInstance(error)) throw error;
    return `no poster: ${error.recovery}`;
  }
}
