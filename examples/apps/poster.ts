// An app with a client of its own. poster.test.ts is its suite.
import { GenClient, idempotencyKeyFrom, JobError } from 'gen-client';

const client = new GenClient();

/** Makes the poster of a film, once per film. Returns the job id, or the reason why there is none. */
export async function makePoster(filmId: number, prompt: string): Promise<string> {
  try {
    const job = await client.images.createAndWait({ prompt }, { idempotencyKey: idempotencyKeyFrom('poster', filmId) });
    return job.id;
  } catch (error) {
    if (!JobError.isInstance(error)) throw error;
    return `no poster: ${error.recovery}`;
  }
}
