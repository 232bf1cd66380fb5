// One transfer in a fresh process: `transfer.mjs <way> <base URL> <path>`. Prints its wall time, CPU time, and peak memory in
// bytes. Plain JavaScript, because stripping types would need more memory than the transfer.
import { once } from 'node:events';
import { createReadStream, createWriteStream, openAsBlob, readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';

const MB = 1024 * 1024;
const [way = '', baseUrl = '', path = ''] = process.argv.slice(2);
const peers = createRequire(new URL('../peers/package.json', import.meta.url));
const peer = async (name) => (await import(pathToFileURL(peers.resolve(name)).href)).default;

async function ownClient() {
  const { GenClient } = await import('gen-client');
  return { client: new GenClient({ apiKey: 'bench', baseUrl }), ...(await import('gen-client/node')) };
}

/** Functions that prepare a transfer, and return the work to measure. */
const WAYS = {
  'fetch, openAsBlob': async () => async () => put(await openAsBlob(path), {}),
  async 'fetch, 1 MB stream'() {
    const headers = { 'content-length': String(statSync(path).size) };
    const stream = () => Readable.toWeb(createReadStream(path, { highWaterMark: MB }));
    return () => put(stream(), { headers, redirect: 'error', duplex: 'half' });
  },
  async 'node:http, 1 MB stream'() {
    const headers = { 'content-length': statSync(path).size };
    return async () => {
      const upload = request(`${baseUrl}/bytes`, { method: 'PUT', headers });
      const responsePromise = once(upload, 'response');
      await pipeline(createReadStream(path, { highWaterMark: MB }), upload);
      const [response] = await responsePromise;
      response.resume();
      await once(response, 'end');
    };
  },
  async 'gen-client upload'() {
    const { client, fromPath } = await ownClient();
    return () => client.uploads.upload(fromPath(path));
  },
  async 'gen-client upload, Blob'() {
    const { client } = await ownClient();
    return async () => client.uploads.upload(await openAsBlob(path, { type: 'video/mp4' }));
  },
  async openai() {
    const client = new (await peer('openai'))({ apiKey: 'bench', baseURL: `${baseUrl}/v1` });
    return () => client.files.create({ file: createReadStream(path), purpose: 'user_data' });
  },
  async '@anthropic-ai/sdk'() {
    const client = new (await peer('@anthropic-ai/sdk'))({ apiKey: 'bench', baseURL: baseUrl });
    return () => client.beta.files.upload({ file: createReadStream(path) });
  },
  'fetch, piped': async () => async () => {
    const response = await fetch(`${baseUrl}/v1/jobs/job_1/output`, { headers: { authorization: 'Bearer bench' } });
    await pipeline(Readable.fromWeb(response.body), createWriteStream(path));
  },
  'fetch, piped, flushed': async () => async () => {
    const response = await fetch(`${baseUrl}/v1/jobs/job_1/output`, { headers: { authorization: 'Bearer bench' } });
    await pipeline(Readable.fromWeb(response.body), createWriteStream(path, { flush: true }));
  },
  async 'disk alone, flushed'() {
    const part = Buffer.alloc(MB, 'gen-client');
    const parts = function* () {
      for (let left = 200_000_000; left > 0; left -= part.length) yield part.subarray(0, Math.min(left, part.length));
    };
    return () => pipeline(Readable.from(parts()), createWriteStream(path, { flush: true }));
  },
  async 'gen-client saveOutput'() {
    const { client, saveOutput } = await ownClient();
    return () => saveOutput(client, 'job_1', path);
  },
};

async function put(body, init) {
  const response = await fetch(`${baseUrl}/bytes`, { method: 'PUT', body, ...init });
  if (!response.ok) throw new Error(`${response.status}`);
  await response.arrayBuffer();
}

/** On Linux, `maxRSS` includes the parent's memory at the fork. The kernel's own high-water mark doesn't. */
function peakBytes() {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS * 1024;
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024;
}

const work = await WAYS[way]?.();
if (work === undefined) throw new Error(`Unknown way: ${way}`);
await (await fetch(`${baseUrl}/v1/uploads`, { method: 'POST', body: '{}' })).arrayBuffer();
const cpu = process.cpuUsage();
const begin = performance.now();
await work();
const ms = performance.now() - begin;
const { user, system } = process.cpuUsage(cpu);
process.stdout.write(JSON.stringify({ ms, cpuMs: (user + system) / 1000, peakBytes: peakBytes() }));
process.exit(0);
