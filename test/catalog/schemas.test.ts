import { MODELS, type ModelCapabilities } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { characterParams, imageParams, pickParams, videoEditParams, videoParams } from 'gen-client/schemas';
import { describe, expect, expectTypeOf, it, test } from 'vitest';
import * as z from 'zod';
import { DOCUMENTED_FIELDS } from '../../src/rules/fields.js';

const SCHEMAS = { images: imageParams, videos: videoParams, videoEdits: videoEditParams, characters: characterParams };

/** Returns a schema's issues with params. Empty if they are valid. */
function issuesOf(schema: z.ZodType, params: unknown): string[] {
  const { error } = schema.safeParse(params);
  return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')} | ${message}`);
}

test.each(Object.entries(SCHEMAS))('%s: the fields are the documented ones', (call, schema) => {
  const general = ['intent', 'mode'];
  const documented: readonly string[] = DOCUMENTED_FIELDS[call as keyof typeof SCHEMAS];
  expect(Object.keys(schema.shape).sort()).toEqual(documented.filter((name) => !general.includes(name)).sort());
});

describe('params that depend on the model', () => {
  const videos = Object.entries<ModelCapabilities>(MODELS).filter(([, { kind }]) => kind === 'video');
  it.each(videos)('%s accepts only its own durations', (model, row) => {
    const all = [...new Set(videos.flatMap(([, { durations }]) => durations ?? []))];
    const accepted = all.filter((duration) => issuesOf(videoParams, { model, prompt: 'x', duration }).length === 0);
    expect(accepted).toEqual(all.filter((duration) => row.durations?.includes(duration)));
  });

  it("are rejected at the field, with the call's message", () => {
    expect(issuesOf(videoParams, { model: 'svc-video-fast', prompt: 'x', duration: 12 })).toEqual([
      'duration | duration: must be one of 4, 5, 6, 8, 10 for svc-video-fast, not 12.',
    ]);
  });
});

describe('a schema', () => {
  it('rejects a frame with reference images, like the call', () => {
    const params = { prompt: 'x', first_frame_upload_id: 'upl_1', reference_image_upload_ids: ['upl_2'] };
    expect(issuesOf(videoParams, params).join()).toContain('cannot be combined with first_frame_upload_id');
  });

  it('rejects an unknown field, and an edit without a source', () => {
    expect(issuesOf(imageParams, { prompt: 'x', aspect_ratio: '16:9' }).join()).toContain('aspect_ratio');
    expect(issuesOf(videoEditParams, { model: 'svc-video-pro', prompt: 'x' }).join()).toContain(
      'source_video_upload_id',
    );
  });

  it('is a Standard Schema that returns params for the call', async () => {
    const checked = await videoParams['~standard'].validate({ prompt: 'a fox', duration: 5 });
    expect(checked).toEqual({ value: { prompt: 'a fox', duration: 5 } });
    const client = createSandbox().client();
    const job = await client.videos.createAndWait({
      prompt: 'a fox',
      ...videoParams.parse({ prompt: 'a fox', duration: 5 }),
    });
    expect(job.status).toBe('completed');
    expectTypeOf(imageParams.parse({ prompt: 'x' }).prompt).toEqualTypeOf<string>();
    const { images } = client;
    await images.create(imageParams.parse({ prompt: 'a fox', ratio: '16:9' }));
  });
});

describe('pickParams', () => {
  const input = pickParams(videoParams, ['prompt', 'model', 'duration']);

  it("contains only the picked fields, and retains the models' rules", () => {
    expect(Object.keys(input.shape)).toEqual(['prompt', 'model', 'duration']);
    expect(issuesOf(input, { prompt: 'x', model: 'svc-video-fast', duration: 5 })).toEqual([]);
    expect(issuesOf(input, { prompt: 'x', model: 'svc-video-fast', duration: 30 }).join()).toContain('duration');
    expect(issuesOf(input, { prompt: 'x', duration: 30 }).join()).toContain('for svc-video-fast, not 30');
    expect(issuesOf(input, { prompt: 'x', seed: 1 }).join()).toContain('seed');
    expectTypeOf(input.parse({ prompt: 'x' }).prompt).toEqualTypeOf<string>();
    expectTypeOf(input.parse({ prompt: 'x' }).duration).toEqualTypeOf<number | undefined>();
  });

  it('accepts an unknown alias with any duration', () => {
    expect(issuesOf(input, { prompt: 'x', model: 'svc-video-next', duration: 30 })).toEqual([]);
    expect(issuesOf(imageParams, { prompt: 'x', model: 'svc-image-next', ratio: '5:1' })).toEqual([]);
  });

  it("rejects an unknown name, and another package's schema", () => {
    expect(() => pickParams(videoParams, ['promt' as 'prompt'])).toThrow('unknown field "promt". Did you mean');
    expect(() => pickParams(z.strictObject({ a: z.string() }), ['a'])).toThrow('a schema of gen-client/schemas');
  });
});
