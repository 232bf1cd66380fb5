import { describe, expect, it, vi } from 'vitest';
import { PreflightError } from '../../src/index.js';
import limits from '../fixtures/limits.json' with { type: 'json' };
import models from '../fixtures/models.json' with { type: 'json' };
import { created, json, rejection, stubbed } from '../transport/support.js';

type Params = Record<string, unknown>;
type Call = 'images' | 'videos' | 'videoEdits' | 'characters';

/** Calls as JavaScript does, without the compiler's help. */
function attempt(call: Call, params: unknown, options: { preflight?: boolean; logger?: unknown } = {}) {
  const logger = { debug() {}, info() {}, warn: vi.fn<(...words: unknown[]) => void>(), error() {} };
  const { client, seen } = stubbed(() => json(created()), { logger, logLevel: 'warn' });
  const resource: { create(params: never, options: object): Promise<unknown> } = client[call];
  const { preflight } = options;
  return {
    sent: resource.create(params as never, preflight === undefined ? {} : { preflight }),
    seen,
    warned: () => logger.warn.mock.calls.flat().join('\n'),
  };
}

async function refusal(call: Call, params: unknown): Promise<PreflightError> {
  const { sent, seen } = attempt(call, params);
  const error = await rejection(sent);
  expect(seen).toEqual([]);
  if (!(error instanceof PreflightError)) throw error;
  return error;
}

async function expectSent(call: Call, params: unknown): Promise<void> {
  const { sent, seen } = attempt(call, params);
  await sent;
  expect(seen).toHaveLength(1);
}

const REFUSED: readonly [name: string, call: Call, params: unknown, code: string, param: string][] = [
  ['nothing at all', 'videos', undefined, 'prompt_required', 'prompt'],
  ['a video without a prompt', 'videos', {}, 'prompt_required', 'prompt'],
  ['a blank prompt', 'videos', { prompt: ' \n' }, 'prompt_required', 'prompt'],
  ['a prompt that is no text', 'images', { prompt: 5 }, 'prompt_required', 'prompt'],
  ['an image without a prompt', 'images', { ratio: '1:1' }, 'prompt_required', 'prompt'],
  [
    'content without a text',
    'videos',
    { content: [{ type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' }] },
    'prompt_required',
    'prompt',
  ],
  ['content with a blank text', 'videos', { content: [{ type: 'text', text: ' ' }] }, 'prompt_required', 'prompt'],
  ['a duration the default model lacks', 'videos', { prompt: 'x', duration: 12 }, 'duration_not_supported', 'duration'],
  ['a duration as text', 'videos', { prompt: 'x', duration: '5' }, 'duration_not_supported', 'duration'],
  ['a duration of zero', 'videos', { prompt: 'x', duration: 0 }, 'duration_not_supported', 'duration'],
  [
    'a resolution of another kind',
    'videos',
    { prompt: 'x', resolution: 'high' },
    'resolution_not_supported',
    'resolution',
  ],
  ['an image alias on a video', 'videos', { model: 'svc-image-pro', prompt: 'x' }, 'model_not_found', 'model'],
  ['a video alias on an image', 'images', { model: 'svc-video-pro', prompt: 'x' }, 'model_not_found', 'model'],
  [
    'a first frame beside reference images',
    'videos',
    { prompt: 'x', first_frame_url: 'https://a.test/a.png', reference_image_urls: ['https://a.test/b.png'] },
    'reference_combination_not_supported',
    'reference_image_urls',
  ],
  [
    'a last frame by id beside images by an alias',
    'videos',
    { prompt: 'x', last_frame_upload_id: 'u', referenceImageUrls: ['https://a.test/b.png'] },
    'reference_combination_not_supported',
    'referenceImageUrls',
  ],
  [
    'a frame among content beside images by id',
    'videos',
    {
      content: [
        { type: 'text', text: 'x' },
        { type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' },
      ],
      reference_image_upload_ids: ['u'],
    },
    'reference_combination_not_supported',
    'reference_image_upload_ids',
  ],
  [
    'an edit without a model',
    'videoEdits',
    { prompt: 'x', video: 'https://a.test/a.mp4' },
    'video_edit_model_not_supported',
    'model',
  ],
  [
    'an edit with an unknown alias',
    'videoEdits',
    { model: 'svc-video-next', prompt: 'x', video: 'https://a.test/a.mp4' },
    'video_edit_model_not_supported',
    'model',
  ],
  [
    'an edit without a source',
    'videoEdits',
    { model: 'svc-video-pro', prompt: 'x' },
    'video_edit_source_required',
    'source_video_upload_id',
  ],
  [
    'an edit with an empty source',
    'videoEdits',
    { model: 'svc-video-pro', prompt: 'x', video: '' },
    'video_edit_source_required',
    'source_video_upload_id',
  ],
  [
    'an edit without a prompt',
    'videoEdits',
    { model: 'svc-video-pro', video: 'https://a.test/a.mp4' },
    'prompt_required',
    'prompt',
  ],
  [
    'a duration the editing model lacks',
    'videoEdits',
    { model: 'svc-video-fast', prompt: 'x', video: 'https://a.test/a.mp4', duration: 12 },
    'duration_not_supported',
    'duration',
  ],
  [
    'an edit by intent without a source',
    'videos',
    { intent: 'video_edit', prompt: 'x' },
    'video_edit_source_required',
    'source_video_upload_id',
  ],
  [
    'an edit by intent with a model outside the three',
    'videos',
    { intent: 'video_edit', model: 'svc-video-gen-2-5', prompt: 'x', video: 'https://a.test/a.mp4' },
    'video_edit_model_not_supported',
    'model',
  ],
  [
    'an edit by intent with a duration the default model lacks',
    'videos',
    { intent: 'video_edit', prompt: 'x', video: 'https://a.test/a.mp4', duration: 15 },
    'duration_not_supported',
    'duration',
  ],
  ['a character image without a prompt', 'characters', { name: 'Ann' }, 'prompt_required', 'prompt'],
  ['a character image without a name', 'characters', { prompt: 'x' }, 'http_400', 'name'],
];

describe('before any call, the service’s own code is given for', () => {
  it.each(REFUSED)('%s', async (_name, call, params, code, param) => {
    const error = await refusal(call, params);
    expect({ code: error.code, param: error.param }).toEqual({ code, param });
    expect(error.message).toMatch(new RegExp(`^${param}: `));
  });

  it('a registration without its upload or name', async () => {
    for (const [params, param] of [
      [{ name: 'Ann' }, 'upload_id'],
      [{ upload_id: 'u' }, 'name'],
    ] as const) {
      const { client, seen } = stubbed(() => json({}));
      expect(await rejection(client.characters.register(params as never))).toMatchObject({
        name: 'PreflightError',
        code: 'http_400',
        param,
      });
      expect(seen).toEqual([]);
    }
  });
});

describe('the message', () => {
  it('names the value given and the values allowed', async () => {
    expect((await refusal('videos', { model: 'svc-video-fast', prompt: 'x', duration: 7 })).message).toBe(
      'duration: 7 is not offered by svc-video-fast; it offers 4, 5, 6, 8, 10.',
    );
    expect((await refusal('images', { model: 'svc-image-fast', prompt: 'x', ratio: '21:9' })).message).toBe(
      'ratio: "21:9" is not offered by svc-image-fast; it offers "1:1", "4:5", "3:4", "9:16", "16:9".',
    );
    expect((await refusal('videos', { prompt: 'x', duration: '5' })).message).toContain(
      '"5" is not offered by svc-video-fast',
    );
    expect(
      (await refusal('videoEdits', { model: 'svc-video-gen-2', prompt: 'x', video: 'https://a.test/a.mp4' })).message,
    ).toBe(`model: "svc-video-gen-2" takes no edits; use svc-video-fast, svc-video-mini, svc-video-pro.`);
    expect((await refusal('videos', { model: 'svc-image-fast', prompt: 'x' })).message).toContain('svc-video-gen-2-5');
  });
});

describe('the model table, value by value', () => {
  const rows = models.flatMap((model) => [
    ...(model.durations ?? []).map((value) => ({ model, param: 'duration', value })),
    ...(model.aspectRatios ?? []).map((value) => ({ model, param: 'ratio', value })),
    ...model.resolutions.map((value) => ({ model, param: 'resolution', value })),
  ]);
  const call = (model: { kind: string }): Call => (model.kind === 'image' ? 'images' : 'videos');

  it('sends what a model offers', async () => {
    for (const { model, param, value } of rows) {
      await expectSent(call(model), { model: model.alias, prompt: 'x', [param]: value });
    }
  });

  it('refuses what only another model offers', async () => {
    const codes: Params = {
      duration: 'duration_not_supported',
      ratio: 'aspect_ratio_not_supported',
      resolution: 'resolution_not_supported',
    };
    let refused = 0;
    for (const model of models) {
      for (const { param, value } of rows) {
        const own = rows.some((row) => row.model === model && row.param === param && row.value === value);
        // The service documents no ratios for a video.
        if (own || (param === 'ratio' && model.kind === 'video') || (param === 'duration' && model.kind === 'image'))
          continue;
        expect(await refusal(call(model), { model: model.alias, prompt: 'x', [param]: value })).toMatchObject({
          code: codes[param],
          param,
        });
        refused += 1;
      }
    }
    expect(refused).toBeGreaterThan(100);
  });

  it('takes an edit on the three models and on no other', async () => {
    for (const { alias } of models) {
      const params = { model: alias, prompt: 'x', source_video_upload_id: 'u' };
      if (limits.editModels.includes(alias)) await expectSent('videoEdits', params);
      else expect((await refusal('videoEdits', params)).code).toBe('video_edit_model_not_supported');
    }
  });
});

const SENT: readonly [name: string, call: Call, params: Params][] = [
  [
    'an unknown alias with any value',
    'videos',
    { model: 'svc-video-next', prompt: 'x', duration: 77, resolution: '8k' },
  ],
  ['an alias that is a name of Object', 'videos', { model: 'constructor', prompt: 'x', duration: 77 }],
  ['an image without a model in any ratio', 'images', { prompt: 'x', ratio: '2:1', resolution: 'huge' }],
  ['any ratio of a video', 'videos', { prompt: 'x', aspect_ratio: '2:1' }],
  ['a video whose ratio has the other name', 'videos', { prompt: 'x', ratio: '2:1' }],
  ['content with a text item in place of a prompt', 'videos', { content: [{ type: 'text', text: 'x' }] }],
  [
    'first and last frame with clips and audio',
    'videos',
    {
      prompt: 'x',
      first_frame_upload_id: 'a',
      last_frame_upload_id: 'b',
      reference_video_upload_ids: ['c'],
      reference_audio_upload_ids: ['d'],
    },
  ],
  [
    'a frame beside an empty list of images',
    'videos',
    { prompt: 'x', first_frame_upload_id: 'a', reference_image_urls: [] },
  ],
  [
    'null where nothing is meant',
    'videos',
    { prompt: 'x', duration: null, first_frame_url: null, reference_images: ['https://a.test/a.png'] },
  ],
  [
    'an edit by intent on the default model',
    'videos',
    { intent: 'video_edit', prompt: 'x', source_video_url: 'https://a.test/a.mp4' },
  ],
  [
    'an edit by intent whose source may be among content',
    'videos',
    {
      intent: 'video_edit',
      content: [
        { type: 'text', text: 'x' },
        { type: 'video_url', video_url: { url: 'https://a.test/a.mp4' }, role: 'reference_video' },
      ],
    },
  ],
  [
    'an edit from two sources',
    'videoEdits',
    { model: 'svc-video-pro', prompt: 'x', video: 'https://a.test/a.mp4', source_video_upload_id: 'u' },
  ],
];

describe('left to the service is', () => {
  it.each(SENT)('%s', (_name, call, params) => expectSent(call, params));

  it('everything with `preflight: false`, of the call or of the client', async () => {
    const { sent, seen } = attempt('videos', { duration: 7 }, { preflight: false });
    await sent;
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual({ duration: 7 });

    const off = stubbed(() => json(created()), { preflight: false });
    await off.client.videoEdits.create({
      model: 'svc-video-gen-2' as 'svc-video-pro',
      prompt: 'x',
      video: 'https://a.test/a.mp4',
    });
    expect(off.seen).toHaveLength(1);
    await expect(off.client.videos.create({ prompt: '' }, { preflight: true })).rejects.toThrow(PreflightError);
  });
});

describe('guidance goes to the logger and the call goes out', () => {
  it.each([
    [
      'camera_fixed beside a frame',
      'videos',
      { prompt: 'x', camera_fixed: true, first_frame_upload_id: 'u' },
      'camera_fixed',
    ],
    [
      'camera_fixed beside reference images',
      'videos',
      { prompt: 'x', camera_fixed: true, reference_images: ['https://a.test/a.png'] },
      'camera_fixed',
    ],
    [
      'a frame over http',
      'videos',
      { prompt: 'x', first_frame_url: 'http://a.test/a.png?token=s3cret' },
      'first_frame_url',
    ],
    [
      'one of several images over http',
      'images',
      { prompt: 'x', reference_images: ['https://a.test/a.png', 'http://a.test/b.png?token=s3cret'] },
      'reference_images',
    ],
    [
      'a reference item over http',
      'images',
      { prompt: 'x', references: [{ type: 'image_url', url: 'http://a.test/a.png?token=s3cret' }] },
      'references',
    ],
    [
      'a clip in content over http',
      'videos',
      {
        content: [
          { type: 'text', text: 'x' },
          { type: 'video_url', video_url: { url: 'http://a.test/a.mp4' }, role: 'reference_video' },
        ],
      },
      'content',
    ],
    ['a webhook over http', 'videos', { prompt: 'x', webhook_url: 'http://a.test/hook' }, 'webhook_url'],
    [
      'an edit source over http',
      'videoEdits',
      { model: 'svc-video-pro', prompt: 'x', video: 'http://a.test/a.mp4' },
      'video',
    ],
  ] as const)('%s', async (_name, call, params, param) => {
    const { sent, seen, warned } = attempt(call, params);
    await sent;
    expect(seen).toHaveLength(1);
    expect(warned()).toContain(`${param}: `);
    expect(warned()).not.toContain('s3cret');
  });

  it('says nothing where there is nothing to say', async () => {
    const { sent, warned } = attempt('videos', {
      prompt: 'http://not.a.url',
      camera_fixed: true,
      content: [{ type: 'text', text: 'x' }],
      webhook_url: 'https://a.test/hook',
    });
    await sent;
    expect(warned()).toBe('');
  });
});
