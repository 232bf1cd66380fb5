// Each refusal and each warning of preflight, whole: a message is all that tells a user which field is meant.
import { describe, expect, it } from 'vitest';
import { PreflightError } from '../../src/errors/index.js';
import {
  type CheckOptions,
  checkCharacter,
  checkImage,
  checkRegistration,
  checkVideo,
  checkVideoEdit,
} from '../../src/rules/preflight.js';

const CHECKS = { checkCharacter, checkImage, checkRegistration, checkVideo, checkVideoEdit };
type Check = keyof typeof CHECKS;

/** What a check says of a body: its refusal, its warnings, or `sent`. */
function verdict(check: Check, body: unknown, options?: CheckOptions): string {
  const warnings: string[] = [];
  try {
    CHECKS[check](body, (message: string) => warnings.push(message), options);
  } catch (error) {
    if (!(error instanceof PreflightError)) throw error;
    expect(error.message).toContain(error.param);
    return `${error.code} ${error.message}`;
  }
  return warnings.join(' ') || 'sent';
}

const P = { prompt: 'a fox' };
const URL_OK = 'https://a.test/a.png';
const EDIT = { ...P, model: 'svc-video-fast', source_video_url: 'https://a.test/a.mp4' };
const TEXT = (at: string, shown: string) => `http_400 ${at}: must be a non-empty string, not ${shown}.`;

describe('preflight says of', () => {
  it.each<[Check, unknown, string]>([
    ['checkVideo', P, 'sent'],
    ['checkVideo', 'a fox', 'prompt_required prompt: is required; pass an object, for example { prompt: "a fox" }.'],
    ['checkVideo', {}, 'prompt_required prompt: is required.'],
    ['checkVideo', { prompt: ' ' }, 'prompt_required prompt: must be a non-empty string, not " ".'],
    ['checkVideo', { content: [{ text: 'a fox' }] }, 'sent'],
    ['checkVideo', { content: { text: 'a fox' } }, 'sent'],
    ['checkVideo', { content: [{ text: 7 }] }, 'prompt_required prompt: is required.'],
    ['checkVideo', { ...P, model: 7 }, 'model_not_found model: must be a string, not 7.'],
    [
      'checkVideo',
      { ...P, model: 'svc-image-fast' },
      expect.stringMatching(
        /^model_not_found model: "svc-image-fast" makes no videos; use svc-video[\w, -]+\.$/,
      ) as never,
    ],
    [
      'checkImage',
      { ...P, model: 'svc-video-fast' },
      expect.stringMatching(
        /^model_not_found model: "svc-video-fast" makes no images; use svc-image[\w, -]*\.$/,
      ) as never,
    ],
    ['checkVideo', { ...P, model: 'a model of tomorrow', duration: 99 }, 'sent'],
    ['checkVideo', { ...P, duration: null, resolution: null }, 'sent'],
    [
      'checkVideo',
      { ...P, duration: 99 },
      expect.stringMatching(
        /^duration_not_supported duration: 99 is not offered by svc-video[\w-]*; it offers 4, /,
      ) as never,
    ],
    [
      'checkVideo',
      { ...P, resolution: '9k' },
      expect.stringMatching(
        /^resolution_not_supported resolution: "9k" is not offered by svc-[\w-]+; it offers "480p", /,
      ) as never,
    ],
    [
      'checkVideo',
      { ...P, firstFrameUrl: URL_OK },
      'http_400 firstFrameUrl: the service ignores this name; write first_frame_url.',
    ],
    ['checkVideo', { ...P, firstFrameUrl: undefined }, 'sent'],
    ['checkVideo', { ...P, referenceImageUrls: [URL_OK] }, 'sent'],
    [
      'checkVideo',
      { ...P, aspectRatio: '16:9' },
      'http_400 aspectRatio: the service ignores this name; write aspect_ratio.',
    ],
    [
      'checkImage',
      { ...P, aspectRatio: '16:9' },
      'http_400 aspectRatio: images.create ignores this name; write ratio.',
    ],
    [
      'checkVideo',
      { ...P, intent: 'video_edit', aspectRatio: '1:1' },
      'http_400 aspectRatio: the service ignores this name; write aspect_ratio.',
    ],
    [
      'checkVideo',
      { content: [{ text: 'a fox', imageUrl: URL_OK }] },
      'http_400 content[0].imageUrl: the service ignores this name; write image_url.',
    ],
    [
      'checkVideo',
      { ...P, first_frame_url: URL_OK, reference_image_urls: [URL_OK] },
      'reference_combination_not_supported reference_image_urls: cannot go beside first_frame_url; send frames or reference images.',
    ],
    [
      'checkVideo',
      { content: [{ text: 'a fox' }, { image_url: URL_OK, role: 'first_frame' }], reference_images: [URL_OK] },
      'reference_combination_not_supported reference_images: cannot go beside content; send frames or reference images.',
    ],
    ['checkVideo', { ...P, first_frame_url: URL_OK, reference_image_urls: [] }, 'sent'],
    ['checkVideo', { ...P, first_frame_url: null, reference_image_urls: [URL_OK] }, 'sent'],
    ['checkVideo', { ...P, camera_fixed: true }, 'sent'],
    [
      'checkVideo',
      { ...P, camera_fixed: true, last_frame_upload_id: 'upl_1' },
      'camera_fixed: leave it out beside last_frame_upload_id.',
    ],
    [
      'checkVideo',
      { ...P, camera_fixed: false, referenceImageUrls: [URL_OK] },
      'camera_fixed: leave it out beside referenceImageUrls.',
    ],
    ['checkVideo', { ...P, camera_fixed: null, referenceImageUrls: [URL_OK] }, 'sent'],
    // Guidance.
    [
      'checkVideo',
      { ...P, first_frame_url: 'http://a.test' },
      'first_frame_url: the service needs a public URL that starts with https://.',
    ],
    ['checkVideo', { ...P, webhook_url: 'HTTPS://a.test' }, 'sent'],
    [
      'checkVideo',
      { ...P, reference_image_urls: [URL_OK, 'ftp://a'] },
      'reference_image_urls: the service needs a public URL that starts with https://.',
    ],
    [
      'checkVideo',
      { ...P, reference_videos: [{ url: 'http://a' }] },
      'reference_videos: the service needs a public URL that starts with https://.',
    ],
    [
      'checkVideo',
      { content: [{ text: 'x', video_url: { url: 'http://a' } }] },
      'content: the service needs a public URL that starts with https://.',
    ],
    ...['https://localhost:3000/h', 'https://127.0.0.1/h', 'https://[::1]/h'].map((url): [Check, unknown, string] => [
      'checkVideo',
      { ...P, webhook_url: url },
      'webhook_url: the service needs a public URL that starts with https://.',
    ]),
    ['checkVideo', { ...P, webhook_url: 'https://localhost.example.com' }, 'sent'],
    ['checkVideo', { content: [{ text: 'http://a' }] }, 'sent'],
    // Numbers and texts that JSON would not carry as they are.
    ['checkVideo', { ...P, seed: Number.NaN }, 'http_400 seed: must be a number, not NaN.'],
    ['checkVideo', { ...P, duration: 1 / 0 }, 'http_400 duration: must be a number, not Infinity.'],
    ['checkVideo', { prompt: ['a fox'] }, 'prompt_required prompt: must be a non-empty string, not an array.'],
    // Items of lists.
    [
      'checkImage',
      { ...P, references: [{ type: 'image_url', url: URL_OK, weight: 1 }] },
      'http_400 references[0].weight: is no documented field of an item.',
    ],
    [
      'checkVideo',
      { ...P, content: [new Blob(['x'])] },
      'http_400 content[0]: must be an object with fields, not an object.',
    ],
    [
      'checkImage',
      { ...P, references: [{ image_url: 'http://a' }] },
      'references: the service needs a public URL that starts with https://.',
    ],
    ['checkVideo', { ...P, label: 'http://a' }, 'http_400 label: is an option: pass it as the second argument.'],
    // Edits.
    ['checkVideoEdit', EDIT, 'sent'],
    [
      'checkVideoEdit',
      { ...EDIT, model: undefined },
      expect.stringMatching(/^video_edit_model_not_supported model: is required; use svc-[\w, -]+\.$/) as never,
    ],
    [
      'checkVideoEdit',
      { ...EDIT, model: 'svc-image-fast' },
      expect.stringMatching(
        /^video_edit_model_not_supported model: "svc-image-fast" takes no edits; use svc-[\w, -]+\.$/,
      ) as never,
    ],
    [
      'checkVideoEdit',
      { ...EDIT, source_video_url: undefined },
      'video_edit_source_required source_video_upload_id: is required; give one of source_video_upload_id, video, source_video_url.',
    ],
    [
      'checkVideoEdit',
      { ...EDIT, source_video_url: undefined, content: [{ video_url: 'https://a.test/a.mp4' }] },
      'sent',
    ],
    ['checkVideoEdit', { ...EDIT, prompt: '' }, 'prompt_required prompt: must be a non-empty string, not "".'],
    // Characters.
    ['checkCharacter', { ...P, name: 'Fox' }, 'sent'],
    ['checkCharacter', P, 'http_400 name: is required.'],
    ['checkCharacter', { name: 'Fox' }, 'prompt_required prompt: is required.'],
    ['checkRegistration', { name: 'Fox', upload_id: 'upl_1' }, 'sent'],
    ['checkRegistration', { name: ' ', upload_id: 'upl_1' }, 'http_400 name: must be a non-empty string, not " ".'],
    ['checkRegistration', { name: 'Fox' }, 'http_400 upload_id: is required.'],
    [
      'checkRegistration',
      { name: 'Fox', upload_id: null },
      'http_400 upload_id: must be a non-empty string, not null.',
    ],
    ['checkRegistration', { name: 'Fox', upload_id: new Blob(['x']) }, 'sent'],
    // References.
    ['checkVideo', { ...P, first_frame_upload_id: new Blob(['x']), last_frame_upload_id: null }, 'sent'],
    [
      'checkVideo',
      { ...P, first_frame_upload_id: ' ' },
      'http_400 first_frame_upload_id: is empty; pass an upload id or a file, or leave the field out.',
    ],
    [
      'checkVideo',
      { ...P, first_frame_upload_id: URL_OK },
      'http_400 first_frame_upload_id: takes an upload id or a file; a public URL goes into a field for URLs.',
    ],
    ...['./fox', '/fox', 'C:\\fox', 'file:fox', 'data:x', 'fox.png'].map((name): [Check, unknown, string] => [
      'checkVideo',
      { ...P, first_frame_upload_id: name },
      'http_400 first_frame_upload_id: takes an upload id, and this is the name of a file; pass fromPath(path) or a Blob.',
    ]),
    ['checkVideo', { ...P, first_frame_upload_id: 'upl.1/x' }, 'sent'],
    [
      'checkVideo',
      { ...P, first_frame_upload_id: Promise.resolve('x') },
      'http_400 first_frame_upload_id: is a promise; await the upload, and pass its upload_id.',
    ],
    [
      'checkVideo',
      { ...P, reference_image_upload_ids: ['upl_1', { upload_id: 'upl_2' }] },
      'http_400 reference_image_upload_ids[1]: is an upload; pass its upload_id.',
    ],
    [
      'checkVideo',
      { ...P, first_frame_upload_id: 7 },
      'http_400 first_frame_upload_id: must be an upload id or a file, not 7.',
    ],
    [
      'checkVideo',
      { ...P, reference_image_upload_ids: 'upl_1' },
      'http_400 reference_image_upload_ids: must be a list; put the value in [ ].',
    ],
    [
      'checkVideo',
      { ...P, first_frame_upload_id: ['upl_1'] },
      'http_400 first_frame_upload_id: takes one value, not a list.',
    ],
    [
      'checkVideo',
      { ...P, reference_image_upload_ids: new Blob(['x']) },
      'http_400 reference_image_upload_ids: must be a list; put the value in [ ].',
    ],
    ...[undefined, null].map((item): [Check, unknown, string] => [
      'checkVideo',
      { ...P, reference_image_upload_ids: [item] },
      `http_400 reference_image_upload_ids[0]: must be an upload id or a file, not ${item}.`,
    ]),
    ['checkVideo', { ...P, reference_audio_urls: [new URL(URL_OK)], character_ids: [] }, 'sent'],
    ['checkVideo', { ...P, character_ids: ['fox', ''] }, TEXT('character_ids[1]', '""')],
    ['checkVideo', { ...P, character_ids: 'fox' }, 'http_400 character_ids: must be a list; put the value in [ ].'],
    ['checkVideo', { ...P, first_frame_url: new URL(URL_OK) }, 'sent'],
    ['checkVideo', { ...P, first_frame_url: 7 }, TEXT('first_frame_url', '7')],
    [
      'checkVideo',
      { ...P, first_frame_url: Promise.resolve('x') },
      'http_400 first_frame_url: is a promise; await it.',
    ],
    ...(
      [
        ['first_frame_url', 'first_frame_upload_id'],
        ['last_frame_url', 'last_frame_upload_id'],
        ['webhook_url', 'a field that takes upload ids'],
      ] as const
    ).map(([field, other]): [Check, unknown, string] => [
      'checkVideo',
      { ...P, [field]: new Blob(['x']) },
      `http_400 ${field}: takes a public URL; a file goes into ${other}.`,
    ]),
    [
      'checkVideo',
      { ...P, reference_video_urls: [new Blob(['x'])] },
      'http_400 reference_video_urls[0]: takes a public URL; a file goes into reference_video_upload_ids.',
    ],
    [
      'checkVideo',
      { ...P, referenceAudioUrls: [new Blob(['x'])] },
      'http_400 referenceAudioUrls[0]: takes a public URL; a file goes into reference_audio_upload_ids.',
    ],
    ...['video', 'source_video_url'].map((field): [Check, unknown, string] => [
      'checkVideoEdit',
      { ...EDIT, [field]: new Blob(['x']) },
      `http_400 ${field}: takes a public URL; a file goes into source_video_upload_id.`,
    ]),
    ['checkVideo', { ...P, reference_images: [{ url: URL_OK }, URL_OK] }, 'sent'],
    [
      'checkVideo',
      { ...P, reference_images: [new Blob(['x'])] },
      'http_400 reference_images[0]: takes a public URL; a file goes into reference_image_upload_ids (reference_upload_ids for images).',
    ],
    ['checkVideo', { ...P, reference_images: [''] }, TEXT('reference_images[0]', '""')],
    [
      'checkImage',
      { ...P, references: [() => 1] },
      expect.stringMatching(/^http_400 references\[0\]: must be an object with fields, not /) as never,
    ],
    ['checkImage', { ...P, references: [Object.create(null), null, 'x'] }, 'sent'],
    ['checkImage', { ...P, references: [{ image_url: '' }] }, TEXT('references[0].image_url', '""')],
    ['checkVideo', { content: [{ text: 'x', video_url: { url: 7 } }] }, TEXT('content[0].video_url', '7')],
    ['checkVideo', { content: [{ text: 'x', video_url: null, image_url: { url: undefined } }] }, 'sent'],
    [
      'checkVideo',
      { content: [{ text: 'x', video_url: new Blob(['x']) }] },
      'http_400 content[0].video_url: takes a public URL; a file goes into reference_video_upload_ids.',
    ],
    [
      'checkImage',
      { ...P, references: [{ type: 'image_url', url: new Blob(['x']) }] },
      'http_400 references[0].url: takes a public URL; a file goes into reference_upload_ids.',
    ],
  ])('%s(%j): %s', (check, body, expected) => {
    expect(verdict(check, body)).toEqual(expected);
  });
});
