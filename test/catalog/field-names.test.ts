import { readFileSync } from 'node:fs';
import { generateImage } from 'ai';
import { createGen } from 'gen-client/ai-sdk';
import { createGenQueue } from 'gen-client/bullmq';
import { createActivities, type DurableEngine, generate } from 'gen-client/durable';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it, test } from 'vitest';
import { CREATE_AND_WAIT_CHECKS } from '../../src/client/create-options.js';
import { PreflightError } from '../../src/errors/index.js';
import { checkFieldNames, DOCUMENTED_FIELDS, type FieldsCall } from '../../src/rules/fields.js';
import documented from '../fixtures/fields.json' with { type: 'json' };
import { KEY, openApp } from '../proxy/support.js';
import { rejection } from '../transport/support.js';

const ROWS: Readonly<Record<FieldsCall, readonly { readonly name: string }[]>> = {
  images: documented['images.create'],
  videos: documented['videos.create'],
  videoEdits: documented['videoEdits.create'],
  characters: documented['characters.create'],
  registration: documented['characters.register'],
};
/** Fields that every create accepts in addition to its own table: webhooks, the idempotency key, and a character's mode. */
const GENERAL = ['webhook_url', 'callback_url', 'idempotency_key', 'mode', 'content'];

test.each(Object.entries(ROWS))('the fields of %s are the documented ones', (call, rows) => {
  const fields: readonly string[] = DOCUMENTED_FIELDS[call as FieldsCall];
  const names = rows.map(({ name }) => name);
  expect(names.filter((name) => !fields.includes(name))).toEqual([]);
  expect(fields.filter((name) => !names.includes(name) && !GENERAL.includes(name))).toEqual([]);
  expect(new Set(fields).size).toBe(fields.length);
});

/** Names from openai, fal, replicate, runway, luma, and stripe, and typos, by the expected message. */
const WRONG_NAMES: Readonly<Record<Exclude<FieldsCall, 'registration'>, Readonly<Record<string, string>>>> = {
  images: {
    'Did you mean "ratio"?': 'size, image_size, aspect_ratio, aspectRatio, Ratio, aspect ratio, width, height, aspect',
    'Did you mean "prompt"?': 'text, prompt_text, promptText, Prompt, PROMPT, prompt ',
    'Did you mean "model"?': 'model_id, modelId, model_name, Model, version',
    'Did you mean "resolution"?': 'quality, Resolution',
    'Did you mean "safety_identifier"?': 'user, userId, safetyIdentifier',
    'Did you mean "webhook_url"?': 'webhook, webhookUrl, Webhook, callback, notifyUrl',
    'Did you mean "callback_url"?': 'callbackUrl',
    'Did you mean "idempotency_key"?': 'idempotency-key',
    'Did you mean "response_format"?': 'responseFormat',
    'Did you mean "reference_upload_ids"?':
      'image, images, input_image, first_frame_upload_id, reference_image_upload_ids',
    'Did you mean "reference_image_urls"?': 'image_url, imageUrl, first_frame_url',
    'Did you mean "character_ids"?': 'characterIds',
    'Create one job for each output': 'n, num_images, num_outputs, numImages, number_of_images',
    'without input': 'input',
    'It is a parameter of videos.create': 'duration, seed, generate_audio, content',
    'is not documented for': 'negative_prompt, guidance_scale, steps, style, background, output_format, metadata',
    'is an option':
      'idempotencyKey, signal, budget, label, timeoutMs, onUpdate, onCreated, headers, extraBody, preflight',
  },
  videos: {
    'Did you mean "duration"?': 'seconds, duration_seconds, Duration, DURATION, durationSeconds, length',
    'Did you mean "aspect_ratio"?': 'aspect ratio, aspectRatio, Aspect-Ratio, size, image_size, width, height, aspect',
    'Did you mean "model"?': 'Model, model_id, modelId',
    'Did you mean "prompt"?': 'text, promptText, promt',
    'Did you mean "ratio"?': 'ratioo',
    'Did you mean "first_frame_upload_id"?':
      'promptImage, image, images, input_image, input_reference, start_image, first_frame, first_frame_image, keyframes',
    'Did you mean "last_frame_upload_id"?': 'end_image, last_frame, tail_image, lastFrameUploadId',
    'Did you mean "first_frame_url"?': 'firstFrameUrl, image_url, start_image_url',
    'Did you mean "last_frame_url"?': 'end_image_url, tail_image_url, lastFrameUrl',
    'Did you mean "reference_video_urls"?': 'video_url, video',
    'Did you mean "reference_video_upload_ids"?': 'source_video_upload_id',
    'Did you mean "reference_image_upload_ids"?': 'reference_upload_ids',
    'Did you mean "generate_audio"?': 'generateAudio, audio, with_audio, enable_audio',
    'Did you mean "camera_fixed"?': 'cameraFixed',
    'Did you mean "character_ids"?': 'characterIds',
    'Did you mean "safety_identifier"?': 'user',
    'Did you mean "seed"?': 'Seed',
    'Did you mean "webhook_url"?': 'webhook, webhookUrl, callback, notify_url',
    'Create one job for each output': 'n, number_of_videos, num_outputs',
    'without input': 'input',
    'It is a parameter of images.create': 'references, response_format',
    'is not documented for':
      'fps, num_frames, camera, motion, loop, webhook_events_filter, wait, sync_mode, negativePrompt, cfg_scale, customer, expand',
    'is an option':
      'idempotencyKey, signal, pollIntervalMs, throwOnFailure, cleanup, recover, maxRetries, onUploadProgress',
  },
  videoEdits: {
    'Did you mean "ratio"?': 'aspect_ratio, size',
    'Did you mean "duration"?': 'seconds',
    'Did you mean "source_video_url"?': 'video_url, sourceVideoUrl, source_video',
    'Did you mean "edit_mode"?': 'editMode',
    'Did you mean "reference_image_upload_ids"?': 'reference_upload_ids, image',
    'Did you mean "reference_images"?': 'reference_image_urls, image_url',
    'It is a parameter of videos.create': 'seed, first_frame_upload_id, first_frame_url, last_frame_upload_id',
    'It is a parameter of characters.create': 'mode',
    'is not documented for': 'strength, user',
  },
  characters: {
    'Did you mean "aspect_ratio"?': 'ratio, size',
    'Did you mean "reference_upload_ids"?': 'image, first_frame_upload_id',
    'Did you mean "name"?': 'Name',
    'It is a parameter of': 'upload_id, model, duration',
    'is not documented for': 'title, model_id, user',
    'is an option': 'label',
  },
};

describe('an undocumented field', () => {
  const rows = Object.entries(WRONG_NAMES).flatMap(([call, messages]) =>
    Object.entries(messages).flatMap(([message, names]) =>
      names.split(', ').map((name) => ({ call: call as keyof typeof WRONG_NAMES, name, message })),
    ),
  );

  it.each(rows)('of $call is rejected before anything is sent: $name ($message)', async ({ call, name, message }) => {
    const sandbox = createSandbox();
    const valid = { prompt: 'a fox', ...(call === 'characters' && { name: 'Rex' }) };
    const { create }: { create(params: object): Promise<unknown> } = sandbox.client()[call];
    const error = await rejection(create({ ...valid, [name]: 'x' }));
    expect(error).toMatchObject({ name: 'PreflightError', status: 400, param: name, recovery: 'change_request' });
    expect(String(error)).toContain(message);
    expect(sandbox.requests).toEqual([]);
  });

  it('is rejected if it is the camelCase form of a documented field, which the error suggests', () => {
    for (const [call, documented] of Object.entries(DOCUMENTED_FIELDS)) {
      const fields: readonly string[] = documented;
      for (const field of fields) {
        const camel = field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
        if (fields.includes(camel) || camel === 'idempotencyKey') continue;
        expect(() => checkFieldNames(call as FieldsCall, { [camel]: 'x' })).toThrow(`Did you mean "${field}"?`);
      }
    }
  });

  it('is rejected if it has the name of a create option', () => {
    for (const name of Object.keys(CREATE_AND_WAIT_CHECKS)) {
      expect(() => checkFieldNames('videos', { [name]: 'x' }), name).toThrow('is an option');
    }
  });

  it('is rejected if the guide for other clients lists it', () => {
    const leftColumns = readFileSync('docs/coming-from.md', 'utf8').matchAll(/^\| ([^|]+) \|/gm);
    const text = [...leftColumns].map(([, column]) => column).join(' ');
    const names = 'webhook, webhook_events_filter, webhookUrl, promptImage, promptText, input, wait';
    for (const name of names.split(', ')) {
      expect(text).toContain(name);
      for (const call of ['images', 'videos'] as const) {
        expect(() => checkFieldNames(call, { prompt: 'a fox', [name]: 'x' }), name).toThrow(PreflightError);
      }
    }
  });

  it.each(['toString', 'constructor', '__proto__x'])('is rejected even if every object has the name (%s)', (name) => {
    expect(() => checkFieldNames('videos', { [name]: 1 })).toThrow('is not documented for');
  });

  it('is neither a field of a video edit nor an undefined field', () => {
    const edit = { intent: 'video_edit', source_video_upload_id: 'upl_1', edit_mode: 'restyle', seed: 1, n: undefined };
    expect(() => checkFieldNames('videos', edit)).not.toThrow();
    expect(() => checkFieldNames('videos', { ...edit, intent: undefined })).toThrow('reference_video_upload_ids');
  });

  it('is rejected by createAndWait and characters.register', async () => {
    const sandbox = createSandbox();
    const client = sandbox.client();
    const misspelled: object = { prompt: 'a fox', ratioo: '16:9' };
    await expect(client.images.createAndWait(misspelled as never)).rejects.toMatchObject({ param: 'ratioo' });
    const registration: object = { name: 'Rex', image: 'upl_1' };
    await expect(client.characters.register(registration as never)).rejects.toMatchObject({ param: 'image' });
    expect(sandbox.requests).toEqual([]);
  });
});

describe('a misspelled field', () => {
  const misspelled: object = { prompt: 'a fox', ratioo: '16:9' };

  it('in providerOptions.gen is rejected by the AI SDK provider', async () => {
    const sandbox = createSandbox();
    const gen = createGen({ client: sandbox.client() });
    const requested = generateImage({
      model: gen.image('svc-image-fast'),
      prompt: 'a fox',
      providerOptions: { gen: { ratioo: '16:9' } },
    });
    await expect(requested).rejects.toMatchObject({ name: 'PreflightError', param: 'ratioo' });
    expect(sandbox.requests).toEqual([]);
  });

  it('fails a durable run with engine.fail', async () => {
    const sandbox = createSandbox();
    const activities = createActivities(sandbox.client());
    const failed: unknown[] = [];
    const engine: DurableEngine = {
      call: (_step, activity, input) => activities[activity](input),
      wait: async () => false,
      fail: (error): never => {
        failed.push(error);
        throw new Error(error.message);
      },
    };
    await expect(generate(engine, { call: 'images', params: misspelled as never, key: 'k' })).rejects.toThrow(
      'Unknown parameter "ratioo"',
    );
    expect(failed).toMatchObject([{ name: 'PreflightError' }]);
    expect(sandbox.requests).toEqual([]);
  });

  it('is rejected by the queue before it connects', async () => {
    const queue = createGenQueue({ port: 1, lazyConnect: true, maxRetriesPerRequest: 0 }, { onError: () => {} });
    const created = queue.images.create(misspelled as never);
    await expect(created).rejects.toMatchObject({ name: 'PreflightError', param: 'ratioo' });
    await queue.close();
  });

  it("is rejected by the proxy in its create function's result", async () => {
    const app = openApp({ create: { images: () => misspelled } });
    const response = await app.post('images', { key: KEY, input: { prompt: 'a fox' } });
    expect(response.status).toBe(400);
    const message = expect.stringContaining('Unknown parameter "ratioo"');
    expect(response.body).toMatchObject({ code: 'invalid_params', message });
    expect(app.sandbox.requests).toEqual([]);
  });

  it('is sent by client.request, because the caller writes the request', async () => {
    const sandbox = createSandbox();
    await sandbox.client().request({ method: 'POST', path: '/v1/images', body: misspelled });
    expect(sandbox.requests[0]?.body).toBe(JSON.stringify(misspelled));
  });
});

describe('the `extraBody` option', () => {
  it('sends undocumented fields, with create and with createAndWait', async () => {
    const sandbox = createSandbox();
    const client = sandbox.client();
    await client.images.create({ prompt: 'a fox' }, { extraBody: { negative_prompt: 'dogs' } });
    await client.images.createAndWait({ prompt: 'a fox' }, { extraBody: { steps: 4 } });
    const bodies = sandbox.requests
      .filter(({ method }) => method === 'POST')
      .map(({ body }) => JSON.parse(String(body)));
    expect(bodies).toEqual([
      { prompt: 'a fox', negative_prompt: 'dogs' },
      { prompt: 'a fox', steps: 4 },
    ]);
  });

  it.each([{ ratio: '1:1' }, { prompt: 'a dog' }])("can't replace a documented field: %j", async (extraBody) => {
    const sandbox = createSandbox();
    const created = sandbox.client().images.create({ prompt: 'a fox' }, { extraBody });
    await expect(created).rejects.toThrow(/is a documented field. Pass it with the params, not in extraBody/);
    expect(sandbox.requests).toEqual([]);
  });

  it("can't replace a field of the params even without preflight", async () => {
    const client = createSandbox().client({ preflight: false });
    const created = client.images.create({ prompt: 'a fox' }, { extraBody: { prompt: 'a dog' } });
    await expect(created).rejects.toThrow('extraBody cannot replace prompt');
  });

  it('is rejected by a call without a body', async () => {
    const { jobs } = createSandbox().client();
    await expect(jobs.get('job_1', { extraBody: { a: 1 } })).rejects.toThrow(
      'jobs.get: extraBody has no effect without a body. Remove it.',
    );
  });
});

describe('without preflight', () => {
  it('every field is sent unchanged', async () => {
    const sandbox = createSandbox();
    const params: object = { prompt: 'a fox', ratioo: '16:9' };
    const { warnings } = await sandbox.client().images.create(params as never, { preflight: false });
    expect(warnings).toEqual([]);
    expect(sandbox.requests[0]?.body).toBe(JSON.stringify(params));
  });

  it.each([
    ['done', () => {}, 'done: cannot be sent. Pass options as the second argument.'],
    ['stop', new AbortController().signal, 'stop: cannot be sent. Pass options as the second argument.'],
    ['service', createSandbox().client(), 'service: cannot be sent. Pass options as the second argument.'],
    ['onUpdate', () => {}, '"onUpdate" is an option: pass it as the second argument.'],
    ['signal', new AbortController().signal, '"signal" is an option: pass it as the second argument.'],
  ])("a value that JSON can't represent is rejected: %s", async (name, value, message) => {
    const sandbox = createSandbox();
    const params: object = { prompt: 'a fox', [name]: value };
    const created = sandbox.client({ preflight: false }).images.create(params as never);
    await expect(created).rejects.toThrow(message);
    expect(sandbox.requests).toEqual([]);
  });
});
