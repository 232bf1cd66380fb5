// A second store, written by others. The strict double stays the oracle: s3rver knows no conditions, and takes some requests
// that S3 refuses, those with a wrong secret among them.
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { copyOutput, createOutputHandler, s3 } from '../../src/adapters/storage/index.js';
import { LoopbackService } from '../files/loopback-service.js';
import { makeClient } from '../files/make-client.js';
import { heavy, whyNoStores } from './heavy.js';

interface Server {
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
}
type S3rver = new (options: object) => Server;

const MOVIE = new Uint8Array(300_000).map((_, at) => (at * 13) % 249);
const KEYS = ['videos/fox.mp4', 'a b+c.mp4', 'ünï/日本.mp4', "it's (1)!*.mp4", '100%.mp4', 'a&b=c?d#e.mp4'];

describe.skipIf(whyNoStores() !== undefined)('s3rver', () => {
  let service: LoopbackService;
  let server: Server;
  let directory: string;
  let endpoint: string;
  beforeAll(async () => {
    service = await LoopbackService.start();
    service.addOutput('job_1', { body: MOVIE });
    directory = await mkdtemp(join(tmpdir(), 's3rver-'));
    const { default: Store } = await heavy<{ readonly default: S3rver }>('s3rver');
    server = new Store({
      port: 0,
      address: '127.0.0.1',
      silent: true,
      directory,
      configureBuckets: [{ name: 'media', configs: [] }],
    });
    endpoint = `http://127.0.0.1:${(await server.run()).port}`;
  });
  afterAll(async () => {
    await server.close();
    await service.close();
    await rm(directory, { recursive: true });
  });

  const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
  const at = (key: string, more: object = {}) => s3({ endpoint, bucket: 'media', key, credentials, ...more });
  const client = () => makeClient(service);

  it.each(KEYS)('takes the file under the key %s, and shows it to a second copy', async (key) => {
    expect(await copyOutput(client(), 'job_1', at(key))).toMatchObject({ existed: false, sizeBytes: MOVIE.length });
    const found = await at(key).head?.({ signal: new AbortController().signal });
    expect(found).toMatchObject({
      sizeBytes: MOVIE.length,
      contentType: 'video/mp4',
      metadata: { 'gen-job': 'job_1' },
    });
    expect(await copyOutput(client(), 'job_1', at(key))).toMatchObject({ existed: true });
  });

  it('serves a range of it through a handler', async () => {
    await copyOutput(client(), 'job_1', at('range.mp4'));
    const handler = createOutputHandler({ client: client(), authorize: () => true, source: () => at('range.mp4') });
    const request = new Request('https://app.test/files/job_1', { headers: { range: 'bytes=10-19' } });
    const reads = service.seen.length;
    const answer = await handler(request);
    expect([answer.status, answer.headers.get('content-range')]).toEqual([206, `bytes 10-19/${MOVIE.length}`]);
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(MOVIE.slice(10, 20));
    expect(service.seen.length).toBe(reads);
  });

  it('refuses an unknown key, and a bucket that is not there', async () => {
    const wrong = { credentials: { ...credentials, accessKeyId: 'OTHER' } };
    await expect(copyOutput(client(), 'job_1', at('a.mp4', wrong))).rejects.toMatchObject({
      code: 'InvalidAccessKeyId',
      status: 403,
    });
    const nowhere = copyOutput(client(), 'job_1', at('a.mp4', { bucket: 'nowhere' }));
    await expect(nowhere).rejects.toMatchObject({ code: 'NoSuchBucket', status: 404 });
  });
});
