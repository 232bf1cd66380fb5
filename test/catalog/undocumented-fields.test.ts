import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it, test } from 'vitest';
import { DOCUMENTED_FIELDS, type FieldsCall, refuseField, undocumentedFields } from '../../src/rules/fields.js';
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

function refuseForeignFields(call: FieldsCall, params: Readonly<Record<string, unknown>>, isStrict = false) {
  for (const name of undocumentedFields(call, params)) refuseField(call, name, { isStrict });
}

describe('a field that the call does not document', () => {
  it.each([
    ['images', 'aspect_ratio', 'aspect_ratio: images.create ignores this name; write ratio.'],
    ['videoEdits', 'aspect_ratio', 'aspect_ratio: videoEdits.create ignores this name; write ratio.'],
    ['characters', 'ratio', 'ratio: characters.create ignores this name; write aspect_ratio.'],
    ['videos', 'seconds', 'seconds: videos.create ignores this name; write duration.'],
    ['images', 'size', 'size: images.create ignores this name; write ratio.'],
    ['videos', 'image', 'image: videos.create ignores this name; write first_frame_upload_id.'],
    ['videos', 'reference_upload_ids', 'ignores this name; write reference_image_upload_ids.'],
    ['images', 'duration', 'duration: it is a field of videos.create, and images.create does not take it.'],
    ['videos', 'references', 'references: it is a field of images.create, and videos.create does not take it.'],
  ] as const)('of %s: %s is refused, and the right name is said', (call, name, message) => {
    expect(() => refuseForeignFields(call, { prompt: 'a fox', [name]: 'x' })).toThrow(message);
  });

  it('is sent and listed where no call and no other service has such a field', () => {
    const params = { prompt: 'a fox', negative_prompt: 'dogs', n: 2, seed: undefined };
    expect(() => refuseForeignFields('images', params)).not.toThrow();
    expect(undocumentedFields('images', params)).toEqual(['negative_prompt', 'n']);
  });

  it('is refused in every case where preflight is strict', () => {
    expect(() => refuseForeignFields('images', { negative_prompt: 'dogs' }, true)).toThrow(
      "negative_prompt: images.create documents no such field, and preflight is 'strict'.",
    );
  });

  it('is none for the fields of an edit that is sent as a video', () => {
    const edit = { intent: 'video_edit', source_video_upload_id: 'upl_1', edit_mode: 'restyle', seed: 1 };
    expect(undocumentedFields('videos', edit)).toEqual([]);
    expect(() => refuseForeignFields('videos', edit)).not.toThrow();
  });

  it('is none for a name that every object inherits', () => {
    expect(undocumentedFields('videos', { toString: 1 })).toEqual(['toString']);
  });
});

describe('a created job', () => {
  const client = createSandbox().client();

  it('lists the undocumented fields that were sent with it', async () => {
    const params = { prompt: 'a fox', negative_prompt: 'dogs' };
    const sent = client.images.create(params);
    params.negative_prompt = 'cats';
    expect((await sent).warnings).toEqual(['unknown_field: negative_prompt']);
    expect((await client.images.create({ prompt: 'a fox' })).warnings).toEqual([]);
  });

  it("is not made of a field of another call, and with preflight 'strict' not of an undocumented one", async () => {
    const wrong: object = { prompt: 'a fox', aspect_ratio: '16:9' };
    const refused = { name: 'PreflightError', param: 'aspect_ratio', recovery: 'change_request' };
    await expect(client.images.create(wrong as { prompt: string })).rejects.toMatchObject(refused);
    const undocumented: object = { prompt: 'a fox', negative_prompt: 'dogs' };
    const strict = client.withOptions({ preflight: 'strict' });
    const error = { name: 'PreflightError', param: 'negative_prompt' };
    await expect(strict.images.create(undocumented as { prompt: string })).rejects.toMatchObject(error);
    const once = client.images.create(undocumented as { prompt: string }, { preflight: 'strict' });
    await expect(once).rejects.toMatchObject(error);
    const waited = client.images.createAndWait(undocumented as { prompt: string }, { preflight: 'strict' });
    await expect(waited).rejects.toMatchObject(error);
  });
});
