// Parsing a prompts file: invalid rows, CSV cells, and row keys.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { readRows, rowCheck } from '../../src/cli/batch/rows.js';
import { GenClient } from '../../src/index.js';
import { failure } from '../files/support.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gen-rows-'));
  return () => rmSync(folder, { recursive: true, force: true });
});

const read = (text: string | Uint8Array, name = 'rows.jsonl') =>
  readRows(
    { path: join(folder, name), name, bytes: Buffer.from(text) },
    rowCheck((options) => new GenClient({ baseUrl: 'https://service.test', ...options })),
  );
const readAll = (...rows: readonly object[]) => read(rows.map((row) => JSON.stringify(row)).join('\n'));
/** Returns a file's error without the file's path. */
const parseError = async (text: string | Uint8Array, name?: string) => {
  const error = await failure(read(text, name));
  expect(error.name).toBe('UsageError');
  return error.message.replaceAll(`${folder}/`, '');
};

const BAD_ID = 'id must be 1 to 100 letters, digits, "-", "_", and "." that can name a file on any system.';
const NO_CALL = 'does not exist. Use one of images, videos, videoEdits, characters.';
const BAD_KEY = 'idempotency_key must be a string of 1 to 255 printable ASCII characters';
const NO_URL = 'is a URL. Pass it in the field for URLs.';
const NO_FILE = 'Pass a file path, a URL, or an upload ID. Paths are relative to the prompts file.';

/** Returns test cases with an invalid row for each value of the field. */
const rowsWith = (field: string, values: readonly unknown[], problem: string) =>
  values.map((value): [unknown, string] => [{ prompt: 'a', [field]: value }, problem]);

describe('an invalid row', () => {
  it.each<[unknown, string]>([
    ...rowsWith('id', [7, '', '.a', 'a b', 'a/b', 'NUL', 'com1.x', 'x'.repeat(101)], BAD_ID),
    ...rowsWith('label', ['', 7, null], 'label must be a non-empty string.'),
    ...rowsWith('call', ['songs', 'constructor', 7], NO_CALL),
    ...rowsWith('idempotency_key', [4711, null, ''], BAD_KEY),
    ...rowsWith('first_frame_upload_id', ['HTTPS://x.test/a.png'], `"HTTPS://x.test/a.png" ${NO_URL}`),
    ...rowsWith('first_frame_upload_id', ['shots/none'], `"shots/none" does not exist. ${NO_FILE}`),
    ...rowsWith('first_frame_upload_id', ['shots\\none'], 'does not exist'),
    ...rowsWith('first_frame_upload_id', ['./'], '"./" is not a file'),
    [{ call: 'vidoes', prompt: 'a' }, 'call "vidoes" does not exist. Did you mean "videos"?'],
    [{ params: { prompt: 'a' }, lable: 'x' }, 'a row has no field "lable". Did you mean "label"?'],
    [{ params: { idempotency_key: 4711, prompt: 'a' } }, BAD_KEY],
    [{ params: ['a fox'] }, 'params must be a JSON object.'],
    [7, 'not a JSON object'],
    [{ prompt: 'a', reference_image_upload_ids: ['upload_1', 'http://x.test/a.png'] }, NO_URL],
    [{ prompt: 'a', reference_image_upload_ids: ['none.png'] }, '"none.png" does not exist'],
    [{ prompt: 'a', n: 4 }, 'videos.create: Unknown parameter "n". Create one job for each output.'],
    [{ prompt: 'a', extraBody: { duration: 4 } }, 'duration: is a documented field. Pass it'],
    [{ prompt: 'a', extraBody: 4 }, 'extraBody must be a JSON object.'],
  ])('that is %j: %s', async (row, message) => {
    const actual = await parseError(`\n${JSON.stringify(row)}\n`);
    expect(actual).toContain('rows.jsonl: line 2: ');
    expect(actual).toContain(message);
  });

  it('with a duplicate ID (in any case) or key is reported with both lines, along with all other errors', async () => {
    const key = { idempotency_key: 'order-1' };
    const rows = [{ id: 'fox', ...key }, { id: 'owl' }, { id: 'FOX' }, { id: 'fox' }, {}, key];
    const lines = rows.map((row) => JSON.stringify({ ...row, prompt: 'a' }));
    expect((await parseError([...lines, 'null'].join('\n'))).split('; ')).toEqual([
      'rows.jsonl: line 7: not a JSON object',
      'line 3: id "fox" is already on line 1',
      'line 4: id "fox" is already on line 1',
      'line 6: idempotency_key "order-1" is already on line 1',
    ]);
  });

  it('is listed if it is one of the first twenty, and the others are counted', async () => {
    const message = await parseError('7\n'.repeat(23));
    expect(message.split('; ')).toHaveLength(21);
    expect(message).toMatch(/line 20: not a JSON object; and 3 more$/);
  });
});

describe('an invalid prompts file', () => {
  it.each<[string, string | Uint8Array, string, string]>([
    ['that is blank', ' \n\n', 'rows.jsonl', 'rows.jsonl is empty. Write one JSON object per line'],
    ['that is empty', '', 'rows.csv', 'rows.csv is empty.'],
    ['that is not JSON', '{"prompt":', 'rows.jsonl', 'line 1: not JSON: '],
    ['that is not CSV', 'prompt,id\na\n', 'rows.csv', 'rows.csv: not CSV: '],
    [
      'that is not UTF-8',
      Buffer.from('{"prompt":"\xfcber"}', 'latin1'),
      'rows.jsonl',
      'is not UTF-8. Save it as UTF-8.',
    ],
    ['with a duplicate column', 'prompt,prompt\na,b\n', 'rows.csv', 'the column "prompt" appears twice.'],
    [
      'with a column in another case',
      'Duration,prompt\n5,a\n',
      'rows.csv',
      'line 2: videos.create: Unknown parameter "Duration". Did you mean "duration"?',
    ],
    ['with a column of two words', 'aspect ratio,prompt\n1:1,a\n', 'rows.csv', 'Did you mean "aspect_ratio"?'],
  ])('%s: %j in %s', async (_, text, name, message) => {
    expect(await parseError(text, name)).toContain(message);
  });
});

const IMAGE = { call: 'images', params: { prompt: 'a' } };

describe('a row', () => {
  it.each<[object, object]>([
    [{ prompt: 'a' }, { call: 'videos', params: { prompt: 'a' } }],
    [{ call: 'images', prompt: 'a' }, IMAGE],
    [IMAGE, IMAGE],
    [
      { id: 'a-B_1.c', label: 'ann', prompt: 'http://x.test/a.png', first_frame_upload_id: 'upload_1' },
      { id: 'a-B_1.c', label: 'ann', params: { prompt: 'http://x.test/a.png', first_frame_upload_id: 'upload_1' } },
    ],
    [
      { prompt: 'a', extraBody: { shiny: 1 } },
      { params: { prompt: 'a' }, extraBody: { shiny: 1 } },
    ],
  ])('%j is parsed as %j', async (row, expected) => {
    expect(await readAll(row)).toMatchObject([{ line: 1, key: expect.any(String), ...expected }]);
  });

  it('can follow a byte order mark, blank lines, and carriage returns, and has a line number', async () => {
    const rows = await read('\uFEFF{"prompt":"a"}\r\n\r\n  {"prompt":"b"}  \r\n');
    expect(rows.map(({ line, params }) => [line, params.prompt])).toEqual([
      [1, 'a'],
      [3, 'b'],
    ]);
  });

  it("shares a file's source with all rows that use it, under any path", async () => {
    for (const name of ['fox.png', 'owl']) writeFileSync(join(folder, name), png('00'));
    const rows = await readAll(
      { prompt: 'a', first_frame_upload_id: 'fox.png' },
      { prompt: 'b', first_frame_upload_id: './shots/../fox.png' },
      { prompt: 'c', first_frame_upload_id: 'owl' },
    );
    const [fox, sameFox, owl] = rows.map(({ params }) => params.first_frame_upload_id);
    expect([typeof fox, sameFox === fox, typeof owl, owl === fox]).toEqual(['object', true, 'object', false]);
  });
});

const png = (last: string) => Buffer.from(`89504e470d0a1a0a0000000d494844520000020000000200080600${last}`, 'hex');

describe('a CSV cell', () => {
  it.each<[string, string, unknown]>([
    ['duration', ' 5 ', 5],
    ['seed', '-12', -12],
    ['generate_audio', ' false', false],
    ['watermark', 'TRUE', true],
    ['safety_identifier', '20261123', '20261123'],
    ['safety_identifier', '["a"]', '["a"]'],
    ['first_frame_upload_id', '4711', '4711'],
    ['character_ids', '12; 13', ['12', '13']],
    ['character_ids', '["a;b"]', ['a;b']],
    ['referenceVideoUrls', 'https://x.test/a.mp4', ['https://x.test/a.mp4']],
    ['content', '[{"type":"text","text":"b"}]', [{ type: 'text', text: 'b' }]],
    ['reference_image_urls', 'https://x.test/a ; https://x.test/b', ['https://x.test/a', 'https://x.test/b']],
    [
      'reference_image_urls',
      'https://x.test/a;b.png; https://x.test/c',
      ['https://x.test/a;b.png', 'https://x.test/c'],
    ],
  ])('in %s with "%s" is %j', async (name, cell, value) => {
    const quoted = `"${cell.replaceAll('"', '""')}"`;
    const [row] = await read(` ${name} ,prompt\n${quoted},a\n`, 'rows.CSV');
    expect(row?.params).toEqual({ prompt: 'a', [name]: value });
  });

  it.each([
    ['duration', 'five', '"five" must be a number of up to 15 digits'],
    ['seed', '12345678901234567890', 'must be a number of up to 15 digits'],
    ['watermark', 'yes', '"yes" must be true or false.'],
    ['references', 'https://x.test/a', 'not JSON: '],
    ['references', '"[1"', 'not JSON: '],
  ])('in %s with "%s" is rejected with its line and column', async (name, cell, problem) => {
    const message = await parseError(`prompt,${name}\na,\nb,${cell}\n`, 'rows.csv');
    expect(message).toContain(`rows.csv: line 3: ${name}: `);
    expect(message).toContain(problem);
  });

  it('is always a string in prompt, id, and label, and is ignored if empty', async () => {
    const text = 'prompt,id,label,duration,,call,extraBody\n007,12,3,,x,,\n"[slow]",true,{,4,,videos,"{""shiny"":1}"\n';
    const rows = await read(text, 'rows.csv');
    expect(rows.map(({ key, content, hasOwnKey, ...row }) => row)).toEqual([
      { line: 2, id: '12', label: '3', call: 'videos', params: { prompt: '007' } },
      {
        ...{ line: 3, id: 'true', label: '{', call: 'videos' },
        ...{ params: { prompt: '[slow]', duration: 4 }, extraBody: { shiny: 1 } },
      },
    ]);
  });

  it("can contain commas, quotes, and line breaks, and a blank line isn't a row", async () => {
    const rows = await read('prompt,id\n"a ""red"", fox\nat dawn",one\n\nb,two\n', 'rows.csv');
    expect(rows.map(({ id, params }) => [id, params.prompt])).toEqual([
      ['one', 'a "red", fox\nat dawn'],
      ['two', 'b'],
    ]);
  });
});

describe("a row's idempotency key", () => {
  const keys = async (rows: readonly object[], name = 'rows.jsonl') =>
    (await read(rows.map((row) => JSON.stringify(row)).join('\n'), name)).map(({ key }) => key);
  const fox = { id: 'fox', prompt: 'a', duration: 4 };

  it("is the same in every run, whatever the row's position and field order", async () => {
    const [key = ''] = await keys([fox]);
    expect(key).toMatch(/^batch-rows\.jsonl-/);
    expect(await keys([{ prompt: 'b' }, { duration: 4, id: 'fox', prompt: 'a' }])).toContain(key);
    const params = { duration: 4, prompt: 'a' };
    expect(await keys([{ params, call: 'videos', id: 'fox', label: 'ann' }])).toEqual([key]);
    const nested = (field: object) => keys([{ prompt: 'a', content: [{ type: 'text', ...field }] }]);
    expect(await nested({ text: 'b', role: 'x' })).toEqual(await nested({ role: 'x', text: 'b' }));
  });

  it("changes with the file's name, the call, the ID, the params, and the number of equal rows", async () => {
    const plain = { prompt: 'a' };
    const allKeys = [
      await keys([plain, plain, plain]),
      await keys([plain], 'other.jsonl'),
      await keys([{ ...plain, call: 'images' }]),
      await keys([{ ...plain, id: 'fox' }]),
      await keys([{ prompt: 'b' }]),
    ].flat();
    expect(new Set(allKeys).size).toBe(7);
    expect(await keys([plain])).toEqual(allKeys.slice(0, 1));
  });

  it("changes with an uploaded file's content, not with its name", async () => {
    const keyOf = async (name: string, last: string) => {
      writeFileSync(join(folder, name), png(last));
      return (await keys([{ prompt: 'a', first_frame_upload_id: name }]))[0];
    };
    const key = await keyOf('fox.png', '00');
    expect(await keyOf('owl.png', '00')).toBe(key);
    expect(await keyOf('fox.png', '01')).not.toBe(key);
  });

  it("can be set in the row, and isn't sent as a param", async () => {
    const [row] = await readAll({ prompt: 'a', idempotency_key: 'order-1' });
    expect(row).toMatchObject({ key: 'order-1' });
    expect(row?.params).toEqual({ prompt: 'a' });
  });
});
