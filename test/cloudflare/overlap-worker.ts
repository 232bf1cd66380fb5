// A Worker whose requests share clients, for tests with overlapping requests in one isolate.
import { GenClient } from 'gen-client';

interface Env {
  readonly BASE_URL: string;
}

const clients = new Map<string, GenClient>();

function clientOf(env: Env, name: string): GenClient {
  const known = clients.get(name);
  if (known) return known;
  const { BASE_URL: baseUrl } = env;
  const limits = { 'videos.create': { limit: 2, windowMs: 600 } };
  // A fetched key, as from a vault. Its promise belongs to the calling request.
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
      if (pathname === '/read') return Response.json({ status: (await client.jobs.get(id)).status });
      if (pathname === '/create')
        return Response.json({ status: (await client.videos.create({ prompt: 'fox' })).job.id });
      // Starts a wait and responds without awaiting it, so its promises end with the request.
      if (pathname === '/leave') {
        client.waitForJob(id).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      // Queues for a slot and responds without awaiting it.
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
