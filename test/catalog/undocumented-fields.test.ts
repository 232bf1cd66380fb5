import { readFileSync } from 'node:fs';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it, test } from 'vitest';
import { PreflightError } from '../../src/errors/index.js';
import { DOCUMENTED_FIELDS, type FieldsCall, refuseUndocumented } from '../../src/rules/fields.js';
import documented from '../fixtures/fields.json' with { type: 'json' };

const ROWS: Readonly<Record<FieldsCall, readonly { readonly name: string }[]>> = {
  images: documented['images.create'],
  videos: documented['videos.create'],
  videoEdits: documented['videoEdits.create'],
  characters: documented['characters.create'],
  registration: documented['characters.register'],
};
/** What every create takes beside its own table: the fields for webhooks and the key, and the mode of a character. */
const GENERAL = ['webhook_url', 'callback_url', 'idempotency_key', 'mode', 'content'];

test.each(Object.entries(ROWS))('the fields of %s are those of the document', (call, rows) => {
  const fields: readonly string[] = DOCUMENTED_FIELDS[call as FieldsCall];
  const names = rows.map(({ name }) => name);
  expect(names.filter((name) => !fields.includes(name))).toEqual([]);
  expect(fields.filter((name) => !names.includes(name) && !GENERAL.includes(name))).toEqual([]);
  expect(new Set(fields).size).toBe(fields.length);
});

const LEFT_COLUMNS = readFileSync('docs/coming-from.md', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|')[1] ?? '');
/** Fields of the input of other clients, as the left columns of the guide name them. */
const GUIDE_NAMES = ['webhook', 'webhook_events_filter', 'webhookUrl', 'promptImage', 'promptText', 'input', 'wait'];

/** What people write by habit of openai, fal, replicate, runway, luma and stripe, and by slips of the hand. */
const SLIPS: Readonly<Record<Exclude<FieldsCall, 'registration'>, Readonly<Record<string, string>>>> = {
  images: {
    ...{
      n: 'one create for each output',
      num_images: 'one create',
      num_outputs: 'one create',
      numImages: 'one create',
    },
    ...{ number_of_images: 'one create', size: 'write ratio', image_size: 'write ratio', aspect_ratio: 'write ratio' },
    ...{ aspectRatio: 'write ratio', Ratio: 'write ratio', 'aspect ratio': 'write ratio', quality: 'write resolution' },
    ...{
      user: 'write safety_identifier',
      text: 'write prompt',
      prompt_text: 'write prompt',
      promptText: 'write prompt',
    },
    ...{ Prompt: 'write prompt', PROMPT: 'write prompt', 'prompt ': 'write prompt', input: 'without input' },
    ...{ model_id: 'write model', modelId: 'write model', model_name: 'write model', Model: 'write model' },
    ...{
      version: 'write model',
      webhook: 'write webhook_url',
      webhookUrl: 'write webhook_url',
      Webhook: 'webhook_url',
    },
    ...{
      image: 'write reference_upload_ids',
      image_url: 'write reference_image_urls',
      imageUrl: 'reference_image_urls',
    },
    ...{ first_frame_upload_id: 'reference_upload_ids', reference_image_upload_ids: 'write reference_upload_ids' },
    ...{ duration: 'it is a field of videos.create', seed: 'it is a field of videos.create' },
    ...{
      negative_prompt: 'documents no such field',
      guidance_scale: 'documents no such field',
      steps: 'no such field',
    },
    ...{ style: 'documents no such field', background: 'no such field', output_format: 'no such field' },
    ...{ metadata: 'no such field', prompt_strength: 'no such field', safety_tolerance: 'no such field' },
    ...{ responseFormat: 'write response_format', callbackUrl: 'write callback_url', callback: 'no such field' },
    ...{ idempotencyKey: 'is an option', signal: 'is an option', budget: 'is an option', label: 'is an option' },
    ...{ timeoutMs: 'is an option', onUpdate: 'is an option', onCreated: 'is an option', headers: 'is an option' },
    ...{ 'idempotency-key': 'write idempotency_key', extraBody: 'is an option', preflight: 'is an option' },
  },
  videos: {
    ...{
      seconds: 'write duration',
      duration_seconds: 'write duration',
      Duration: 'write duration',
      DURATION: 'duration',
    },
    ...{
      durationSeconds: 'write duration',
      length: 'no such field',
      duration_s: 'no such field',
      fps: 'no such field',
    },
    ...{
      'aspect ratio': 'write aspect_ratio',
      aspectRatio: 'write aspect_ratio',
      'Aspect-Ratio': 'write aspect_ratio',
    },
    ...{ size: 'write aspect_ratio', image_size: 'aspect_ratio', Model: 'write model', model_id: 'write model' },
    ...{
      promptImage: 'write first_frame_upload_id',
      prompt_image: 'first_frame_upload_id',
      image: 'first_frame_upload_id',
    },
    ...{
      input_reference: 'first_frame_upload_id',
      start_image: 'first_frame_upload_id',
      first_frame: 'first_frame_upload',
    },
    ...{ first_frame_image: 'first_frame_upload_id', firstFrameUrl: 'first_frame_url', image_url: 'first_frame_url' },
    ...{
      end_image: 'last_frame_upload_id',
      last_frame: 'last_frame_upload_id',
      keyframes: 'first_frame_upload_id and',
    },
    ...{ lastFrameUploadId: 'last_frame_upload_id', video_url: 'reference_video_urls', video: 'reference_video_urls' },
    ...{ generateAudio: 'write generate_audio', audio: 'write generate_audio', with_audio: 'no such field' },
    ...{ cameraFixed: 'write camera_fixed', camera: 'no such field', motion: 'no such field', loop: 'no such field' },
    ...{ webhook: 'write webhook_url', webhook_events_filter: 'no such field', webhookUrl: 'webhook_url' },
    ...{ callback: 'no such field', notify_url: 'no such field', wait: 'no such field', sync_mode: 'no such field' },
    ...{ n: 'one create', number_of_videos: 'one create', num_outputs: 'one create', nums: 'no such field' },
    ...{ text: 'write prompt', promptText: 'write prompt', input: 'without input', promt: 'documents no such field' },
    ...{ negativePrompt: 'no such field', cfg_scale: 'no such field', enhance_prompt: 'no such field' },
    ...{ reference_upload_ids: 'write reference_image_upload_ids', references: 'it is a field of images.create' },
    ...{ characterIds: 'write character_ids', character: 'no such field', safetyIdentifier: 'write safety_identifier' },
    ...{ user: 'write safety_identifier', customer: 'no such field', metadata: 'no such field', Seed: 'write seed' },
    ...{ idempotencyKey: 'is an option', signal: 'is an option', budget: 'is an option', onUpdate: 'is an option' },
    ...{
      pollIntervalMs: 'is an option',
      throwOnFailure: 'is an option',
      cleanup: 'is an option',
      recover: 'is an option',
    },
    ...{ maxRetries: 'is an option', resubmitPending: 'is an option', onUploadProgress: 'is an option' },
  },
  videoEdits: {
    ...{ aspect_ratio: 'write ratio', seconds: 'write duration', video_url: 'write source_video_url' },
    ...{ sourceVideoUrl: 'write source_video_url', source_video: 'no such field', mode: 'it is a field of characters' },
    ...{ editMode: 'write edit_mode', strength: 'no such field', seed: 'it is a field of videos.create' },
    ...{ reference_upload_ids: 'reference_image_upload_ids', image: 'reference_image_upload_ids' },
    ...{ first_frame_upload_id: 'it is a field of videos.create', reference_image_urls: 'write reference_images' },
  },
  characters: {
    ...{ ratio: 'write aspect_ratio', image: 'write reference_upload_ids', upload_id: 'it is a field of' },
    ...{ Name: 'write name', title: 'no such field', model: 'it is a field of images.create', label: 'is an option' },
  },
};

describe('a field that the call does not document', () => {
  const rows = Object.entries(SLIPS).flatMap(([call, slips]) =>
    Object.entries(slips).map(([name, said]) => [call as keyof typeof SLIPS, name, said] as const),
  );

  it('stands in a table of at least 120 slips', () => {
    expect(rows.length).toBeGreaterThanOrEqual(120);
  });

  it.each(rows)('of %s: %s is refused before anything is sent: %s', async (call, name, said) => {
    const sandbox = createSandbox();
    const valid = { prompt: 'a fox', ...(call === 'characters' && { name: 'Rex' }) };
    const { create }: { create(params: object): Promise<unknown> } = sandbox.client()[call];
    const created = create({ ...valid, [name]: 'x' });
    const error = await created.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ name: 'PreflightError', param: name, recovery: 'change_request' });
    expect(String(error)).toContain(said);
    expect(sandbox.requests).toEqual([]);
  });

  it.each(GUIDE_NAMES)('that the guide for other clients names is refused: %s', (name) => {
    expect(LEFT_COLUMNS.join(' ')).toContain(name);
    for (const call of ['images', 'videos'] as const) {
      expect(() => refuseUndocumented(call, { prompt: 'a fox', [name]: 'x' })).toThrow(PreflightError);
    }
  });

  it.each(['toString', 'constructor', '__proto__x'])('is refused where every object has the name: %s', (name) => {
    expect(() => refuseUndocumented('videos', { [name]: 1 })).toThrow('documents no such field');
  });

  it('is none for the fields of an edit that is sent as a video, and for one that is undefined', () => {
    const edit = { intent: 'video_edit', source_video_upload_id: 'upl_1', edit_mode: 'restyle', seed: 1, n: undefined };
    expect(() => refuseUndocumented('videos', edit)).not.toThrow();
    expect(() => refuseUndocumented('videos', { ...edit, intent: undefined })).toThrow('reference_video_upload_ids');
  });

  it('is refused by createAndWait and characters.register, too', async () => {
    const sandbox = createSandbox();
    const client = sandbox.client();
    const slip: object = { prompt: 'a fox', ratioo: '16:9' };
    await expect(client.images.createAndWait(slip as never)).rejects.toMatchObject({ param: 'ratioo' });
    const registration: object = { name: 'Rex', image: 'upl_1' };
    await expect(client.characters.register(registration as never)).rejects.toMatchObject({ param: 'image' });
    expect(sandbox.requests).toEqual([]);
  });
});

describe('the option extraBody', () => {
  it('sends fields that the documentation does not have, with create and with createAndWait', async () => {
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

  it.each([{ ratio: '1:1' }, { prompt: 'a dog' }])('cannot replace a documented field: %j', async (extraBody) => {
    const sandbox = createSandbox();
    const created = sandbox.client().images.create({ prompt: 'a fox' }, { extraBody });
    await expect(created).rejects.toThrow(/is a documented field; pass it with the params, not in extraBody/);
    expect(sandbox.requests).toEqual([]);
  });

  it('cannot replace a field of the params without preflight either', async () => {
    const client = createSandbox().client({ preflight: false });
    const created = client.images.create({ prompt: 'a fox' }, { extraBody: { prompt: 'a dog' } });
    await expect(created).rejects.toThrow('extraBody cannot replace prompt');
  });

  it('is refused by a call without a body', async () => {
    const read = createSandbox()
      .client()
      .jobs.get('job_1', { extraBody: { a: 1 } });
    await expect(read).rejects.toThrow('jobs.get has no body, so extraBody has no effect. Leave it out.');
  });
});

describe('without preflight', () => {
  it('every field is sent as it is', async () => {
    const sandbox = createSandbox();
    const params: object = { prompt: 'a fox', ratioo: '16:9' };
    const { warnings } = await sandbox.client().images.create(params as never, { preflight: false });
    expect(warnings).toEqual([]);
    expect(sandbox.requests[0]?.body).toBe(JSON.stringify(params));
  });

  it.each([
    ['onUpdate', () => {}],
    ['stop', new AbortController().signal],
    ['service', createSandbox().client()],
  ])('a function, a signal and a client are refused: %s', async (name, value) => {
    const sandbox = createSandbox();
    const params: object = { prompt: 'a fox', [name]: value };
    const created = sandbox.client({ preflight: false }).images.create(params as never);
    await expect(created).rejects.toThrow(`${name}: cannot be sent. Options are the second argument.`);
    expect(sandbox.requests).toEqual([]);
  });
});
