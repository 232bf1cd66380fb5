import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { fromPath, saveOutput } from '../../src/adapters/node/index.js';
import { GenClient } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

it("uploads a local file for a job and saves the job's file on the sandbox", async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gen-files-'));
  const sandbox = createSandbox({ clock: 'manual' });
  try {
    const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
    const { job: first } = await client.images.create({ prompt: 'a fox' });
    await sandbox.advance(60_000);
    const image = join(directory, 'fox.png');
    const saved = await saveOutput(client, first, image);
    expect(saved.contentType).toBe('image/png');
    const { upload_id } = await client.uploads.upload(fromPath(image));
    const { job } = await client.videos.create({ prompt: 'it wakes', first_frame_upload_id: upload_id });
    await sandbox.advance(600_000);
    const movie = await saveOutput(client, job, directory);
    expect(movie.path).toBe(join(directory, `${job.id}.mp4`));
    const info = await client.jobs.outputInfo(job);
    expect(info).toMatchObject({ contentType: 'video/mp4', sizeBytes: movie.sizeBytes, acceptsRanges: true });
    const part = await client.jobs.output(job, { range: { start: 4, end: 7 } });
    expect(part.status).toBe(206);
    expect(await part.text()).toBe('ftyp');
    expect((await readFile(movie.path)).subarray(4, 8).toString()).toBe('ftyp');
    await expect(client.uploads.delete(upload_id)).resolves.toBeDefined();
    await sandbox.advance(400 * 24 * 3_600_000);
    const expired = await saveOutput(client, job, join(directory, 'late.mp4')).catch((reason: unknown) => reason);
    expect(expired).toMatchObject({ name: 'DownloadError', expiredAt: expect.stringMatching(/^\d{4}-/) });
  } finally {
    await rm(directory, { recursive: true });
  }
});
