// `node --import ./scripts/typescript.mjs scripts/pictures.ts [FOLDER]`: captures `docs/sandbox.png` from a real run. With a
// folder, captures the page at two widths and in both color schemes. Needs ffmpeg, which reduces the colors to a palette.
import { execFileSync } from 'node:child_process';
import { renameSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { GenClient } from '../src/index.js';
import { createSandbox } from '../src/sandbox/index.js';
import { launch } from '../test/support/browser.js';

const [folder] = process.argv.slice(2);
const views = [1280, 390].flatMap((width) =>
  ['light', 'dark'].map((colorScheme) => {
    return { path: `${folder}/sandbox-${width}-${colorScheme}.png`, width, colorScheme };
  }),
);
const forDocs = { path: join(import.meta.dirname, '../docs/sandbox.png'), width: 1280, colorScheme: 'light' };

/** The receiver's second response is a 500, so that the page shows a retried webhook. */
let deliveries = 0;
const receiver = createServer((_, response) => response.writeHead(deliveries++ === 1 ? 500 : 204).end());
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const webhook_url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/webhooks`;

const sandbox = createSandbox({ clock: 'manual', seed: 7, jobDurationMs: 40_000 });
const service = await sandbox.listen();
const { videos, images } = new GenClient({ apiKey: sandbox.apiKey, baseUrl: service.url });

await videos.create({
  prompt: 'A fox trots through fresh snow at dawn, slow pan, warm light',
  duration: 5,
  webhook_url,
});
await images.create({ prompt: 'Poster of a lighthouse in a storm, two colors' });
await sandbox.advance(41_000);
sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
await videos.create({ prompt: 'A crow that steals the crown', duration: 4, webhook_url });
sandbox.faults.add({ match: { method: 'POST' }, status: 503, code: 'internal_error', times: 1 });
await videos.create({ prompt: 'Waves in slow motion at the golden hour', duration: 8, webhook_url });
await sandbox.advance(60_000);
await videos.create({ prompt: 'A paper boat on a rainy street', duration: 5, webhook_url });
await sandbox.advance(8_000);

const browser = await launch();
for (const { path, width, colorScheme } of folder === undefined ? [forDocs] : views) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  await page.goto(service.url);
  // By then, the page has polled once and loaded the first frames of its videos.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  await page.screenshot?.({ path });
  await context.close();
}
await browser.close();
if (folder === undefined) {
  const [from, to] = [forDocs.path, `${forDocs.path}.small.png`];
  const filter = 'split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none';
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', from, '-vf', filter, '-pix_fmt', 'pal8', '-pred', 'mixed', to]);
  renameSync(to, from);
}
await service.close();
receiver.close();
