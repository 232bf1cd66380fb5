// Calls as records: which this version knows, where they go on, and how their files are kept. Needs no Redis.
import { describe, expect, it } from 'vitest';
import { discardUploads, storeFiles } from '../../src/adapters/bullmq/call-files.js';
import { type GenJobData, hasFailed, isKnownRecord, loadRun } from '../../src/adapters/bullmq/call-record.js';
import { fromPath } from '../../src/adapters/node/index.js';
import { rejection } from '../transport/support.js';

const RULES = {
  ...{ timeoutMs: null, resubmitPending: false, recover: {}, persistent: true, stores: false },
  ...{ pollMs: null, retryMs: null },
};
const call: GenJobData = { call: 'videos', params: { prompt: 'a' } };
const fresh = loadRun({ id: 'order-1', data: call }, RULES);
const { rules: _, ...stored } = fresh;
const PNG = Buffer.from('89504e470d0a1a0a0000000d494844520000020000000200080600', 'hex');
const png = (name?: string) =>
  name === undefined ? new Blob([PNG], { type: 'image/png' }) : new File([PNG], name, { type: 'image/png' });

describe('a record', () => {
  it.each<[object, boolean]>([
    [{}, true],
    [{ version: 1 }, true],
    [{ version: 0 }, true],
    [{ version: 2 }, false],
    [{ call: 'songs' }, false],
    [{ call: 'characters' }, true],
    [{ run: stored }, true],
    [{ run: { ...stored, version: 2 } }, false],
    [{ version: 1, run: {} }, false],
  ])('with %j is known: %s', (fields, isKnown) => {
    expect(isKnownRecord({ ...call, ...fields })).toBe(isKnown);
  });

  it('begins under the id of its queue job, by the rules of its worker, and goes on where it stands', () => {
    expect(fresh).toMatchObject({ key: 'order-1', shortKey: 'order-1', rules: RULES, step: { type: 'create' } });
    const recover = { generation_failed: { times: 2 } } as never;
    const run = { ...stored, misses: 3 };
    expect(loadRun({ id: 'x', data: { ...call, run, recover } }, RULES)).toEqual({
      ...fresh,
      misses: 3,
      rules: { ...RULES, recover },
    });
    const long = loadRun({ id: 'k'.repeat(201), data: call }, RULES);
    expect(long.shortKey.length).toBeLessThan(200);
  });

  it.each<[object, number, boolean]>([
    [{}, 1, false],
    [{ failure: {} }, 1, false],
    [{ stalls: 0 }, 1, false],
    [{ failure: {}, stalls: 0 }, 0, false],
    [{ failure: {}, stalls: 0 }, 1, true],
    [{ failure: {}, stalls: 2 }, 2, false],
  ])('with %j whose worker died %i times has failed: %s', (fields, stalledCounter, isFailed) => {
    expect(hasFailed({ data: { ...call, ...fields }, stalledCounter })).toBe(isFailed);
  });
});

describe('the files of a call', () => {
  const keep = (params: object, name: GenJobData['call'] = 'videos', preflight = true) =>
    storeFiles(name, params as never, preflight);

  it('are kept beside its params, one source once: a path as it is, a Blob with its bytes', async () => {
    const fox = png('fox.png');
    const base64 = PNG.toString('base64');
    const params = { prompt: 'a', first_frame_upload_id: fox, last_frame_upload_id: fox };
    expect(await keep(params)).toEqual({
      params: { prompt: 'a', first_frame_upload_id: { $file: 0 }, last_frame_upload_id: { $file: 0 } },
      files: [{ base64, type: 'image/png', name: 'fox.png' }],
    });
    const two = { prompt: 'a', reference_image_upload_ids: [fromPath('/none.png'), png(), 'upl_1'] };
    expect(await keep(two, 'videos', false)).toEqual({
      params: { prompt: 'a', reference_image_upload_ids: [{ $file: 0 }, { $file: 1 }, 'upl_1'] },
      files: [{ path: '/none.png' }, { base64, type: 'image/png' }],
    });
    expect(await keep(call.params)).toEqual({ params: call.params });
  });

  it('are refused where they would not survive a restart, or are too many bytes for Redis', async () => {
    const stream = { stream: () => png().stream(), size: 27, name: 'fox.png' };
    await expect(keep({ prompt: 'a', first_frame_upload_id: stream })).rejects.toThrow(
      'first_frame_upload_id: a queued call takes a Blob or fromPath(path), because other sources do not survive a restart. Upload it first, and pass its upload_id.',
    );
    const text = { prompt: 'a', first_frame_upload_id: 'upl_1', last_frame_upload_id: new Uint8Array(4) };
    await expect(keep(text)).rejects.toThrow('last_frame_upload_id: a queued call takes a Blob or fromPath(path)');
    const half = () => new Blob([new Uint8Array(8 * 1024 * 1024)], { type: 'image/png' });
    // As much as there may be, and a file that stands in two places counts once.
    const twice = half();
    const most = { prompt: 'a', reference_image_upload_ids: [twice, half(), twice] };
    await expect(keep(most, 'videos', false)).resolves.toMatchObject({ files: [{}, {}] });
    const everywhere = { prompt: 'a', first_frame_upload_id: stream, reference_image_upload_ids: [stream] };
    await expect(keep(everywhere, 'videos', false)).rejects.toThrow(/^first_frame_upload_id: /);
    const ids = (...more: Blob[]) => ({ prompt: 'a', reference_image_upload_ids: [half(), half(), ...more] });
    const tooMany = await rejection(keep(ids(png(), half()), 'videos', false));
    expect(tooMany).toMatchObject({
      message: expect.stringMatching(
        /^reference_image_upload_ids\[[012]\]: the queue keeps at most 16 MB of Blobs for a call\. Pass fromPath\(path\), or upload the file first and pass its upload_id\.$/,
      ),
    });
  });

  const files = [{ path: '/a' }];
  const tries = [{ jobId: 'job_1' }];
  it.each<[string, object, object, object | undefined, boolean]>([
    ['a call that has none', { files }, { step: { type: 'fail', reason: 'refused' } }, undefined, false],
    ['a call that is refused', { files }, { step: { type: 'fail', reason: 'refused' } }, { files }, true],
    ['one out of time', { files }, { step: { type: 'fail', reason: 'timeout' } }, undefined, false],
    ['one whose answer is lost', { files }, { step: { type: 'fail', reason: 'lost' } }, undefined, false],
    ['one that goes on', { files }, { step: { type: 'wait' } }, undefined, false],
    ['an end with after-job', { cleanup: 'after-job' }, { tries, step: { type: 'end' } }, undefined, true],
    ['an end without a job', { cleanup: 'after-job' }, { tries: [], step: { type: 'end' } }, undefined, false],
    ['an end without after-job', {}, { tries, step: { type: 'end' } }, undefined, false],
    ['a wait with after-job', { cleanup: 'after-job' }, { tries, step: { type: 'wait' } }, undefined, false],
  ])('are deleted or not after %s', async (name, fields, run, record, isDeleted) => {
    const done: unknown[] = [];
    const client = { uploads: { delete: async (id: string) => void done.push(id) } };
    const uploads = name.endsWith('none') ? undefined : ['upl_1', 'upl_2'];
    const data = { ...call, ...fields, ...(uploads && { uploads }) };
    const queueJob = { data, updateData: async (value: object) => void done.push(value) };
    await discardUploads(client as never, queueJob as never, { ...fresh, ...run } as never);
    expect(done).toEqual([...(isDeleted ? ['upl_1', 'upl_2'] : []), ...(record ? [{ ...call, ...record }] : [])]);
  });
});
