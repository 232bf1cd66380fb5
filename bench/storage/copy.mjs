// One copy in a fresh process: `copy.mjs <way> <service URL> <store URL>`. Prints its milliseconds, peak memory growth in bytes,
// and number of requests to the store. Plain JavaScript, because stripping types needs memory.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const [way = '', baseUrl = '', endpoint = ''] = process.argv.slice(2);
const peers = createRequire(new URL('../peers/package.json', import.meta.url));
const peer = async (name) => import(pathToFileURL(peers.resolve(name)).href);
const credentials = { accessKeyId: 'bench', secretAccessKey: 'bench' };
const sdkOptions = {
  endpoint,
  region: 'us-east-1',
  credentials,
  forcePathStyle: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
};
const source = () => fetch(`${baseUrl}/v1/jobs/job_1/output`, { headers: { authorization: 'Bearer bench' } });

/** Functions that prepare a copy, and return the work to measure. */
const WAYS = {
  'fetch to fetch': async () => async () => {
    const { body, headers } = await source();
    const length = { 'content-length': headers.get('content-length') };
    await fetch(`${endpoint}/media/x`, { method: 'PUT', body, headers: length, duplex: 'half', redirect: 'error' });
  },
  async 'gen-client copyOutput'() {
    const { GenClient } = await import('gen-client');
    const { copyOutput, s3 } = await import('gen-client/storage');
    const client = new GenClient({ apiKey: 'bench', baseUrl });
    return () => copyOutput(client, 'job_1', s3({ endpoint, bucket: 'media', key: 'x', credentials }));
  },
  async '@aws-sdk/lib-storage'() {
    const { S3Client } = await peer('@aws-sdk/client-s3');
    const { Upload } = await peer('@aws-sdk/lib-storage');
    const client = new S3Client(sdkOptions);
    return async () => {
      const { body } = await source();
      await new Upload({ client, params: { Bucket: 'media', Key: 'x', Body: body } }).done();
    };
  },
  async '@aws-sdk/client-s3'() {
    const { S3Client, PutObjectCommand } = await peer('@aws-sdk/client-s3');
    const client = new S3Client(sdkOptions);
    return async () => {
      const { body, headers } = await source();
      const ContentLength = Number(headers.get('content-length'));
      await client.send(
        new PutObjectCommand({ Bucket: 'media', Key: 'x', Body: Readable.fromWeb(body), ContentLength }),
      );
    };
  },
};

/** On Linux, `maxRSS` includes the parent's memory at the fork. The kernel's own high-water mark doesn't. */
function peakBytes() {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS * 1024;
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024;
}

const work = await WAYS[way]?.();
if (work === undefined) throw new Error(`Unknown way: ${way}`);
const count = async () => Number(await (await fetch(`${endpoint}/count`)).text());
await (await fetch(`${baseUrl}/v1/uploads`, { method: 'POST', body: '{}' })).arrayBuffer();
await count();
const start = process.memoryUsage.rss();
const begin = performance.now();
await work();
const ms = performance.now() - begin;
const grownBytes = peakBytes() - start;
const requests = await count();
process.stdout.write(JSON.stringify({ ms, grownBytes, requests }));
process.exit(0);
