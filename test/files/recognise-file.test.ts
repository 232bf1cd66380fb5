import { describe, expect, it } from 'vitest';
import { extensionFor } from '../../src/index.js';
import { safeFileName } from '../../src/schemas/media-type.js';
import { imageSize, sniffMediaType } from '../../src/uploading/sniff.js';

const latin1 = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

describe('the first bytes tell the type of', () => {
  it.each([
    ['image/png', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'],
    ['image/jpeg', '\xff\xd8\xff\xe0\0\x10JFIF'],
    ['image/gif', 'GIF89a'],
    ['image/webp', 'RIFF\0\0\0\0WEBPVP8 '],
    ['image/avif', '\0\0\0\x1cftypavif'],
    ['image/heic', '\0\0\0\x18ftypheic'],
    ['image/heif', '\0\0\0\x18ftypmif1\0\0\0\0mif1heic'],
    ['video/mp4', '\0\0\0\x18ftypisom'],
    ['video/mp4', '\0\0\0\x18ftypmp42'],
    ['video/quicktime', '\0\0\0\x14ftypqt  '],
    ['video/webm', '\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm'],
    ['video/x-matroska', '\x1aE\xdf\xa3\x9fB\x82\x88matroska'],
    ['video/x-msvideo', 'RIFF\0\0\0\0AVI LIST'],
    ['audio/mpeg', 'ID3\x04'],
    ['audio/mpeg', '\xff\xfb\x90\x44'],
    ['audio/wav', 'RIFF\0\0\0\0WAVEfmt '],
    ['audio/ogg', 'OggS\0\x02OpusHead'],
    ['audio/flac', 'fLaC'],
    ['audio/aac', '\xff\xf1\x50\x80'],
    ['audio/mp4', '\0\0\0\x20ftypM4A '],
    ['image/heif', '\0\0\0\x18ftypmsf1\0\0\0\0msf1'],
    ['audio/mp4', '\0\0\0\x20ftypF4A '],
    ['video/3gpp', '\0\0\0\x18ftyp3gp4'],
    ['video/ogg', 'OggS\0\x02\x80theora'],
    // The header says what is inside, and not the data behind it.
    ['video/x-matroska', `\x1aE\xdf\xa3\x9fB\x82\x88matroska${'\0'.repeat(48)}webm`],
    ['audio/ogg', `OggS\0\x02OpusHead${'\0'.repeat(48)}theora`],
  ])('%s', (type, head) => {
    expect(sniffMediaType(latin1(head))).toBe(type);
  });

  it.each([
    '',
    'plain text',
    '<html>',
    // An MPEG frame without a bit rate, without a sample rate, of no version, and of no layer.
    '\xff\xfb\xf0\x44',
    '\xff\xfb\x9c\x44',
    '\xff\xeb\x90\x44',
    '\xff\xe1\x90\x44',
    // Without the eleven bits that begin a frame.
    '\x00\xfb\x90\x44',
    '\xff\x1b\x90\x44',
    'RIFF\0\0\0\0ACON',
    'JUNK\0\0\0\0WEBP',
  ])('no medium: %j', (head) => {
    expect(sniffMediaType(latin1(head))).toBeUndefined();
  });
});

describe('the header tells the width and height of', () => {
  const FRAME = '\0\x0b\x08\x01\x2c\x02\x80';
  it.each([
    ['a PNG', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\x2c'],
    ['a GIF', 'GIF89a\x80\x02\x2c\x01'],
    ['a JPEG behind its other segments', `\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc4\0\x03x\xff\xc2${FRAME}`],
    [
      'a JPEG behind segments below and between those of a frame',
      `\xff\xd8\xff\x10\0\x04ab\xff\xcc\0\x02\xff\xc0${FRAME}`,
    ],
    ['a JPEG of the last kind', `\xff\xd8\xff\xcf${FRAME}`],
    ['a lossy WebP', 'RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\x2c\x01'],
    ['a lossy WebP that is to be scaled', 'RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x42\x2c\x81'],
    ['a lossless WebP', 'RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x4a\0'],
    ['an extended WebP', 'RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x7f\x02\0\x2b\x01\0'],
  ])('%s', (_, head) => {
    expect(imageSize(latin1(`${head}\0\0\0\0`))).toEqual({ width: 640, height: 300 });
  });

  it.each([
    ['', 'no bytes'],
    ['\x89PNG', 'a cut PNG'],
    ['\xff\xd8\xff\xe0\xff\xff', 'a JPEG that goes on'],
    ['\xff\xd8\0\xc0\0\x0b\x08\x01\x2c\x02\x80', 'a JPEG without a marker'],
    [`RIFF\0\0\0\0WEBPVP9 ${'\x01'.repeat(16)}`, 'a WebP of another kind'],
    [`RIFF\0\0\0\0AVI VP8 ${'\x01'.repeat(16)}`, 'a RIFF file that is no WebP'],
    [`JUNK\0\0\0\0WEBPVP8 ${'\x01'.repeat(16)}`, 'a file that is no RIFF'],
    [`xx\xff\xc0${FRAME}`, 'a frame without the beginning of a JPEG'],
    ['text', 'a text'],
  ])('nothing of %j: %s', (head) => {
    expect(imageSize(latin1(head))).toBeUndefined();
  });
});

describe('a name is reduced to a safe one', () => {
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
  ])('%j', (name, type, safe) => {
    expect(safeFileName(name, type)).toBe(safe);
  });
});

it('extensionFor gives the usual extension of a content type, and nothing for an unknown one', () => {
  expect(extensionFor('video/mp4')).toBe('.mp4');
  expect(extensionFor('Image/JPEG; charset=binary')).toBe('.jpg');
  expect(extensionFor('audio/x-wav')).toBe('.wav');
  expect(extensionFor('application/x-unheard-of')).toBe('');
  expect(extensionFor('constructor')).toBe('');
  expect(extensionFor(null)).toBe('');
});
