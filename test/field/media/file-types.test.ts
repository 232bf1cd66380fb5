import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { outputType } from '../../../src/downloading/output.js';
import { isDocument, mediaTypeOf, mediaTypeOfBytes } from '../../../src/schemas/file-type.js';
import { uploadTypeOf } from '../../../src/schemas/media-type.js';
import { describeFile } from '../../../src/uploading/file.js';
import { FILES } from './file-types.js';

const bytesOf = (head: string) => Uint8Array.from(head, (char) => char.charCodeAt(0));

describe.each(FILES)('$what ($source)', ({ head, bytes, type = '', name, sent }) => {
  it(`is recognized as ${bytes} from its bytes`, () => {
    expect(mediaTypeOfBytes(bytesOf(head))).toBe(bytes);
  });

  it(`is sent as ${sent} with the name "${name ?? ''}" and the type "${type}"`, () => {
    expect(mediaTypeOf({ head: bytesOf(head), type, name })).toBe(sent);
  });

  it("is sent with the caller's type", () => {
    expect(mediaTypeOf({ option: 'video/mp4', head: bytesOf(head), type, name })).toBe('video/mp4');
  });

  it.skipIf(head === '')('is uploaded with its type, or rejected before the first request', async () => {
    const blob = new Blob([bytesOf(head)], { type });
    const source = { name, size: blob.size, type: blob.type, stream: () => blob.stream() };
    const described = describeFile(source, {});
    if (sent === undefined || uploadTypeOf(sent) === undefined) {
      await expect(described).rejects.toMatchObject({ name: 'PreflightError', code: 'upload_invalid' });
    } else {
      expect((await described).params).toMatchObject({ mime_type: sent, upload_type: uploadTypeOf(sent) });
    }
  });

  it('is stored as an output with its type, unless it is HTML or JSON', () => {
    const label = type === '' ? undefined : type;
    const detected = mediaTypeOf({ head: bytesOf(head), type });
    const outputTypeOf = () => outputType('job_1', label, bytesOf(head));
    if (detected !== undefined && isDocument(detected)) expect(outputTypeOf).toThrow(/instead of the file/);
    else expect(mediaTypeOf({ type: outputTypeOf() })).toBe(detected);
  });
});

describe('docs/files.md', () => {
  const guide = readFileSync(new URL('../../../docs/files.md', import.meta.url), 'utf8');
  const recognized = [...new Set(FILES.flatMap(({ bytes }) => bytes ?? []))];

  it.each(['IMAGE', 'VIDEO', 'AUDIO', 'rejected'])('lists the types of %s', (kind) => {
    const [, cell = ''] = new RegExp(`^\\| ${kind} \\| (.*) \\|$`, 'm').exec(guide) ?? [];
    const listed = [...cell.matchAll(/`([^`]+)`/g)].map(([, type]) => type);
    expect(listed).toEqual(recognized.filter((type) => (uploadTypeOf(type) ?? 'rejected') === kind).sort());
  });

  it('states the type that is sent', () => {
    const [heic, webp, mp4] = ['image/heic', 'image/webp', 'video/mp4'].map((type) => {
      const { head = '' } = FILES.find(({ bytes }) => bytes === type) ?? {};
      return bytesOf(head);
    });
    expect([
      mediaTypeOf({ head: heic, name: 'photo.png' }),
      mediaTypeOf({ head: webp, type: 'image/png' }),
      mediaTypeOf({ head: mp4, type: 'application/octet-stream' }),
      mediaTypeOf({ head: mp4 }),
      mediaTypeOf({ head: mp4, type: 'audio/mp4' }),
      mediaTypeOf({ head: bytesOf('????'), type: 'image/jpg' }),
      mediaTypeOf({ head: bytesOf('????') }),
    ]).toEqual(['image/heic', 'image/webp', 'video/mp4', 'video/mp4', 'audio/mp4', 'image/jpeg', undefined]);
  });
});
