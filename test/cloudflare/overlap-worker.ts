// A Worker for overlap.test.ts. Its requests share clients.
import { GenClient } from 'gen-client';

interface Env {
  readonly BASE_URL: string;
}

const clients = new Map<string, GenClient>();

function clientOf(env: Env, name: string): GenClient {
  const existing = clients.get(name);
  if (existing) return existing;
  const { BASE_URL: baseUrl } = env;
  const limits = { 'videos.create': { limit: 2, windowMs: 600 } };
  // A key from a vault. Its promise belongs to the request that calls the function.
  const vault = async () => {
    await (await fetch(`${baseUrl}/v1/jobs/vault`)).text();
    return 'key-of-vault';
  };
  const client =
    name === 'vault'
      ? new GenClient({ baseUrl, apiKey: vault })
      : name === 'narrow'
        ? new GenClient({ baseUrl, apiKey: 'narrow', limits })
        : new GenClient({ baseUrl, apiKey: 'key' });
  clients.set(name, client);
  return client;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const { id = '', client: name = 'one', timeoutMs = 20_000, abortMs } = Object.fromEntries(searchParams);
    const client = clientOf(env, name);
    try {
      if (pathname === '/notify') client.notify({ data: { job: { id } } });
      if (pathname === '/wait') {
        const signal = abortMs === undefined ? undefined : AbortSignal.timeout(Number(abortMs));
        const job = await client.waitForJob(id, { timeoutMs: Number(timeoutMs), signal });
        return Response.json({ status: job.status });
      }
      if (pathname === '/get') return Response.json({ status: (await client.jobs.get(id)).status });
      if (pathname === '/create')
        return Response.json({ status: (await client.videos.create({ prompt: 'fox' })).job.id });
      // Starts a wait, and responds without awaiting it. Its promises end with the request.
      if (pathname === '/leave') {
        client.waitForJob(id).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      // Queues a call, and responds without awaiting it.
      if (pathname === '/leave-queue') {
        client.videos.create({ prompt: 'fox' }).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return Response.json({ status: 'ok' });
    } catch (error) {
      return Response.json({ error: error instanceof Error ? error.name : String(error) });
    }
  },
};
