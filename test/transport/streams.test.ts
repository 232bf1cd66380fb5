// Streamed downloads and uploads, and their timeouts.
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ConnectionError, GenClient, TimeoutError } from '../../src/index.js';
import { fakeTimers } from '../support/fake-timers.js';
import { quiet } from '../support/quiet.js';
import {
  BASE_URL,
  countedSignal,
  created,
  freshKey,
  httpServer,
  json,
  never,
  rawServer,
  rejection,
  stubbed,
  stubbedTransport,
} from './support.js';

beforeAll(quiet);

describe('a stream', () => {
  fakeTimers();

  /** Returns a body that yields `chunks` chunks, one every `ms`, and then ends or stalls. */
  function slowBody(ms: number, chunks: number, isComplete = true) {
    let sent = 0;
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          await new Promise((resolve) => setTimeout(resolve, ms));
          sent += 1;
          if (sent <= chunks) controller.enqueue(new TextEncoder().encode('x'));
          else if (isComplete) controller.close();
          else await new Promise(() => {});
        },
      },
      { highWaterMark: 0 },
    );
  }

  it('can last longer than timeoutMs as long as bytes arrive', async () => {
    const { client } = stubbed(() => new Response(slowBody(800, 10)), { timeoutMs: 1_000 });
    const text = client.jobs.output('job_1').then((response) => response.text());
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await text).toBe('x'.repeat(10));
    expect(vi.getTimerCount()).toBe(0);
  });

  it('rejects with a TimeoutError after timeoutMs if it stalls', async () => {
    const { client } = stubbed(() => new Response(slowBody(10, 2, false)), { timeoutMs: 1_000 });
    const { signal, listeners } = countedSignal();
    const outcome = rejection(client.jobs.output('job_1', { signal }).then((response) => response.text()));
    await vi.advanceTimersByTimeAsync(1_100);
    expect(await outcome).toBeInstanceOf(TimeoutError);
    expect(listeners()).toBe(0);
  });

  it.each(['during a read', 'between two reads'])(
    "ends immediately on an abort %s, with the signal's reason, and cancels its source",
    async (when) => {
      const cancel = vi.fn();
      const body = new ReadableStream({ pull: () => new Promise(() => {}), cancel }, { highWaterMark: 0 });
      const { client } = stubbed(() => new Response(body));
      const { controller, signal, listeners } = countedSignal();
      const reader = (await client.jobs.output('job_1', { signal })).body?.getReader();
      const pending = when === 'during a read' ? reader?.read() : undefined;
      pending?.catch(() => {});
      await vi.advanceTimersByTimeAsync(5);
      expect(listeners()).toBe(1);
      controller.abort('enough');
      expect(await rejection(Promise.resolve(pending ?? reader?.read()))).toBe('enough');
      expect(cancel).toHaveBeenCalledTimes(1);
      expect(listeners()).toBe(0);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it('leaves no listener if its reader cancels it', async () => {
    const cancel = vi.fn();
    const { client } = stubbed(() => new Response(new ReadableStream({ cancel })));
    const { signal, listeners } = countedSignal();
    const response = await client.jobs.output('job_1', { signal });
    expect(listeners()).toBe(1);
    await response.body?.cancel();
    expect(cancel).toHaveBeenCalledTimes(1);
    expect(listeners()).toBe(0);
  });
});

describe('on a real connection', () => {
  it('an interrupted stream rejects with a ConnectionError after the bytes that arrived', async () => {
    let disconnect = () => {};
    const server = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello');
      disconnect = () => socket.destroy();
    });
    const client = new GenClient({ apiKey: freshKey(), baseUrl: server.url });
    const response = await client.jobs.output('job_1');
    expect(response.headers.get('content-length')).toBe('10');
    expect(response.url).toBe(`${server.url}/v1/jobs/job_1/output`);
    const reader = response.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('hello');
    disconnect();
    expect(await rejection(Promise.resolve(reader?.read()))).toBeInstanceOf(ConnectionError);
    await server.close();
  });
});

describe('uploaded bytes', () => {
  const target = { name: 'put', headers: {}, repeatable: true };

  it('are retried in full if possible, and otherwise sent once', async () => {
    const bodies: string[] = [];
    const server = await httpServer((_request, response, body) => {
      bodies.push(body);
      response.writeHead(bodies.length === 2 ? 200 : 503).end('done');
    });
    const transport = stubbedTransport(fetch, { baseUrl: server.url });
    const url = `${server.url}/put`;
    const done = await transport.transfer({ ...target, url, body: () => new Blob(['abc']) });
    expect(await done.text()).toBe('done');
    const stream = () => new Blob(['once']).stream();
    const error = await rejection(transport.transfer({ ...target, url, body: stream, repeatable: false }));
    expect(error).toMatchObject({ status: 503, attempts: 1 });
    expect(bodies).toEqual(['abc', 'abc', 'once']);
    await server.close();
  });

  describe('to storage that never responds', () => {
    fakeTimers();
    const rejectedUpload = (body: (onProgress: () => void) => BodyInit, headers = {}) => {
      const transport = stubbedTransport(never, { timeoutMs: 1_000, maxRetries: 0 });
      return rejection(transport.transfer({ ...target, url: `${BASE_URL}/put`, headers, body }));
    };

    it('extend their timeout while bytes are sent, and time out after they stop', async () => {
      let onProgress = () => {};
      const body = (report: () => void) => {
        onProgress = report;
        return new Blob(['x']);
      };
      const outcome = rejectedUpload(body, { 'content-length': '1' });
      for (let step = 0; step < 5; step++) {
        await vi.advanceTimersByTimeAsync(900);
        onProgress();
      }
      expect(vi.getTimerCount()).toBe(1);
      await vi.advanceTimersByTimeAsync(1_100);
      expect(await outcome).toBeInstanceOf(TimeoutError);
    });

    it('get more time for larger files, enough for a slow connection', async () => {
      const outcome = rejectedUpload(() => new Uint8Array(1_000_000));
      await vi.advanceTimersByTimeAsync(10_900);
      expect(vi.getTimerCount()).toBe(1);
      await vi.advanceTimersByTimeAsync(200);
      expect(await outcome).toBeInstanceOf(TimeoutError);
    });
  });
});

it("cache: 'no-store' is omitted if the runtime rejects it", async () => {
  const caches: (RequestCache | undefined)[] = [];
  class WithoutCache extends Request {
    constructor(input: RequestInfo | URL, init?: RequestInit) {
      if (init?.cache) throw new Error("The 'cache' field on 'RequestInitializerDict' is not implemented.");
      super(input, init);
    }
  }
  vi.stubGlobal('Request', WithoutCache);
  const { client } = stubbed((_received, { cache }) => {
    caches.push(cache);
    return json(created());
  });
  await client.jobs.get('job_1');
  vi.unstubAllGlobals();
  expect(caches).toEqual(['default']);
});
