// The exported schemas follow the published rules of large model APIs for tool schemas.
import { characterParams, imageParams, pickParams, videoEditParams, videoParams } from 'gen-client/schemas';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { RULES } from './model-api-rules.js';

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  imageParams,
  videoParams,
  videoEditParams,
  characterParams,
  'pickParams(videoParams, …)': pickParams(videoParams, ['prompt', 'model', 'duration', 'aspect_ratio']),
  'pickParams with content': pickParams(videoParams, ['prompt', 'content']),
  'pickParams(imageParams, …)': pickParams(imageParams, ['prompt', 'ratio', 'resolution']),
};

describe.each(Object.entries(SCHEMAS))('%s', (_name, schema) => {
  test.each(RULES)('%s', (_source, breaks) => {
    expect(breaks(z.toJSONSchema(schema, { io: 'input' }))).toBe(false);
  });
});

describe('prompt', () => {
  const requiredOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' }).required ?? [];
  test.each([
    ['is required if nothing can replace it', SCHEMAS['pickParams(videoParams, …)'], ['prompt']],
    ['is required for an image', imageParams, ['prompt']],
    ['is optional with content', videoParams, []],
  ])('%s', (_reason, schema, expected) => {
    expect(requiredOf(schema as z.ZodType)).toEqual(expected);
  });

  test('or content is required for a video at run time', () => {
    expect(videoParams.safeParse({}).error?.issues[0]).toMatchObject({ path: ['prompt'] });
  });
});

describe('zod methods used by form libraries and tools', () => {
  const message = /Use pickParams\(params/;
  test('extend validates the added field with its own schema', () => {
    const extended = videoParams.extend({ orderId: z.string() });
    expect(extended.parse({ prompt: 'x', duration: 5, orderId: 'o' })).toEqual({
      prompt: 'x',
      duration: 5,
      orderId: 'o',
    });
    expect(extended.safeParse({ prompt: 'x', duration: 7, orderId: 'o' }).success).toBe(false);
    expect(extended.safeParse({ prompt: 'x', duration: 5 }).error?.issues[0]?.path).toEqual(['orderId']);
  });
  test.each([
    ['pick', () => videoParams.pick({ prompt: true })],
    ['omit', () => videoParams.omit({ webhook_url: true })],
    ['partial', () => videoParams.partial()],
  ])('%s suggests pickParams', (_method, call) => {
    expect(call).toThrow(message);
  });
  test('describe and nesting retain the rules', () => {
    const nested = z.object({ video: videoParams.describe('A video.') });
    expect(nested.safeParse({ video: { prompt: 'x', duration: 7 } }).error?.issues[0]?.path).toEqual([
      'video',
      'duration',
    ]);
  });
});

test("a description lists each model's values, because the schema itself can't", () => {
  const { properties } = z.toJSONSchema(videoParams, { io: 'input' });
  expect(JSON.stringify(properties?.duration)).toContain('svc-video-fast: 4, 5, 6, 8, 10');
});
