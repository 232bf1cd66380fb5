import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Browser, hasChromium, launch, type Page } from '../sandbox-doors/browser.js';
import { seeded } from '../support/seeded.js';
import { type PageApp, startApp } from './app.js';

const MB = 1_000_000;

/** A PNG of a number of bytes, made in the page: a small picture and what readers skip. */
const file = (bytes: number) => `(async () => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 400, height: 300 });
  canvas.getContext('2d').fillRect(0, 0, 200, 200);
  const png = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
  return new File([png, new Uint8Array(${bytes} - png.size)], 'fox.png', { type: 'image/png' });
})()`;

describe.skipIf(!hasChromium)('a page in Chromium', () => {
  let browser: Browser;
  let page: Page;
  let app: PageApp;
  let urls: string[] = [];

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  afterEach(() => app?.close());

  async function open(options: Parameters<typeof startApp>[0]): Promise<void> {
    app = await startApp(options);
    page = await (await browser.newContext({})).newPage();
    urls = [];
    page.on('request', (request) => urls.push(request.url()));
    await page.goto(app.url);
    await page.goto(app.url);
  }

  const states = `(run) => new Promise((resolve) => {
    const seen = [];
    const look = () => { seen.push(run.get()); if (['done', 'failed'].includes(run.get().phase)) resolve(seen); };
    run.subscribe(look); look();
  })`;

  it.each([
    ['straight to a storage that admits pages', { origin: 'other', cors: true }, 0],
    ['through the proxy where the storage does not admit pages', { origin: 'other', cors: false }, 1],
    ['through the proxy where the storage is the service itself', { origin: 'same' }, 1],
  ] as const)(
    'uploads 20 MB %s, with progress, and plays the video',
    async (_name, storage, relayed) => {
      // The bytes are sent in real time: on a clock much faster than that the request of a busy machine would be late.
      await open({ storage, speed: 10 });
      const seen: { phase: string; uploaded: number; url?: string; error?: unknown; share?: number }[] =
        await page.evaluate(
          `${file(20 * MB)}.then((image) => (${states})(gen.videos.create({ prompt: 'a fox', first_frame_upload_id: image })))`,
        );
      const last = seen.at(-1);
      expect(last?.error).toBeUndefined();
      expect(last).toMatchObject({ phase: 'done', uploaded: 1, url: expect.stringContaining('/api/gen/file?t=') });
      const uploads = seen.filter(({ phase }) => phase === 'uploading').map(({ uploaded }) => uploaded);
      expect(uploads.length).toBeGreaterThanOrEqual(2);
      expect(app.asked.filter((one) => one === 'POST bytes')).toHaveLength(relayed);
      const played = await page.evaluate(`new Promise((resolve, reject) => {
        const video = document.querySelector('video');
        video.onerror = () => reject(new Error('the video does not load'));
        video.onseeked = () => resolve([video.duration, video.currentTime]);
        video.onloadedmetadata = () => { video.currentTime = video.duration / 2; };
        video.src = ${JSON.stringify(last?.url)};
      })`);
      expect(played).toEqual([expect.closeTo(5, 0), expect.closeTo(2.5, 0)]);
      // The page has no key, and asks nobody but its own server and the storage.
      expect(urls.filter((url) => url.includes(app.sandbox.apiKey))).toEqual([]);
      expect(app.sandbox.jobs.filter(({ mediaType }) => mediaType === 'video')).toHaveLength(1);
    },
    60_000,
  );

  it('makes one job over twelve reloads at random moments, in real time', async () => {
    await open({ jobMs: 4_000, speed: 1 });
    const random = seeded(7);
    // From this moment on the run is kept: a reload before it sends nothing, and so loses nothing that is paid.
    await page.evaluate(`new Promise((resolve) => {
      const run = gen.videos.create({ prompt: 'a fox over reloads' });
      run.subscribe(() => run.get().phase === 'creating' && resolve());
    })`);
    for (let reload = 0; reload < 12; reload++) {
      await page.evaluate(`new Promise((resolve) => setTimeout(resolve, ${Math.floor(random() * 700)}))`);
      await page.goto(app.url);
    }
    const last: { phase: string } = await page.evaluate('runs[0].done');
    expect(last.phase).toBe('done');
    expect(app.sandbox.jobs).toHaveLength(1);
    await page.goto(app.url);
    expect(await page.evaluate('runs[0].done.then(({ phase }) => phase)')).toBe('done');
    await page.evaluate('runs[0].forget()');
    await page.goto(app.url);
    expect(await page.evaluate('runs.length')).toBe(0);
  });

  it('makes one job and one upload of a double click on a form with a file', async () => {
    await open({ jobMs: 300, speed: 10 });
    const [isOne, phase] = await page.evaluate<[boolean, string]>(`(async () => {
      const files = new DataTransfer();
      files.items.add(await ${file(10_000)});
      const form = Object.assign(document.createElement('form'), { innerHTML: '<input type="file" name="image"><button>Make it</button>' });
      form.elements.image.files = files.files;
      const clicked = [];
      form.onsubmit = (event) => {
        event.preventDefault();
        clicked.push(gen.videos.create({ prompt: 'a fox', first_frame_upload_id: new FormData(form).get('image') }));
      };
      document.body.append(form);
      for (const _ of [1, 2]) form.querySelector('button').click();
      return [clicked[0] === clicked[1], (await clicked[1].done).phase];
    })()`);
    expect([isOne, phase]).toEqual([true, 'done']);
    expect(app.asked.filter((one) => one !== 'POST watch')).toEqual([
      'POST session',
      'POST upload',
      'POST bytes',
      'POST uploaded',
      'POST videos',
    ]);
    expect(app.sandbox.jobs).toHaveLength(1);
  });

  it('holds its requests instead of asking again and again', async () => {
    await open({ jobMs: 4_000 });
    await page.evaluate(`gen.videos.create({ prompt: 'a fox' }).done.then(({ phase }) => phase)`);
    expect(app.asked.filter((one) => one === 'POST watch').length).toBeLessThanOrEqual(6);
    expect(app.sandbox.requests.filter(({ method }) => method === 'GET').length).toBeLessThanOrEqual(6);
  });

  it('lets a second tab with the same runs see what the first one learns, and forget with it', async () => {
    await open({ jobMs: 1_500 });
    const agreed = await page.evaluate(`new Promise(async (resolve) => {
      const other = Object.assign(document.createElement('iframe'), { src: location.href });
      const run = gen.videos.create({ prompt: 'a fox' });
      await new Promise((next) => setTimeout(next, 300));
      document.body.append(other);
      await new Promise((next) => { other.onload = next; });
      const twin = other.contentWindow.runs[0];
      const [mine, theirs] = await Promise.all([run.done, twin.done]);
      run.forget();
      await new Promise((next) => setTimeout(next, 300));
      resolve([mine.url !== undefined, theirs.phase, other.contentWindow.gen.resume().length]);
    })`);
    expect(agreed).toEqual([true, 'done', 0]);
    expect(app.sandbox.jobs).toHaveLength(1);
  });
});
