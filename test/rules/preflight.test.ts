// Each preflight error and warning: its code, field, and fix.
import { describe, expect, it } from 'vitest';
import { PreflightError } from '../../src/errors/index.js';
import {
  checkCharacter,
  checkImage,
  checkRegistration,
  checkVideo,
  checkVideoEdit,
} from '../../src/rules/preflight.js';

const CHECKS = { checkCharacter, checkImage, checkRegistration, checkVideo, checkVideoEdit };
type Check = keyof typeof CHECKS;

/** Returns a check's result: the error's code, field, and message, or the first warning's field. */
function verdict(check: Check, body: unknown): readonly [result: string, message: string] {
  const warnings: string[] = [];
  try {
    CHECKS[check](body, (message: string) => warnings.push(message));
  } catch (error) {
    if (!(error instanceof PreflightError)) throw error;
    expect(error.message).toContain(error.param);
    return [`${error.code} ${error.message.split(': ')[0]}`, error.message];
  }
  const [first] = warnings;
  return first === undefined ? ['sent', ''] : [`warns ${first.split(':')[0]}`, first];
}

type Row = [Check, body: unknown, result: string, fix?: string | undefined];
const P = { prompt: 'a fox' };
const URL_OK = 'https://a.test/a.png';
const EDIT = { ...P, model: 'svc-video-fast', source_video_url: 'https://a.test/a.mp4' };

/** Returns the row of an invalid upload ID. */
const badFrame = (id: unknown, fix?: string): Row => [
  'checkVideo',
  { ...P, first_frame_upload_id: id },
  'invalid_params first_frame_upload_id',
  fix,
];

const FILE = new Blob(['x']);

describe('preflight', () => {
  it.each<Row>([
    ['checkVideo', P, 'sent'],
    ['checkVideo', 'a fox', 'invalid_params params', 'must be an object such as { prompt: "a fox" }, not "a fox".'],
    ['checkVideo', {}, 'prompt_required prompt'],
    ['checkImage', {}, 'prompt_required prompt'],
    ['checkVideo', { prompt: ' ' }, 'prompt_required prompt'],
    ['checkVideo', { content: [{ text: 'a fox' }] }, 'sent'],
    ['checkVideo', { content: { text: 'a fox' } }, 'sent'],
    ['checkVideo', { content: [{ text: 7 }] }, 'prompt_required prompt'],
    ['checkVideo', { ...P, model: 7 }, 'model_not_found model'],
    ['checkVideo', { ...P, model: 'svc-image-fast' }, 'model_not_found model'],
    ['checkImage', { ...P, model: 'svc-video-fast' }, 'model_not_found model'],
    ['checkVideo', { ...P, model: 'a future model', duration: 99 }, 'sent'],
    ['checkVideo', { ...P, duration: null, resolution: null }, 'sent'],
    ['checkVideo', { ...P, duration: 99 }, 'duration_not_supported duration'],
    ['checkVideo', { ...P, resolution: '9k' }, 'resolution_not_supported resolution'],
    ['checkVideo', { ...P, firstFrameUrl: URL_OK }, 'invalid_params videos.create', 'Did you mean "first_frame_url"?'],
    ['checkVideo', { ...P, firstFrameUrl: undefined }, 'sent'],
    ['checkVideo', { ...P, referenceImageUrls: [URL_OK] }, 'sent'],
    ['checkVideo', { ...P, aspectRatio: '16:9' }, 'invalid_params videos.create', 'Did you mean "aspect_ratio"?'],
    ['checkImage', { ...P, aspectRatio: '16:9' }, 'invalid_params images.create', 'Did you mean "ratio"?'],
    [
      'checkVideo',
      { ...P, intent: 'video_edit', aspectRatio: '1:1' },
      'invalid_params videos.create',
      'Did you mean "aspect_ratio"?',
    ],
    [
      'checkVideo',
      { content: [{ text: 'a fox', imageUrl: URL_OK }] },
      'invalid_params content[0].imageUrl',
      'must be written image_url',
    ],
    [
      'checkVideo',
      { ...P, first_frame_url: URL_OK, reference_image_urls: [URL_OK] },
      'reference_combination_not_supported reference_image_urls',
      'Send frames or',
    ],
    [
      'checkVideo',
      { content: [{ text: 'a fox' }, { image_url: URL_OK, role: 'first_frame' }], reference_images: [URL_OK] },
      'reference_combination_not_supported reference_images',
      'Send frames or',
    ],
    ['checkVideo', { ...P, first_frame_url: URL_OK, reference_image_urls: [] }, 'sent'],
    ['checkVideo', { ...P, first_frame_url: null, reference_image_urls: [URL_OK] }, 'sent'],
    ['checkVideo', { ...P, camera_fixed: true }, 'sent'],
    [
      'checkVideo',
      { ...P, camera_fixed: true, last_frame_upload_id: 'upl_1' },
      'warns camera_fixed',
      'combined with last_frame_upload_id',
    ],
    [
      'checkVideo',
      { ...P, camera_fixed: false, referenceImageUrls: [URL_OK] },
      'warns camera_fixed',
      'combined with referenceImageUrls',
    ],
    ['checkVideo', { ...P, camera_fixed: null, referenceImageUrls: [URL_OK] }, 'sent'],
    // Guidance.
    ['checkVideo', { ...P, first_frame_url: 'http://a.test' }, 'warns first_frame_url', 'a public URL'],
    ['checkVideo', { ...P, webhook_url: 'HTTPS://a.test' }, 'sent'],
    ['checkVideo', { ...P, reference_image_urls: [URL_OK, 'ftp://a'] }, 'warns reference_image_urls', 'a public URL'],
    ['checkVideo', { ...P, reference_videos: [{ url: 'http://a' }] }, 'warns reference_videos', 'a public URL'],
    ['checkVideo', { content: [{ text: 'x', video_url: { url: 'http://a' } }] }, 'warns content', 'a public URL'],
    ...['https://localhost:3000/h', 'https://127.0.0.1/h', 'https://[::1]/h'].map(
      (url): Row => ['checkVideo', { ...P, webhook_url: url }, 'warns webhook_url', 'a public URL'],
    ),
    ['checkVideo', { ...P, webhook_url: 'https://localhost.example.com' }, 'sent'],
    ['checkVideo', { content: [{ text: 'http://a' }] }, 'sent'],
    // Values that JSON can't represent.
    ['checkVideo', { ...P, seed: Number.NaN }, 'invalid_params seed'],
    ['checkVideo', { ...P, duration: 1 / 0 }, 'invalid_params duration'],
    ['checkVideo', { prompt: ['a fox'] }, 'prompt_required prompt'],
    // Items of lists.
    [
      'checkImage',
      { ...P, references: [{ type: 'image_url', url: URL_OK, weight: 1 }] },
      'invalid_params references[0].weight',
      'is not a documented field of an item',
    ],
    ['checkVideo', { ...P, content: [FILE] }, 'invalid_params content[0]'],
    ['checkImage', { ...P, references: [{ image_url: 'http://a' }] }, 'warns references', 'a public URL'],
    [
      'checkVideo',
      { ...P, label: 'http://a' },
      'invalid_params videos.create',
      'is an option: pass it as the second argument.',
    ],
    // Edits.
    ['checkVideoEdit', EDIT, 'sent'],
    ['checkVideoEdit', { ...EDIT, model: undefined }, 'video_edit_model_not_supported model'],
    ['checkVideoEdit', { ...EDIT, model: 'svc-image-fast' }, 'video_edit_model_not_supported model'],
    [
      'checkVideoEdit',
      { ...EDIT, source_video_url: undefined },
      'video_edit_source_required source_video_upload_id',
      'Pass one of source_video_upload_id, video, source_video_url',
    ],
    [
      'checkVideoEdit',
      { ...EDIT, source_video_url: undefined, content: [{ video_url: 'https://a.test/a.mp4' }] },
      'sent',
    ],
    ['checkVideoEdit', { ...EDIT, prompt: '' }, 'prompt_required prompt'],
    // Characters.
    ['checkCharacter', { ...P, name: 'Fox' }, 'sent'],
    ['checkCharacter', P, 'invalid_params name'],
    ['checkCharacter', { name: 'Fox' }, 'prompt_required prompt'],
    ['checkRegistration', { name: 'Fox', upload_id: 'upl_1' }, 'sent'],
    ['checkRegistration', { name: ' ', upload_id: 'upl_1' }, 'invalid_params name'],
    ['checkRegistration', { name: 'Fox' }, 'invalid_params upload_id'],
    ['checkRegistration', { name: 'Fox', upload_id: null }, 'invalid_params upload_id'],
    ['checkRegistration', { name: 'Fox', upload_id: FILE }, 'sent'],
    // References.
    ['checkVideo', { ...P, first_frame_upload_id: FILE, last_frame_upload_id: null }, 'sent'],
    badFrame(' ', 'Pass an upload ID or a file, or leave the field out'),
    badFrame(URL_OK, 'Pass it as first_frame_url'),
    ...['./fox', '/fox', 'C:\\fox', 'file:fox', 'fox.png'].map((path) =>
      badFrame(path, 'Pass fromPath(path) or a Blob'),
    ),
    badFrame(Promise.resolve('x'), 'Await the upload, and pass its upload_id'),
    badFrame(7),
    badFrame(['upl_1'], 'must be one value, not a list'),
    ['checkVideo', { ...P, first_frame_upload_id: 'upl.1/x' }, 'sent'],
    [
      'checkVideo',
      { ...P, reference_image_upload_ids: ['upl_1', { upload_id: 'upl_2' }] },
      'invalid_params reference_image_upload_ids[1]',
      'Pass its upload_id',
    ],
    ['checkVideo', { ...P, reference_image_upload_ids: 'upl_1' }, 'invalid_params reference_image_upload_ids', '[ ]'],
    ['checkVideo', { ...P, reference_image_upload_ids: FILE }, 'invalid_params reference_image_upload_ids', '[ ]'],
    ...[undefined, null].map(
      (item): Row => [
        'checkVideo',
        { ...P, reference_image_upload_ids: [item] },
        'invalid_params reference_image_upload_ids[0]',
      ],
    ),
    ['checkVideo', { ...P, reference_audio_urls: [new URL(URL_OK)], character_ids: [] }, 'sent'],
    ['checkVideo', { ...P, character_ids: ['fox', ''] }, 'invalid_params character_ids[1]'],
    ['checkVideo', { ...P, character_ids: 'fox' }, 'invalid_params character_ids', '[ ]'],
    ['checkVideo', { ...P, first_frame_url: new URL(URL_OK) }, 'sent'],
    ['checkVideo', { ...P, first_frame_url: 7 }, 'invalid_params first_frame_url'],
    ['checkVideo', { ...P, first_frame_url: Promise.resolve('x') }, 'invalid_params first_frame_url', 'Await it'],
    ...(
      [
        ['checkVideo', 'first_frame_url', 'first_frame_upload_id'],
        ['checkVideo', 'last_frame_url', 'last_frame_upload_id'],
        ['checkVideo', 'webhook_url', 'a field that accepts upload IDs'],
        ['checkVideo', 'reference_video_urls', 'reference_video_upload_ids', '[0]'],
        ['checkVideo', 'referenceAudioUrls', 'reference_audio_upload_ids', '[0]'],
        ['checkVideoEdit', 'video', 'source_video_upload_id'],
        ['checkVideoEdit', 'source_video_url', 'source_video_upload_id'],
      ] as const
    ).map(([check, field, fix, index = '']): Row => {
      const body = { ...(check === 'checkVideo' ? P : EDIT), [field]: index ? [FILE] : FILE };
      return [check, body, `invalid_params ${field}${index}`, `Pass a file as ${fix}`];
    }),
    ['checkVideo', { ...P, reference_images: [{ url: URL_OK }, URL_OK] }, 'sent'],
    [
      'checkVideo',
      { ...P, reference_images: [FILE] },
      'invalid_params reference_images[0]',
      'Pass a file as reference_image_upload_ids (reference_upload_ids for images)',
    ],
    ['checkVideo', { ...P, reference_images: [''] }, 'invalid_params reference_images[0]'],
    ['checkImage', { ...P, references: [() => 1] }, 'invalid_params references[0]'],
    ['checkImage', { ...P, references: [Object.create(null), null, 'x'] }, 'sent'],
    ['checkImage', { ...P, references: [{ image_url: '' }] }, 'invalid_params references[0].image_url'],
    ['checkVideo', { content: [{ text: 'x', video_url: { url: 7 } }] }, 'invalid_params content[0].video_url'],
    ['checkVideo', { content: [{ text: 'x', video_url: null, image_url: { url: undefined } }] }, 'sent'],
    [
      'checkVideo',
      { content: [{ text: 'x', video_url: FILE }] },
      'invalid_params content[0].video_url',
      'Pass a file as reference_video_upload_ids',
    ],
    [
      'checkImage',
      { ...P, references: [{ type: 'image_url', url: FILE }] },
      'invalid_params references[0].url',
      'Pass a file as reference_upload_ids',
    ],
  ])('%s(%j) results in %s', (check, body, expected, fix = '') => {
    const [actual, message] = verdict(check, body);
    expect(actual).toBe(expected);
    expect(message).toContain(fix);
  });
});
