import { describe, expect, it } from 'vitest';
import { fromPath } from '../../src/adapters/node/index.js';
import { PreflightError } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const png = new Blob([new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10])], { type: 'image/png' });
const sandbox = createSandbox({ clock: 'manual' });
const client = sandbox.client();

/** The error of a create with these fields; nothing may have been sent for it. */
async function refusal(fields: object, call: 'videos' | 'images' = 'videos'): Promise<PreflightError> {
  const before = sandbox.requests.length;
  const create = client[call].create as (params: object) => Promise<unknown>;
  const error: unknown = await create({ prompt: 'a fox', ...fields }).then(
    () => expect.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  expect(sandbox.requests.length).toBe(before);
  if (!PreflightError.isInstance(error)) throw error;
  return error;
}

describe('a file in a field for a URL is refused, with the field that takes it', () => {
  it.each<[object, string, string]>([
    [{ first_frame_url: png }, 'first_frame_url: ', 'first_frame_upload_id'],
    [{ last_frame_url: Buffer.from('x') }, 'last_frame_url: ', 'last_frame_upload_id'],
    [{ reference_image_urls: [png] }, 'reference_image_urls[0]: ', 'reference_image_upload_ids'],
    [{ referenceImageUrls: ['https://a.test/1.png', png] }, 'referenceImageUrls[1]: ', 'reference_image_upload_ids'],
    [{ reference_images: [png] }, 'reference_images[0]: ', 'reference_image_upload_ids'],
    [{ reference_videos: [fromPath('a.mp4')] }, 'reference_videos[0]: ', 'reference_video_upload_ids'],
    [{ reference_audio_urls: [new Uint8Array(3)] }, 'reference_audio_urls[0]: ', 'reference_audio_upload_ids'],
    [{ webhook_url: png }, 'webhook_url: ', 'public URL'],
    [{ content: [{ type: 'image_url', role: 'first_frame', image_url: png }] }, 'content[0].image_url: ', 'public URL'],
    [{ content: [{ type: 'image_url', image_url: { url: png } }] }, 'content[0].image_url: ', 'public URL'],
    [{ content: [png] }, 'content[0]: ', 'object with fields'],
  ])('%j', async (fields, at, advice) => {
    const { message, code } = await refusal(fields);
    expect(message.startsWith(at)).toBe(true);
    expect(message).toContain(advice);
    expect(code).toBe('http_400');
  });

  it('in the references of an image, too', async () => {
    const references = [{ type: 'image_url', url: png }];
    expect((await refusal({ references }, 'images')).message).toMatch(/^references\[0\]\.url: /);
    expect((await refusal({ reference_image_urls: [png] }, 'images')).message).toContain('reference_upload_ids');
  });
});

describe('what is neither an upload id nor a file is refused by its place', () => {
  it.each<[object, string]>([
    [{ first_frame_upload_id: '' }, 'first_frame_upload_id: is empty'],
    [{ first_frame_upload_id: '  ' }, 'first_frame_upload_id: is empty'],
    [
      { first_frame_upload_id: './fox.png' },
      'first_frame_upload_id: takes an upload id, and this is the name of a file',
    ],
    [{ first_frame_upload_id: 'fox.png' }, 'pass fromPath(path) or a Blob'],
    [{ first_frame_upload_id: 'data:image/png;base64,AAAA' }, 'pass fromPath(path) or a Blob'],
    [{ first_frame_upload_id: 'https://a.test/fox.png' }, 'a public URL goes into a field for URLs'],
    [{ first_frame_upload_id: Promise.resolve({ upload_id: 'u' }) }, 'is a promise; await the upload'],
    [{ first_frame_upload_id: { upload_id: 'upl_1' } }, 'is an upload; pass its upload_id'],
    [{ first_frame_upload_id: ['upl_1'] }, 'first_frame_upload_id: takes one value, not a list'],
    [{ first_frame_upload_id: 7 }, 'must be an upload id or a file, not 7'],
    [{ reference_image_upload_ids: 'upl_1' }, 'reference_image_upload_ids: must be a list'],
    [{ reference_image_upload_ids: png }, 'reference_image_upload_ids: must be a list'],
    [{ reference_image_upload_ids: ['upl_1', ''] }, 'reference_image_upload_ids[1]: is empty'],
    [{ reference_image_upload_ids: [undefined] }, 'reference_image_upload_ids[0]: must be'],
    [{ reference_image_upload_ids: [null] }, 'reference_image_upload_ids[0]: must be'],
    [{ reference_image_upload_ids: [png, { upload_id: 'u' }] }, 'reference_image_upload_ids[1]: is an upload'],
    [{ character_ids: 'char_1' }, 'character_ids: must be a list'],
    [{ character_ids: [''] }, 'character_ids[0]: must be a non-empty string'],
    [{ first_frame_url: '' }, 'first_frame_url: must be a non-empty string'],
    [{ reference_image_urls: 'https://a.test/1.png' }, 'reference_image_urls: must be a list'],
    [{ reference_image_urls: [''] }, 'reference_image_urls[0]: must be a non-empty string'],
  ])('%j', async (fields, message) => {
    expect((await refusal(fields)).message).toContain(message);
  });
});

it('ids, files, URLs, and fields that are left out pass', async () => {
  const params = {
    prompt: 'a fox',
    first_frame_upload_id: undefined,
    reference_image_upload_ids: null,
    last_frame_url: null,
    character_ids: [],
    reference_audio_urls: [new URL('https://a.test/1.mp3')],
  };
  const create = client.videos.create as (params: object) => Promise<{ job: { status: string } }>;
  expect((await create(params)).job.status).toMatch(/queued|processing/);
});

it('with preflight off, the service decides', async () => {
  const create = client.videos.create as (params: object, options: object) => Promise<unknown>;
  const creating = create({ prompt: 'a fox', first_frame_url: '' }, { preflight: false });
  await expect(creating).rejects.toMatchObject({ name: 'BadRequestError', code: 'invalid_request' });
});
