import { describe, expect, it } from 'vitest';
import { extensionFor } from '../../src/index.js';
import { safeFileName } from '../../src/schemas/media-type.js';
import { imageSize } from '../../src/uploading/image-size.js';

const latin1 = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

describe('imageSize', () => {
  const FRAME = '\0\x0b\x08\x01\x2c\x02\x80';
  it.each([
    ['a PNG', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\x2c'],
    ['a GIF', 'GIF89a\x80\x02\x2c\x01'],
    ['a JPEG with its frame after other segments', `\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc4\0\x03x\xff\xc2${FRAME}`],
    [
      'a JPEG with segments whose markers precede and separate the frame markers',
      `\xff\xd8\xff\x10\0\x04ab\xff\xcc\0\x02\xff\xc0${FRAME}`,
    ],
    ['a JPEG with the last frame marker', `\xff\xd8\xff\xcf${FRAME}`],
    ['a lossy WebP', 'RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\x2c\x01'],
    ['a lossy WebP with scaling', 'RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x42\x2c\x81'],
    ['a lossless WebP', 'RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x4a\0'],
    ['an extended WebP', 'RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x7f\x02\0\x2b\x01\0'],
  ])('reads the width and height of %s', (_, head) => {
    expect(imageSize(latin1(`${head}\0\0\0\0`))).toEqual({ width: 640, height: 300 });
  });

  it.each([
    ['', 'no bytes'],
    ['\x89PNG', 'a truncated PNG'],
    ['\xff\xd8\xff\xe0\xff\xff', 'a truncated JPEG'],
    ['\xff\xd8\0\xc0\0\x0b\x08\x01\x2c\x02\x80', 'a JPEG without a marker'],
    [`RIFF\0\0\0\0WEBPVP9 ${'\x01'.repeat(16)}`, 'an unknown WebP format'],
    [`RIFF\0\0\0\0AVI VP8 ${'\x01'.repeat(16)}`, 'a RIFF file other than WebP'],
    [`JUNK\0\0\0\0WEBPVP8 ${'\x01'.repeat(16)}`, 'a file other than RIFF'],
    [`xx\xff\xc0${FRAME}`, 'a frame without a JPEG header'],
    ['text', 'plain text'],
  ])('returns undefined for %j: %s', (head) => {
    expect(imageSize(latin1(head))).toBeUndefined();
  });
});

describe('a file name is sanitized', () => {
  it.each([
    ['../../etc/passwd', 'image/png', 'passwd.png'],
    ['C:\\Users\\me\\fox.PNG', 'image/png', 'fox.PNG'],
    ['my fox (1).png', 'image/png', 'my_fox_1_.png'],
    ['лиса.png', 'image/png', 'лиса.png'],
    ['.hidden', 'image/png', 'hidden.png'],
    ['a\0b\r\n.mp4', 'video/mp4', 'a_b_.mp4'],
    ['"; rm -rf *', 'video/mp4', 'rm_-rf.mp4'],
    ['con.png', 'image/png', '_con.png'],
    ['///', 'video/mp4', 'upload.mp4'],
    [undefined, 'audio/mpeg', 'upload.mp3'],
    ['狐'.repeat(80), 'image/png', `${'狐'.repeat(25)}.png`],
    ['𠮷'.repeat(80), 'image/png', `${'𠮷'.repeat(19)}.png`],
    [`fox.${'x'.repeat(90)}`, 'image/png', `fox.${'x'.repeat(72)}.png`],
  ])('%j', (name, type, safe) => {
    expect(safeFileName(name, type)).toBe(safe);
    expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(80);
  });
});

it.each([
  ['video/mp4', '.mp4'],
  ['Image/JPEG; charset=binary', '.jpg'],
  ['audio/x-wav', '.wav'],
  ['application/x-unheard-of', ''],
  ['constructor', ''],
  [null, ''],
])('extensionFor(%j) returns "%s"', (type, extension) => {
  expect(extensionFor(type)).toBe(extension);
});
