import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type Listening, type Sandbox } from '../../src/sandbox/index.js';
import { type Browser, hasChromium, launch, type Page } from '../support/browser.js';

describe.skipIf(!hasChromium)('a page on another origin, in Chromium', () => {
  let browser: Browser;
  let page: Page;
  let sandbox: Sandbox;
  let server: Listening;
  const app = createServer((_, response) => response.end('<!doctype html><title>An app</title>'));

  beforeAll(async () => {
    browser = await launch();
    page = await (await browser.newContext({})).newPage();
    sandbox = createSandbox({ storage: 'other-origin' });
    server = await sandbox.listen();
    await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
    await page.goto(`http://127.0.0.1:${(app.address() as AddressInfo).port}/`);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    app.close();
  });

  it("uploads with progress to its server's upload URL", async () => {
    const headers = { authorization: `Bearer ${sandbox.apiKey}`, 'content-type': 'application/json' };
    const post = async (path: string, body: object) => {
      const init = { method: 'POST', headers, body: JSON.stringify(body) };
      return (await (await fetch(server.url + path, init)).json()).data;
    };
    const size = 3_000_000;
    const params = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: size, upload_type: 'VIDEO' };
    const upload = await post('/v1/uploads', params);
    const put = `new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      let progress = 0;
      request.upload.onprogress = ({ loaded }) => { progress = loaded; };
      request.onload = () => resolve([request.status, progress, request.getResponseHeader('etag')]);
      request.onerror = () => reject(new Error('blocked'));
      request.open('PUT', ${JSON.stringify(upload.direct_upload_url)});
      for (const [name, value] of Object.entries(${JSON.stringify(upload.headers)})) request.setRequestHeader(name, value);
      request.send(new Uint8Array(${size}));
    })`;
    expect(await page.evaluate(put)).toEqual([200, size, `"${upload.upload_id}"`]);
    expect(await post('/v1/uploads/complete', { upload_id: upload.upload_id })).toMatchObject({ status: 'ready' });
  });

  it("can't read the API or the control API", async () => {
    const read = (path: string) => page.evaluate(`fetch('${server.url}${path}').then(() => 'read', () => 'blocked')`);
    expect(await read('/v1/models')).toBe('blocked');
    expect(await read('/_sandbox/state')).toBe('blocked');
  });
});
