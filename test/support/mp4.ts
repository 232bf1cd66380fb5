/** One box of an MP4 file. */
export interface Box {
  readonly type: string;
  readonly start: number;
  readonly body: Uint8Array;
  readonly children: readonly Box[];
}

const CONTAINERS = new Set(['moov', 'trak', 'mdia', 'minf', 'dinf', 'stbl']);

/** The boxes of a file, strictly: sizes must add up to the last byte. */
function parseBoxes(bytes: Uint8Array, start = 0): Box[] {
  const boxes: Box[] = [];
  let at = 0;
  while (at < bytes.length) {
    const size = u32(bytes, at);
    const type = new TextDecoder().decode(bytes.subarray(at + 4, at + 8));
    if (size < 8 || at + size > bytes.length) throw new Error(`box ${type} at ${start + at} claims ${size} bytes`);
    const body = bytes.subarray(at + 8, at + size);
    const children = CONTAINERS.has(type) ? parseBoxes(body, start + at + 8) : [];
    boxes.push({ type, start: start + at, body, children });
    at += size;
  }
  return boxes;
}

/** The box at a path such as `moov/trak/tkhd`. */
function findBox(boxes: readonly Box[], path: string): Box {
  const [type, ...rest] = path.split('/');
  const box = boxes.find((candidate) => candidate.type === type);
  if (!box) throw new Error(`no box ${type}`);
  return rest.length === 0 ? box : findBox(box.children, rest.join('/'));
}

/** A big-endian number. */
export function u32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at);
}

/** What a file says of itself: size, length, samples and where they lie. */
export function describeMp4(bytes: Uint8Array) {
  const boxes = parseBoxes(bytes);
  const track = findBox(boxes, 'moov/trak/tkhd').body;
  const media = findBox(boxes, 'moov/trak/mdia/mdhd').body;
  const table = findBox(boxes, 'moov/trak/mdia/minf/stbl').children;
  const sizes = findBox(table, 'stsz').body;
  const count = u32(sizes, 8);
  const entry = findBox(table, 'stsd').body;
  const config = entry.subarray(indexOf(entry, 'avcC') + 4);
  const mdat = findBox(boxes, 'mdat');
  const size = u32(sizes, 4);
  const places = findBox(table, 'stco').body;
  const at = Array.from({ length: count }, (_, index) => u32(places, 8 + 4 * index));
  const samples = at.map((place) => bytes.subarray(place, place + size));
  const start = mdat.start + 8;
  return {
    order: boxes.map((box) => box.type),
    width: u32(track, 76) / 0x10000,
    height: u32(track, 80) / 0x10000,
    seconds: u32(media, 16) / u32(media, 12),
    config,
    samples,
    fillsMdat: at.every((place, index) => place === start + (index % 2) * size) && mdat.body.length === 2 * size,
  };
}

function indexOf(bytes: Uint8Array, text: string): number {
  const found = String.fromCharCode(...bytes).indexOf(text);
  if (found < 0) throw new Error(`no ${text}`);
  return found;
}
