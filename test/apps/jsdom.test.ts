import { JSDOM } from 'jsdom';
import { afterEach, expect, it, vi } from 'vitest';
import { GenClient } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => PNG[index] ?? index % 251);

afterEach(() => void vi.unstubAllGlobals());

it.each(['Blob', 'File'] as const)("uploads jsdom's %s, which has no stream()", async (kind) => {
  const { window } = new JSDOM();
  vi.stubGlobal('FileReader', window.FileReader);
  const parts = [bytes.subarray(0, 70_000), bytes.subarray(70_000)];
  const source: Blob = kind === 'Blob' ? new window.Blob(parts) : new window.File(parts, 'fox.png');
  expect(source.stream).toBeUndefined();
  const sandbox = createSandbox();
  let received = new Uint8Array();
  const client = new GenClient({
    apiKey: sandbox.apiKey,
    baseUrl: sandbox.baseUrl,
    async fetch(url, init) {
      const request = new Request(url, init);
      if (request.method === 'PUT') received = await request.clone().bytes();
      return sandbox.fetch(request);
    },
  });
  const upload = await client.uploads.upload(source);
  expect(upload).toMatchObject({ mime_type: 'image/png', file_size: bytes.length });
  expect(Buffer.from(received).equals(bytes)).toBe(true);
});
