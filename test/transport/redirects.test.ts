import { afterEach, describe, expect, it, vi } from 'vitest';
import { APIError, GenClient } from '../../src/index.js';
import {
  BASE_URL,
  created,
  freshKey,
  httpServer,
  json,
  PROMPT,
  rejection,
  stubbed,
  stubbedTransport,
} from './support.js';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((close) => close()));
});

async function serve(...parameters: Parameters<typeof httpServer>): Promise<string> {
  const { url, close } = await httpServer(...parameters);
  cleanups.push(close);
  return url;
}

const redirectTo =
  (location: string, status = 302) =>
  () =>
    new Response(null, { status, headers: { location } });

describe('a redirect', () => {
  it('that keeps a GET on the same origin is followed with the API key', async () => {
    const { client, requests } = stubbed([redirectTo('/moved/jobs/1'), () => json(created())]);
    expect((await client.jobs.get('job_1')).id).toBe('job_1');
    expect(requests[1]?.url).toBe('https://service.test/moved/jobs/1');
    expect(requests[1]?.headers.authorization).toBe(requests[0]?.headers.authorization);
  });

  it('that sends a JSON GET to another origin is rejected with an error that shows the origin but not the query', async () => {
    const { client, requests } = stubbed(redirectTo('https://elsewhere.test/x?signature=secret'));
    const error = (await rejection(client.jobs.get('job_1'))) as APIError;
    expect(error).toBeInstanceOf(APIError);
    expect(error.message).toContain('https://elsewhere.test');
    expect(error.message).toContain('baseUrl');
    expect(error.message).not.toContain('secret');
    expect(error).toMatchObject({ status: 302, attempts: 1 });
    expect(requests).toHaveLength(1);
  });

  it.each([301, 302, 303, 307, 308])(
    'with %i in response to a POST is rejected, and the other server receives no request (real servers)',
    async (status) => {
      let elsewhere = 0;
      const other = await serve((_request, response) => {
        elsewhere += 1;
        response.end(created());
      });
      const url = await serve((_request, response) => {
        response.writeHead(status, { location: `${other}/v1/videos` });
        response.end();
      });
      const client = new GenClient({ apiKey: freshKey(), baseUrl: url });
      expect(await rejection(client.videos.create(PROMPT))).toMatchObject({
        status,
        method: 'POST',
        idempotencyKey: expect.any(String),
        message: expect.stringContaining(other),
      });
      expect(elsewhere).toBe(0);
    },
  );

  it('whose location a browser hides is rejected with an explanation', async () => {
    const hidden = () => Object.defineProperty(new Response(null), 'type', { value: 'opaqueredirect' });
    const { client } = stubbed(hidden);
    await expect(client.jobs.get('job_1')).rejects.toThrow(/browsers hide its location/);
  });

  it.each(['http://service.test/jobs/1', 'ftp://service.test/x', 'http://['])('to %s is rejected', async (location) => {
    const { client, requests } = stubbed(redirectTo(location));
    expect(await rejection(client.jobs.output('job_1'))).toBeInstanceOf(APIError);
    expect(requests).toHaveLength(1);
  });

  it('in a loop is followed five times, and then rejected', async () => {
    const { client, requests } = stubbed(redirectTo('/prefix/v1/jobs/job_1'));
    await expect(client.jobs.get('job_1')).rejects.toThrow(/6th in a row/);
    expect(requests).toHaveLength(6);
  });

  it('that sends a download to another origin is followed without the API key and the custom headers', async () => {
    const received: NodeJS.Dict<string | string[]>[] = [];
    const storage = await serve((request, response) => {
      received.push(request.headers);
      response.end('the file');
    });
    const url = await serve((request, response) => {
      received.push(request.headers);
      response.writeHead(307, { location: `${storage}/file?signature=1` });
      response.end();
    });
    const apiKey = freshKey();
    const client = new GenClient({ apiKey, baseUrl: url, headers: { 'X-Tenant': 'acme' } });
    const output = await client.jobs.output('job_1', { range: { start: 0 }, headers: { 'x-trace': 't1' } });
    expect(await output.text()).toBe('the file');
    expect(received[0]).toMatchObject({ authorization: `Bearer ${apiKey}`, 'x-tenant': 'acme', 'x-trace': 't1' });
    expect(received[1]).toMatchObject({ range: 'bytes=0-' });
    expect(received[1]).not.toHaveProperty('authorization');
    expect(JSON.stringify(received[1])).not.toMatch(/acme|t1|sk-test/);
  });

  it.each(['https://user:pw@storage.test/a.mp4', 'https://user@storage.test/a.mp4'])(
    'to a URL with credentials is rejected without showing the URL: %s',
    async (location) => {
      const { client, requests } = stubbed([redirectTo(location), () => new Response('bytes')]);
      const error = (await rejection(client.jobs.output('job_1'))) as APIError;
      expect(error).toBeInstanceOf(APIError);
      expect(error.message).toContain('a user name or a password');
      expect(JSON.stringify([error, error.message, error.stack])).not.toMatch(/pw|user@|user:|storage\.test/);
      expect(requests).toHaveLength(1);
    },
  );

  it('from another origin back to the service omits the API key', async () => {
    const { client, requests } = stubbed([
      redirectTo('https://elsewhere.test/x'),
      redirectTo('https://service.test/prefix/v1/back'),
      () => new Response('file'),
    ]);
    expect(await (await client.jobs.output('job_1')).text()).toBe('file');
    expect(requests.map((request) => 'authorization' in request.headers)).toEqual([true, false, false]);
  });
});

describe('bytes sent to an absolute URL', () => {
  const target = { name: 'put', headers: { 'content-type': 'image/png' }, repeatable: true } as const;

  it("are sent with the API key only to the service's own origin", async () => {
    const received: object[] = [];
    const fetch = async (_url: string, { headers }: RequestInit) => {
      received.push(Object.fromEntries(new Headers(headers)));
      return new Response('');
    };
    const transport = stubbedTransport(fetch, { headers: { 'x-tenant': 'acme' } });
    for (const url of [`${BASE_URL}/v1/uploads?upload_id=1`, 'https://storage.test/put?signature=1'])
      await transport.transfer({ ...target, url, body: () => 'x' });
    expect(received[0]).toHaveProperty('authorization');
    expect(received[1]).toEqual({ 'content-type': 'image/png' });
  });

  it('are sent once to a real server, and never redirected', async () => {
    let requests = 0;
    const url = await serve((_request, response) => {
      requests += 1;
      response.writeHead(307, { location: 'http://127.0.0.1:9/elsewhere' });
      response.end();
    });
    const transport = stubbedTransport(fetch, { baseUrl: url });
    for (const body of [() => new Blob(['some bytes']).stream(), () => 'x']) {
      const error = await rejection(transport.transfer({ ...target, url: `${url}/put`, body }));
      expect(error).toMatchObject({ name: 'APIError', attempts: 1 });
    }
    expect(requests).toBe(2);
  });
});

it('the body of a followed redirect is canceled, so it frees its connection', async () => {
  const cancel = vi.fn();
  const headers = { location: `${BASE_URL}/elsewhere` };
  const moved = () => new Response(new ReadableStream({ cancel }), { status: 302, headers });
  const { client } = stubbed([moved, () => json(created())]);
  await client.jobs.get('job_1');
  expect(cancel).toHaveBeenCalledTimes(1);
});
