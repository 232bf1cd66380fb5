// A file's type from its first bytes and its label, and the type that an upload sends. Sources: `file-type` is that package's
// test suite, `ftyps` the registry of MP4 brands, `own` is this project, and the rest are public threads, standards, or devices' files.

/** One file. `bytes` is the type from its bytes alone, `sent` the one with its label. Undefined if unknown. */
export interface FileRow {
  readonly what: string;
  readonly source: string;
  /** First bytes, in Latin-1. */
  readonly head: string;
  readonly bytes: string | undefined;
  readonly type?: string;
  readonly name?: string;
  readonly sent: string | undefined;
}

const row = (
  what: string,
  source: string,
  head: string,
  bytes: string | undefined,
  label: { readonly type?: string; readonly name?: string } = {},
  sent: string | undefined = bytes,
): FileRow => ({ what, source, head, bytes, ...label, sent });

const size = (bytes: number) => String.fromCharCode(0, 0, bytes >> 8, bytes & 255);
const ftyp = (...brands: string[]) =>
  `${size(16 + 4 * brands.length - 4)}ftyp${brands[0]}\0\0\0\0${brands.slice(1).join('')}`;
const ebml = (docType: string, rest = '') =>
  `\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\x82${String.fromCharCode(0x80 + docType.length)}${docType}${rest}`;
const track = (codec: string) => `\xae\x9f\xd7\x81\x01\x86${String.fromCharCode(0x80 + codec.length)}${codec}`;
const CLUSTER = '\x1fC\xb6u\x01\xff\xff\xff\xff\xff\xff\xff';
const ogg = (packet: string) => `OggS\0\x02${'\0'.repeat(20)}\x01\x1e${packet}`;
const asf = (...streams: string[]) =>
  `0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa\0b\xcel${'\0'.repeat(14)}${streams.join('\0'.repeat(20))}`;
const ASF_AUDIO = '@\x9ei\xf8M[\xcf\x11\xa8\xfd\0\x80_\\D+';
const ASF_VIDEO = '\xc0\xef\x19\xbcM[\xcf\x11\xa8\xfd\0\x80_\\D+';
const id3 = (tagBytes: number, audio: string) =>
  `ID3\x04\0\0\0\0${String.fromCharCode(tagBytes >> 7, tagBytes & 127)}${'\0'.repeat(tagBytes)}${audio}`;
const wide = (text: string) => `\xff\xfe${Array.from(text, (char) => `${char}\0`).join('')}`;

export const FILES: readonly FileRow[] = [
  // Images.
  row('PNG', 'file-type', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'image/png'),
  row('PNG without a label', 'WHATWG', '\x89PNG\r\n\x1a\n', 'image/png', { type: 'application/octet-stream' }),
  row('JPEG', 'file-type', '\xff\xd8\xff\xe0\0\x10JFIF\0', 'image/jpeg'),
  row('JPEG as image/jpg', 'comic-translate#399', '\xff\xd8\xff\xe1', 'image/jpeg', {
    type: 'image/jpg',
    name: 'a.jpg',
  }),
  row('JPEG in a .png', 'waha#2213', '\xff\xd8\xff\xdb', 'image/jpeg', { name: 'a.png' }),
  row('GIF', 'file-type', 'GIF89a', 'image/gif'),
  row('WebP', 'file-type', 'RIFF\x80\x0f\0\0WEBPVP8 ', 'image/webp'),
  row('WebP as image/png', 'palmier-pro#27', 'RIFF\x80\x0f\0\0WEBPVP8L', 'image/webp', {
    type: 'image/png',
    name: 'a.png',
  }),
  row('AVIF', 'file-type', ftyp('avif', 'avif', 'mif1', 'miaf'), 'image/avif'),
  row('AVIF sequence', 'file-type', ftyp('avis', 'avis', 'msf1'), 'image/avif'),
  row('AVIF with the brand of HEIF', 'libavif', ftyp('mif1', 'mif1', 'avif', 'miaf'), 'image/avif'),
  row('HEIC from an iPhone', 'paseo#700', ftyp('heic', 'mif1', 'MiHE', 'miaf', 'heic'), 'image/heic', {
    name: 'IMG_0001.png',
  }),
  row('HEIC, 10 bit', 'nokiatech/heif', ftyp('heix', 'mif1', 'heix'), 'image/heic'),
  row('HEIC sequence', 'nokiatech/heif', ftyp('hevc', 'msf1', 'hevc'), 'image/heic'),
  row('HEIF', 'file-type', ftyp('mif1', 'mif1', 'heic'), 'image/heif', { name: 'a.heic' }),
  row('HEIF sequence', 'file-type', ftyp('msf1', 'msf1', 'hevc'), 'image/heif'),
  row('Canon CR3', 'file-type', ftyp('crx ', 'crx ', 'isom'), 'image/x-canon-cr3', { name: 'IMG_1.CR3' }),
  row('Canon CR2', 'file-type', 'II*\0\x10\0\0\0CR\x02\0', 'image/x-canon-cr2'),
  row('TIFF, little endian', 'file-type', 'II*\0\x08\0\0\0', 'image/tiff'),
  row('TIFF, big endian', 'file-type', 'MM\0*\0\0\0\x08', 'image/tiff', { type: 'image/png' }),
  row(
    'DNG, a kind of TIFF',
    'Adobe DNG',
    'II*\0\x08\0\0\0',
    'image/tiff',
    { type: 'image/x-adobe-dng' },
    'image/x-adobe-dng',
  ),
  row('BMP', 'file-type', 'BM\x38\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0', 'image/bmp'),
  row('text that starts with BM', 'WHATWG', 'BMW makes cars, and not pictures', undefined),
  row('JPEG XL', 'file-type', '\0\0\0\x0cJXL \r\n\x87\n', 'image/jxl'),
  row('JPEG 2000', 'file-type', '\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 ', 'image/jp2'),
  row('Photoshop', 'file-type', '8BPS\0\x01\0\0', 'image/vnd.adobe.photoshop', { name: 'a.jpg' }),
  row('SVG', 'WHATWG', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml'),
  row('SVG after a prolog', 'file-type', '<?xml version="1.0"?>\n<!-- a -->\n<svg ', 'image/svg+xml', {
    name: 'a.svg',
  }),

  // ISO media. If a brand can contain video or audio, the label decides.
  ...[
    'isom',
    'iso2',
    'iso6',
    'mp41',
    'mp42',
    'avc1',
    'dash',
    'M4V ',
    'M4VH',
    'f4v ',
    'F4P ',
    'MSNV',
    'XAVC',
    'cmfc',
  ].map((brand) => row(`MP4 with the brand ${brand}`, 'ftyps', ftyp(brand, 'isom'), 'video/mp4')),
  row('MP4 without a label', 'neurolink#1679', ftyp('mp42', 'mp42', 'isom'), 'video/mp4', {
    type: 'binary/octet-stream',
  }),
  row('MP4 with an unknown and a known brand', 'ftyps', ftyp('FACE', 'mp42'), 'video/mp4'),
  row('ISO media with unknown brands', 'ISO 14496-12', ftyp('zzzz', 'yyyy'), undefined),
  row(
    'ISO media with unknown brands in a .mp4',
    'ISO 14496-12',
    ftyp('zzzz'),
    undefined,
    { name: 'a.mp4' },
    'video/mp4',
  ),
  row('audio in an MP4, by its name', 'ffmpeg', ftyp('isom', 'iso2'), 'video/mp4', { name: 'song.m4a' }, 'audio/mp4'),
  row('audio in an MP4, by its type', 'ffmpeg', ftyp('mp42'), 'video/mp4', { type: 'audio/x-m4a' }, 'audio/mp4'),
  row('audio, by its brand', 'file-type', ftyp('M4A ', 'M4A ', 'mp42'), 'audio/mp4', { type: 'video/mp4' }),
  row('audiobook', 'file-type', ftyp('M4B ', 'M4A '), 'audio/mp4'),
  row('F4A', 'file-type', ftyp('F4A '), 'audio/mp4'),
  row('F4B', 'file-type', ftyp('F4B '), 'audio/mp4'),
  row('3GP', 'file-type', ftyp('3gp5', 'isom'), 'video/3gpp'),
  row('audio in a 3GP', 'Android recorder', ftyp('3gp4'), 'video/3gpp', { type: 'audio/3gpp' }, 'audio/3gpp'),
  row('3G2', 'file-type', ftyp('3g2a'), 'video/3gpp2'),
  row('QuickTime', 'file-type', ftyp('qt  ', 'qt  '), 'video/quicktime', { name: 'a.mp4' }),
  row('QuickTime without ftyp: moov first', 'file-type', '\0\0\x10\0moov\0\0\0lmvhd', 'video/quicktime'),
  row('QuickTime without ftyp: media data first', 'file-type', '\x01\x20\0\0mdat', 'video/quicktime'),
  row('QuickTime without ftyp: wide', 'QTFF', '\0\0\0\x08wide\0\0\0\0mdat', 'video/quicktime'),
  row('an MP4 segment', 'CMAF', `${size(24)}stypmsdh\0\0\0\0msdhmsix`, 'video/mp4'),
  row('text with a box name', 'own', 'The free lunch', undefined),

  // Matroska and WebM.
  row('WebM', 'file-type', ebml('webm', track('V_VP9') + track('A_OPUS') + CLUSTER), 'video/webm'),
  row('WebM from a microphone', 'MediaRecorder', ebml('webm', track('A_OPUS') + CLUSTER), 'audio/webm', {
    type: 'video/webm',
  }),
  row('WebM with truncated tracks', 'own', ebml('webm', track('A_VORBIS')), 'video/webm'),
  row(
    'the same as audio/webm',
    'own',
    ebml('webm', track('A_VORBIS')),
    'video/webm',
    { type: 'audio/webm' },
    'audio/webm',
  ),
  row('Matroska', 'file-type', ebml('matroska', track('V_MPEG4/ISO/AVC') + CLUSTER), 'video/x-matroska'),
  row('Matroska audio', 'file-type', ebml('matroska', track('A_FLAC') + CLUSTER), 'audio/x-matroska', {
    name: 'a.mka',
  }),

  // Ogg.
  row('Opus', 'file-type', ogg('OpusHead'), 'audio/ogg'),
  row('Vorbis', 'file-type', ogg('\x01vorbis'), 'audio/ogg'),
  row('Speex', 'file-type', ogg('Speex   1.2'), 'audio/ogg'),
  row('FLAC in Ogg', 'file-type', ogg('\x7fFLAC\x01'), 'audio/ogg', { name: 'a.ogv' }),
  row('Theora', 'file-type', ogg('\x80theora\x03'), 'video/ogg'),
  row('Theora after Vorbis', 'Xiph', ogg('\x01vorbis') + ogg('\x80theora'), 'video/ogg'),
  row('OGM', 'file-type', ogg('\x01video\0\0\0'), 'video/ogg', { name: 'a.ogg' }),

  // Audio.
  row('FLAC', 'file-type', 'fLaC\0\0\0\x22', 'audio/flac'),
  row('MP3 with a tag', 'file-type', id3(10, '\xff\xfb\x90\x44'), 'audio/mpeg'),
  row('MP3 whose picture precedes its audio', 'ID3', id3(4_000, '').slice(0, 2_000), 'audio/mpeg'),
  row('FLAC after a tag', 'file-type', id3(30, 'fLaC\0\0\0\x22'), 'audio/flac'),
  row('AAC after a tag', 'file-type', id3(30, '\xff\xf1\x50\x80'), 'audio/aac'),
  row('FLAC after a picture', 'ID3', id3(4_000, '').slice(0, 2_000), 'audio/mpeg', { name: 'a.flac' }, 'audio/flac'),
  row('MP3', 'file-type', '\xff\xfb\x90\x44', 'audio/mpeg'),
  row('MP3, version 2.5', 'file-type', '\xff\xe3\x18\xc4', 'audio/mpeg'),
  row('MP2', 'file-type', '\xff\xfd\x84\x04', 'audio/mpeg'),
  row('AAC', 'file-type', '\xff\xf9\x50\x80', 'audio/aac'),
  row('AAC, ADIF', 'ISO 13818-7', 'ADIF', 'audio/aac'),
  row('WAV', 'file-type', 'RIFF\x24\0\0\0WAVEfmt ', 'audio/wav', { type: 'audio/x-wav' }),
  row('WAV over 4 GB', 'EBU 3306', 'RF64\xff\xff\xff\xffWAVEds64', 'audio/wav'),
  row('BW64', 'ITU BS.2088', 'BW64\xff\xff\xff\xffWAVEds64', 'audio/wav'),
  row('AIFF', 'file-type', 'FORM\0\0\0\x2eAIFFCOMM', 'audio/aiff'),
  row('AIFF-C', 'file-type', 'FORM\0\0\0\x2eAIFCFVER', 'audio/aiff'),
  row('AC-3', 'file-type', '\x0bw\x1c\xd2\x14\x40', 'audio/ac3'),
  row('E-AC-3', 'ETSI TS 102 366', '\x0bw\x02\xff\x34\x87', 'audio/eac3'),
  row('WMA', 'file-type', asf(ASF_AUDIO), 'audio/x-ms-wma'),

  // Other video.
  row('AVI', 'file-type', 'RIFF\0\0\0\0AVI LIST', 'video/x-msvideo', { name: 'a.mp4' }),
  row('MPEG program stream', 'file-type', '\0\0\x01\xba\x44\0', 'video/mpeg'),
  row('MPEG-1 video', 'file-type', '\0\0\x01\xb3\x16\0', 'video/mpeg'),
  row('transport stream', 'file-type', `G\x40\0\x10${'\xff'.repeat(184)}`.repeat(3), 'video/mp2t', { name: 'a.ts' }),
  row(
    'transport stream from a camera',
    'file-type',
    `\0\0\0\0G\x40\0\x10${'\xff'.repeat(184)}`.repeat(3),
    'video/mp2t',
  ),
  row('text that starts with G', 'own', 'G'.padEnd(400, '.'), undefined, { name: 'a.ts' }, 'video/mp2t'),
  row('FLV', 'file-type', 'FLV\x01\x05\0\0\0\x09', 'video/x-flv'),
  row('WMV', 'file-type', asf(ASF_AUDIO, ASF_VIDEO), 'video/x-ms-wmv', { type: 'video/x-ms-asf' }),

  // Pages and documents.
  row('page', 'WHATWG', '<!DOCTYPE html><html><body>Sign in', 'text/html', { type: 'text/plain', name: 'film.mp4' }),
  row('page after a byte order mark', 'WHATWG', '\xef\xbb\xbf\r\n <HTML lang="en">', 'text/html'),
  row('page after a comment', 'WHATWG', '<!-- saved from url --><html>', 'text/html'),
  row('page as XHTML', 'W3C', '<?xml version="1.0"?><!DOCTYPE html PUBLIC "x"><html xmlns="y">', 'text/html'),
  row('page in UTF-16', 'unifi-protect#515', wide('<!doctype html><title>'), 'text/html', { type: 'video/mp4' }),
  row('HTML fragment', 'WHATWG', '<script>location="/login"</script>', 'text/html'),
  row('S3 error', 'S3', '<Error><Code>AccessDenied</Code></Error>', 'application/xml', { type: 'video/mp4' }),
  row('XML', 'WHATWG', '<?xml version="1.0"?><Error/>', 'application/xml'),
  row('JSON', 'RFC 8259', '{"success":false}', 'application/json', { type: 'video/mp4' }),
  row('multi-line JSON', 'RFC 8259', '{\n  "error": "x"\n}', 'application/json'),
  row('JSON array', 'RFC 8259', '[{"a":1}]', 'application/json'),
  row('PDF', 'file-type', '%PDF-1.7\n', 'application/pdf', { name: 'a.png' }),
  row('ZIP', 'file-type', 'PK\x03\x04\x14\0', 'application/zip'),
  row('gzip', 'file-type', '\x1f\x8b\x08\0', 'application/gzip'),

  // Unrecognized bytes: the label decides, or the call rejects.
  row('no bytes', 'own', '', undefined, { type: 'video/mp4' }, 'video/mp4'),
  row('text', 'file-type', 'hello world, this is a text', undefined),
  row('text in UTF-16', 'file-type', wide('hello world, this is a text'), undefined),
  row('text in UTF-16, big endian', 'file-type', '\xfe\xff\0h\0i', undefined),
  row('registry file', 'file-type', wide('Windows Registry Editor'), undefined),
  row('MPEG layer I, which is obsolete', 'file-type', '\xff\xff\x10\xc4', undefined),
  row('MPEG frame without a bit rate', 'ISO 11172-3', '\xff\xfb\xf0\x44', undefined),
  row('MPEG frame without a sample rate', 'ISO 11172-3', '\xff\xfb\x9c\x44', undefined),
  row('MPEG frame with an invalid version', 'ISO 11172-3', '\xff\xeb\x90\x44', undefined),
  row('RIFF cursor', 'RFC 2361', 'RIFF\0\0\0\0ACON', undefined, { name: 'a.webp' }, 'image/webp'),
  row('IFF image', 'EA IFF 85', 'FORM\0\0\0\0ILBM', undefined),
  row('raw frame in a .m4a', 'own', '\x01\x02\x03', undefined, { name: 'a.m4a' }, 'audio/mp4'),
  ...[
    ['flv', 'video/x-flv'],
    ['wmv', 'video/x-ms-wmv'],
    ['wma', 'audio/x-ms-wma'],
    ['ac3', 'audio/ac3'],
    ['ts', 'video/mp2t'],
  ].map(([extension, type]) =>
    row(`.${extension}, by its name`, 'FS8', '\x01\x02\x03', undefined, { name: `a.${extension}` }, type),
  ),
];
