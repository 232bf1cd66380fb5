// The files in the body of a call: what is looked at, sent, kept and deleted, at the service's own steps.
import { describe, expect, it, vi } from 'vitest';
import { checkFiles, filesIn, placedFiles, replaceFiles } from '../../src/uploading/body-files.js';
import type { UploadSteps } from '../../src/uploading/upload.js';
import { UploadMemory } from '../../src/uploading/upload-memory.js';
import { countedSignal, rejection } from '../transport/support.js';
import { mp3, mp4, png } from './by-value-setup.js';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The steps of a service that takes every upload, and what they were asked. */
function start() {
  const memory = new UploadMemory(true);
  let made = 0;
  const steps = {
    baseUrl: () => 'https://service.test',
    memory: async () => memory,
    create: vi.fn<UploadSteps['create']>(async (params) => ({
      ...params,
      upload_id: `upl_${++made}`,
      direct_upload_url: 'https://storage.test/put',
      headers: {},
    })),
    put: vi.fn<UploadSteps['put']>(async () => new Response()),
    complete: vi.fn<UploadSteps['complete']>(async (upload_id) => ({ upload_id })),
    delete: vi.fn<UploadSteps['delete']>(async () => ({})),
  };
  const deleted = () => steps.delete.mock.calls.map(([id]) => id);
  /** The files of a body that has some. */
  const filesOf = (body: object) => filesIn(steps, body) ?? expect.fail('no files');
  return { memory, steps, deleted, filesOf };
}

/** A file whose look takes as long as the test wants: its type is in its first bytes. */
function slowFile() {
  let give = () => {};
  const cancel = vi.fn();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        await new Promise<void>((resolve) => {
          give = resolve;
        });
        controller.enqueue(await png(300, 5_000).bytes());
      },
      cancel,
    },
    { highWaterMark: 0 },
  );
  return { file: new Response(body, { headers: { 'content-length': '5000' } }), give: () => give(), cancel };
}

describe('the files of a body', () => {
  it('are whatever is no text in a field for uploads, in order and with their places', () => {
    const [image, clip, sound] = [png(), mp4(), () => new Blob([]).stream()];
    const body = {
      prompt: { no: 'upload' },
      first_frame_upload_id: image,
      last_frame_upload_id: 'upl_1',
      reference_image_upload_ids: ['upl_2', image, null],
      source_video_upload_id: null,
      reference_video_upload_ids: [clip],
      reference_audio_upload_ids: [sound],
      upload_id: sound,
    };
    expect(placedFiles(body)).toEqual([
      { source: image, field: 'first_frame_upload_id', at: 'first_frame_upload_id' },
      { source: image, field: 'reference_image_upload_ids', at: 'reference_image_upload_ids[1]' },
      { source: clip, field: 'reference_video_upload_ids', at: 'reference_video_upload_ids[0]' },
      { source: sound, field: 'reference_audio_upload_ids', at: 'reference_audio_upload_ids[0]' },
      { source: sound, field: 'upload_id', at: 'upload_id' },
    ]);
    for (const none of [undefined, null, 'text', [image], {}]) expect(placedFiles(none)).toEqual([]);
  });

  it('give their places to the ids of their uploads, and nothing else changes', async () => {
    const { filesOf, steps } = start();
    const [image, sound] = [png(), () => new Blob([new Uint8Array(9)]).stream()];
    const body = { prompt: 'x', first_frame_upload_id: image, reference_image_upload_ids: ['upl_0', image], seed: 7 };
    expect(await filesOf(body).upload(body, {})).toEqual({
      prompt: 'x',
      first_frame_upload_id: 'upl_1',
      reference_image_upload_ids: ['upl_0', 'upl_1'],
      seed: 7,
    });
    expect(steps.create).toHaveBeenCalledOnce();
    expect(replaceFiles(body, new Map([[image, { ref: 1 }]])).first_frame_upload_id).toEqual({ ref: 1 });
    // A function does not tell its size: only `uploads.upload` can be told.
    await expect(filesOf({ upload_id: sound }).upload({}, {})).rejects.toThrow(
      'upload_id: sizeBytes is missing. The service needs the size before the first byte, and a factory does not tell it. ' +
        'Upload it with uploads.upload(file, { sizeBytes }), and pass its upload_id here.',
    );
  });

  it('are copied with their body: a list that the caller changes meanwhile is another one', () => {
    const { filesOf } = start();
    const body = { prompt: 'x', reference_image_upload_ids: [png()] };
    const copy = filesOf(body).copy(body);
    expect(copy).toEqual(body);
    expect(copy).not.toBe(body);
    expect((copy as typeof body).reference_image_upload_ids).not.toBe(body.reference_image_upload_ids);
    expect((copy as typeof body).reference_image_upload_ids[0]).toBe(body.reference_image_upload_ids[0]);
  });

  it('are left out of its outline, which throws for what JSON cannot carry', () => {
    const { filesOf } = start();
    const body = { prompt: 'x', first_frame_upload_id: png(), reference_image_upload_ids: ['upl_1', png()] };
    expect(filesOf(body).outline(body)).toBe(
      '{"prompt":"x","first_frame_upload_id":"","reference_image_upload_ids":["upl_1",""]}',
    );
    expect(() => filesOf(body).outline({ ...body, seed: 1n })).toThrow(TypeError);
  });

  it('are nothing where there are none', () => {
    expect(filesIn(start().steps, { prompt: 'x', first_frame_upload_id: 'upl_1' })).toBeUndefined();
  });

  it('may be of any kind in a field whose kind is not known', async () => {
    const { filesOf } = start();
    const body = { mask_upload_id: mp4() };
    expect(await filesOf(body).upload(body, {})).toEqual({ mask_upload_id: 'upl_1' });
  });
});

describe('files that are only looked at', () => {
  it('are refused as an upload would refuse them, and let go of', async () => {
    await checkFiles({ first_frame_upload_id: png(), reference_video_upload_ids: [mp4()] });
    await expect(checkFiles({ first_frame_upload_id: mp4() })).rejects.toMatchObject({
      message: 'first_frame_upload_id: an image is required, and this file is video/mp4.',
      code: 'upload_invalid',
      param: 'first_frame_upload_id',
    });
    await expect(checkFiles({ reference_image_upload_ids: [new Blob([])] })).rejects.toThrow(
      /^reference_image_upload_ids\[0\]: a Blob is empty, so there is nothing to upload\.$/,
    );
    const { file, give, cancel } = slowFile();
    const checked = checkFiles({ first_frame_upload_id: file });
    await turn();
    give();
    await checked;
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
  });

  it.each<[string, () => Blob, string]>([
    ['upload_id', mp4, 'an image is required, and this file is video/mp4.'],
    ['upload_ids', mp4, 'an image is required, and this file is video/mp4.'],
    ['reference_upload_ids', mp3, 'an image is required, and this file is audio/mpeg.'],
    ['reference_image_upload_ids', mp4, 'an image is required, and this file is video/mp4.'],
    ['last_frame_upload_id', mp3, 'an image is required, and this file is audio/mpeg.'],
    ['source_video_upload_id', png, 'a video is required, and this file is image/png.'],
    ['reference_video_upload_ids', mp3, 'a video is required, and this file is audio/mpeg.'],
    ['reference_audio_upload_ids', png, 'an audio file is required, and this file is image/png.'],
    [
      'first_frame_upload_id',
      () => new Blob(['text']),
      'The first bytes do not tell the type of the file. Pass mimeType, for example "video/mp4".' +
        ' Upload it with uploads.upload(file, { mimeType }), and pass its upload_id here.',
    ],
  ])('must be of the kind of their field: %s', async (field, file, message) => {
    expect(await rejection(checkFiles({ [field]: file() }))).toMatchObject({
      message: `${field}: ${message}`,
      code: 'upload_invalid',
      param: field,
    });
  });

  it('must be wide enough for a character where they are for one', async () => {
    await checkFiles({ upload_id: png(299) });
    await checkFiles({ upload_id: png(300) }, 'character');
    await expect(checkFiles({ upload_id: png(299) }, 'character')).rejects.toThrow(
      'upload_id: The image is 299 px wide. A character needs at least 300 px.',
    );
  });
});

describe('a file that stands in two places', () => {
  it('is read and counted once, also where it can be read only once', async () => {
    const { filesOf, steps } = start();
    const file = new Response(png(300, 64), { headers: { 'content-length': '64' } });
    steps.put.mockImplementation(async (request) => {
      await new Response(await request.body(() => {})).bytes();
      return new Response();
    });
    const told: unknown[] = [];
    const body = { first_frame_upload_id: file, last_frame_upload_id: file };
    const sent = await filesOf(body).upload(body, { onUploadProgress: (progress) => told.push(progress) });
    expect(sent).toEqual({ first_frame_upload_id: 'upl_1', last_frame_upload_id: 'upl_1' });
    expect(told).toEqual([
      { sentBytes: 0, totalBytes: 64 },
      { sentBytes: 64, totalBytes: 64 },
    ]);
  });
});

describe('the uploads of a call that came to nothing', () => {
  it('are deleted with the time limit and headers of the call, once', async () => {
    const { filesOf, steps } = start();
    const body = { first_frame_upload_id: png(), last_frame_upload_id: png() };
    const files = filesOf(body);
    const headers = { 'x-tenant': 'ann' };
    const call = { timeoutMs: 700, maxRetries: 5, headers, signal: new AbortController().signal };
    await files.upload(body, call);
    expect(files.ids()).toEqual(['upl_1', 'upl_2']);
    await files.remove();
    await files.remove();
    const options = { timeoutMs: 700, headers, maxRetries: 1 };
    expect(steps.delete.mock.calls).toEqual([
      ['upl_1', options],
      ['upl_2', options],
    ]);
    expect(files.ids()).toEqual([]);
    expect(steps.create.mock.calls[0]?.[1]).toEqual({
      ...{ timeoutMs: 700, maxRetries: 5, headers, idempotencyKey: undefined },
      signal: expect.any(AbortSignal),
    });
  });

  it('stay where they were kept, or another call keeps them', async () => {
    const { filesOf, deleted } = start();
    const body = { first_frame_upload_id: png() };
    const [files, others] = [filesOf(body), filesOf(body)];
    await files.upload(body, {});
    files.keep();
    expect(files.ids()).toEqual([]);
    await files.remove();
    await others.upload(body, {});
    await others.remove();
    expect(deleted()).toEqual([]);
  });
});

describe('when the service does not know an upload', () => {
  it('that this call has made, there is nothing to make again, and it is deleted like any other', async () => {
    const { filesOf, deleted } = start();
    const body = { first_frame_upload_id: png() };
    const files = filesOf(body);
    await files.upload(body, {});
    expect(await files.forget()).toBe(false);
    await files.remove();
    expect(deleted()).toEqual(['upl_1']);
  });

  it('of an earlier call, it alone is made again, and all stay', async () => {
    const { filesOf, steps, deleted } = start();
    const [known, fresh] = [png(), png()];
    const stream = new Response(png(), { headers: { 'content-type': 'image/png', 'content-length': '5000' } });
    const earlier = { first_frame_upload_id: known, last_frame_upload_id: stream };
    const first = filesOf(earlier);
    await first.upload(earlier, {});
    first.keep();
    const body = { reference_image_upload_ids: [known, stream, fresh] };
    const files = filesOf(body);
    await files.upload(body, {});
    expect(steps.create).toHaveBeenCalledTimes(3);
    expect(await files.forget()).toBe(true);
    steps.put.mockClear();
    await filesOf({ upload_id: fresh }).upload({}, {});
    expect(steps.put).not.toHaveBeenCalled();
    await filesOf({ upload_id: known }).upload({}, {});
    expect(steps.put).toHaveBeenCalledOnce();
    await files.remove();
    expect(deleted()).toEqual([]);
  });

  it('that was deleted while the other files were looked at, it is made again under the same limits', async () => {
    const { filesOf, memory, steps } = start();
    const big = { size: 60_000_000, type: 'image/png', stream: () => new Blob([]).stream() };
    const first = { first_frame_upload_id: big };
    await filesOf(first).upload(first, { preflight: false });
    const { file, give } = slowFile();
    const body = { first_frame_upload_id: big, last_frame_upload_id: file };
    const sent = filesOf(body).upload(body, { preflight: false });
    await turn();
    memory.deleted('upl_1');
    give();
    const ids = Object.values((await sent) as object).toSorted();
    expect(ids).toEqual(['upl_2', 'upl_3']);
    expect(steps.create.mock.calls.map(([{ file_size }]) => file_size).toSorted((a, b) => a - b)).toEqual([
      5_000, 60_000_000, 60_000_000,
    ]);
  });
});

describe('a file that is refused', () => {
  it('beside one that was uploaded before is the error of the call', async () => {
    const { filesOf, steps } = start();
    const known = png();
    await filesOf({ upload_id: known }).upload({}, {});
    const body = { first_frame_upload_id: known, last_frame_upload_id: mp4() };
    await expect(filesOf(body).upload(body, {})).rejects.toMatchObject({
      name: 'PreflightError',
      message: 'last_frame_upload_id: an image is required, and this file is video/mp4.',
    });
    expect(steps.create).toHaveBeenCalledOnce();
  });

  it('by the service is an error after the deletion of the others, with its place', async () => {
    const { filesOf, steps, deleted } = start();
    let removed = () => {};
    steps.delete.mockImplementation(
      () =>
        new Promise((resolve) => {
          removed = () => resolve({});
        }),
    );
    steps.create.mockImplementationOnce(async (params) => ({
      ...{ ...params, upload_id: 'upl_a', direct_upload_url: 'https://storage.test/put', headers: {} },
    }));
    steps.create.mockImplementationOnce(async () => {
      await turn();
      throw new Error('no more room');
    });
    const body = { reference_image_upload_ids: [png(), png()] };
    const failed = vi.fn();
    const sent = filesOf(body).upload(body, {}).catch(failed);
    await vi.waitFor(() => expect(deleted()).toEqual(['upl_a']));
    await turn();
    expect(failed).not.toHaveBeenCalled();
    removed();
    await sent;
    expect(failed.mock.calls[0]?.[0]).toMatchObject({
      message: expect.stringMatching(
        /^reference_image_upload_ids\[1\]: The upload failed at step "create": no more room\. /,
      ),
    });
  });
});

describe('an abort', () => {
  it('while a file is looked at rejects at once, and the file is let go of when it comes', async () => {
    const { filesOf, steps } = start();
    const { controller, signal, listeners } = countedSignal();
    const { file, give, cancel } = slowFile();
    const body = { first_frame_upload_id: file };
    const sent = filesOf(body).upload(body, { signal });
    await turn();
    controller.abort('enough');
    expect(await rejection(sent)).toBe('enough');
    expect(cancel).not.toHaveBeenCalled();
    give();
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
    expect([steps.create.mock.calls, listeners()]).toEqual([[], 0]);
  });

  it('while bytes leave ends every upload with its reason, untouched, and waits for no deletion', async () => {
    const { filesOf, steps, deleted } = start();
    const { controller, signal, listeners } = countedSignal();
    const ended: unknown[] = [];
    const held = (options: { signal?: AbortSignal | undefined }) =>
      new Promise<never>((_, reject) =>
        options.signal?.addEventListener('abort', () => {
          ended.push(options.signal?.reason);
          reject(options.signal?.reason);
        }),
      );
    steps.put.mockImplementation((_, options) =>
      steps.put.mock.calls.length === 1 ? Promise.resolve(new Response()) : held(options),
    );
    steps.delete.mockImplementation(() => new Promise(() => {}));
    const body = { reference_image_upload_ids: [png(), png(), png()] };
    const sent = filesOf(body).upload(body, { signal });
    await vi.waitFor(() => expect(steps.put).toHaveBeenCalledTimes(3));
    await turn();
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await rejection(sent)).toBe(reason);
    expect([reason.message, ended]).toEqual(['enough', [reason, reason]]);
    expect(deleted().toSorted()).toEqual(['upl_1', 'upl_2', 'upl_3']);
    expect(listeners()).toBe(0);
  });

  it('leaves no listener behind where it does not come', async () => {
    const { filesOf } = start();
    const { signal, listeners } = countedSignal();
    const body = { first_frame_upload_id: png() };
    await filesOf(body).upload(body, { signal });
    expect(listeners()).toBe(0);
  });
});
