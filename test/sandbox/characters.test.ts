import { describe, expect, test } from 'vitest';
import { CHARACTER_WIDTH } from '../../src/rules/limits.js';
import { type PlainClient, png, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';

async function register(client: PlainClient, name = 'Ada Löve', file?: string, width = 640) {
  const upload_id = await client.upload('IMAGE', file, png(width));
  return (await client.call('POST', '/v1/characters', { mode: 'register', name, upload_id })).body;
}

describe('registration', () => {
  test('returns a character that creates accept by ID and by slug', async () => {
    const client = setUp();
    const { character } = (await register(client)).data;
    expect(character).toMatchObject({ character_id: expect.any(String), slug: 'ada-love', status: 'ready' });
    await client.create('/v1/videos', { prompt, character_ids: [character.character_id] });
    await client.create('/v1/images', { prompt, character_ids: [character.slug] });
    expect((await register(client)).data.character.slug).toBe('ada-love-2');
  });

  test('accepts an image with the documented width', async () => {
    expect((await register(setUp(), 'Ada', 'a.png', CHARACTER_WIDTH)).success).toBe(true);
  });

  test('can be under review, during which creates are rejected with the remaining seconds and reserve nothing', async () => {
    const client = setUp({ review: { character: 20_000 } });
    const { character } = (await register(client)).data;
    expect(character).toMatchObject({ status: 'pending', retry_after: 20 });
    await client.sandbox.advance(5000);
    const rejected = await client.call('POST', '/v1/videos', { prompt, character_ids: [character.slug] });
    expect(rejected).toMatchObject({
      status: 409,
      body: { error: { code: 'character_pending' }, data: { retry_after: 15 } },
    });
    expect(rejected.headers.get('retry-after')).toBe('15');
    expect(client.sandbox.ledger().entries).toHaveLength(1);
    await client.sandbox.advance(15_000);
    expect((await client.create('/v1/videos', { prompt, character_ids: [character.slug] })).status).toBe('processing');
  });

  test('fails if the image is declined, immediately or after the review', async () => {
    expect((await register(setUp(), 'Ada', 'rejected.png')).error.code).toBe('character_registration_failed');
    const client = setUp({ review: { character: 20_000 } });
    const { character } = (await register(client, 'Ada', 'rejected.png')).data;
    await client.sandbox.advance(20_000);
    const record = (await client.call('GET', `/v1/characters/${character.character_id}`)).body.data.character;
    expect(record.status).toBe('failed');
    const create = { prompt, character_ids: [character.character_id] };
    expect(await client.code('POST', '/v1/videos', create)).toBe('character_registration_failed');
  });
});

describe('registered characters', () => {
  test('are listed, returned, and deleted', async () => {
    const client = setUp();
    const { character_id: id, slug } = (await register(client, 'Ada')).data.character;
    expect((await client.call('GET', '/v1/characters')).body.data.characters).toMatchObject([{ character_id: id }]);
    expect((await client.call('GET', `/v1/characters/${slug}`)).body.data.character.character_id).toBe(id);
    expect((await client.call('DELETE', `/v1/characters/${id}`)).status).toBe(200);
    expect(await client.code('GET', `/v1/characters/${id}`)).toBe('character_not_found');
    expect((await client.call('GET', '/v1/characters')).body.data.characters).toEqual([]);
  });

  test('are private to the account', async () => {
    const client = setUp();
    const { character_id: id } = (await register(client)).data.character;
    const other = client.as(client.sandbox.createKey({ account: 'other' }));
    expect((await other.call('GET', '/v1/characters')).body.data.characters).toEqual([]);
    expect(await other.code('GET', `/v1/characters/${id}`)).toBe('character_not_found');
    expect(await other.code('DELETE', `/v1/characters/${id}`)).toBe('character_not_found');
    expect(await other.code('POST', '/v1/images', { prompt, character_ids: [id] })).toBe('character_not_found');
  });
});

describe('prompt mode', () => {
  test('creates an image job, even if `mode` is omitted', async () => {
    const client = setUp();
    const reference_upload_ids = [await client.upload('IMAGE')];
    const params = { name: 'Ada', prompt, reference_upload_ids, aspect_ratio: '3:4', resolution: 'high' };
    expect(await client.create('/v1/characters', params)).toMatchObject({ mediaType: 'image' });
    expect(await client.create('/v1/characters', { ...params, mode: 'prompt' })).toMatchObject({ mediaType: 'image' });
  });

  test('fails a job whose reference image is narrower than documented', async () => {
    const client = setUp();
    const small = await client.upload('IMAGE', 'small.png', png(CHARACTER_WIDTH - 1));
    const job = await client.create('/v1/characters', { name: 'Ada', prompt, reference_upload_ids: [small] });
    expect(job).toMatchObject({ status: 'failed', errorCode: 'reference_asset_failed', finalTokenCost: 0 });
  });
});
