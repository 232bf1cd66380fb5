// What is read from a prompts file: each refusal of a row with its whole message, the cells of CSV, and the keys of rows.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { readRows } from '../../src/cli/batch/rows.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gen-rows-'));
  return () => rmSync(folder, { recursive: true, force: true });
});

const read = (text: string, name = 'rows.jsonl', run = '') => {
  const path = join(folder, name);
  return readRows({ path, name, bytes: Buffer.from(text) }, run);
};
const readAll = (...rows: readonly object[]) => read(rows.map((row) => JSON.stringify(row)).join('\n'));
/** What is told of a file, without the path of the file. */
const refusal = async (text: string, name?: string) => {
  const error: Error = await read(text, name).then(
    () => expect.fail('was read'),
    (reason) => reason,
  );
  expect(error.name).toBe('UsageError');
  return error.message.replaceAll(`${folder}/`, '');
};
const badKey = (given: string) =>
  `idempotency_key must be a string of 1 to 255 printable ASCII characters, not ${given}. idempotencyKeyFrom() makes one from your own ids.`;
const BAD_ID = 'id must be 1 to 100 letters, digits, "-", "_" and "." that can name a file.';

describe('a row is refused', () => {
  it.each<[unknown, string]>([
    [{ id: 7, prompt: 'a' }, BAD_ID],
    [{ id: '', prompt: 'a' }, BAD_ID],
    [{ id: '.a', prompt: 'a' }, BAD_ID],
    [{ id: 'a b', prompt: 'a' }, BAD_ID],
    [{ id: 'a/b', prompt: 'a' }, BAD_ID],
    [{ id: 'x'.repeat(101), prompt: 'a' }, BAD_ID],
    [{ id: 'NUL', prompt: 'a' }, 'id "NUL" is the name of a device on Windows. Give the row another id.'],
    [{ id: 'com1.a', prompt: 'a' }, 'id "com1.a" is the name of a device on Windows. Give the row another id.'],
    [{ label: '', prompt: 'a' }, 'label must be a non-empty text.'],
    [{ label: 7, prompt: 'a' }, 'label must be a non-empty text.'],
    [{ label: null, prompt: 'a' }, 'label must be a non-empty text.'],
    [{ call: 'songs', prompt: 'a' }, 'call "songs" does not exist. Use one of images, videos, videoEdits, characters.'],
    [
      { call: 'constructor', prompt: 'a' },
      'call "constructor" does not exist. Use one of images, videos, videoEdits, characters.',
    ],
    [{ call: 7, prompt: 'a' }, 'call "7" does not exist. Use one of images, videos, videoEdits, characters.'],
    [{ call: 'vidoes', prompt: 'a' }, 'call "vidoes" does not exist. Did you mean "videos"?'],
    [{ params: { prompt: 'a' }, lable: 'x' }, 'a row has no field "lable". Did you mean "label"?'],
    [{ params: { prompt: 'a' }, parms: 1 }, 'a row has no field "parms". Did you mean "params"?'],
    [{ params: { prompt: 'a' }, cal: 1 }, 'a row has no field "cal". Did you mean "call"?'],
    [{ idempotency_key: 4711, prompt: 'a' }, badKey('4711')],
    [{ idempotency_key: null, prompt: 'a' }, badKey('null')],
    [{ idempotency_key: '', prompt: 'a' }, badKey('""')],
    [{ params: { idempotency_key: 4711, prompt: 'a' } }, badKey('4711')],
    [{ params: 'a fox' }, 'params must be an object'],
    [{ params: ['a fox'] }, 'params must be an object'],
    [7, 'not a JSON object'],
    [null, 'not a JSON object'],
    [
      { prompt: 'a', first_frame_upload_id: 'HTTPS://x.test/a.png' },
      'first_frame_upload_id takes files and upload ids. URLs go into the field for URLs.',
    ],
    [
      { prompt: 'a', reference_image_upload_ids: ['upload_1', 'http://x.test/a.png'] },
      'reference_image_upload_ids takes files and upload ids. URLs go into the field for URLs.',
    ],
    [
      { prompt: 'a', first_frame_upload_id: 'shots/none' },
      'first_frame_upload_id: "shots/none" is not there. Give a file, a URL or an upload id. Paths are relative to the prompts file.',
    ],
    [
      { prompt: 'a', first_frame_upload_id: 'shots\\none' },
      'first_frame_upload_id: "shots\\none" is not there. Give a file, a URL or an upload id. Paths are relative to the prompts file.',
    ],
    [
      { prompt: 'a', reference_image_upload_ids: ['none.png'] },
      'reference_image_upload_ids: "none.png" is not there. Give a file, a URL or an upload id. Paths are relative to the prompts file.',
    ],
    [
      { prompt: 'a', first_frame_upload_id: './' },
      'first_frame_upload_id: "./" is not a file. Give a file, a URL or an upload id. Paths are relative to the prompts file.',
    ],
  ])('that is %j: %s', async (row, message) => {
    expect(await refusal(`\n${JSON.stringify(row)}\n`)).toBe(`rows.jsonl: line 2: ${message}`);
  });

  it('for an id that is there already in either case, by both lines, beside the other faults', async () => {
    const rows = [{ id: 'fox' }, { id: 'owl' }, { id: 'FOX' }, { id: 'fox' }, {}, {}].map((row) =>
      JSON.stringify({ ...row, prompt: 'a' }),
    );
    expect(await refusal([...rows, 'null'].join('\n'))).toBe(
      'rows.jsonl: line 7: not a JSON object; line 3: id "FOX" is on line 1 already; line 4: id "fox" is on line 1 already',
    );
  });

  it('with twenty others at most, and the rest is counted', async () => {
    const faults = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}: not a JSON object`);
    expect(await refusal('7\n'.repeat(20))).toBe(`rows.jsonl: ${faults(20).join('; ')}`);
    expect(await refusal('7\n'.repeat(23))).toBe(`rows.jsonl: ${faults(20).join('; ')}; and 3 more`);
  });

  it('when it is not JSON, with what the parser says', async () => {
    expect(await refusal('{"prompt":')).toMatch(/^rows\.jsonl: line 1: not JSON: .*JSON/);
    expect(await refusal('prompt,references\na,"[1"\n', 'rows.csv')).toMatch(
      /^rows\.csv: line 2: references: not JSON: .*JSON/,
    );
  });
});

describe('a prompts file is refused', () => {
  it.each(['rows.jsonl', 'rows.csv', 'rows.csv.txt'])('that is empty: %s', async (name) => {
    expect(await refusal(' \n\n'.repeat(name === 'rows.csv' ? 0 : 1), name)).toBe(
      `${name} is empty. Write one JSON object per line, or CSV with a header in a file named .csv.`,
    );
  });

  it('that is not CSV, with the reason and its cause', async () => {
    expect(await refusal('prompt,id\na\n', 'rows.csv')).toMatch(/^rows\.csv: not CSV: .*line 2/);
    await expect(read('prompt\n"a', 'rows.csv')).rejects.toMatchObject({ cause: { code: expect.any(String) } });
  });
});

describe('a column or a field that the call does not document', () => {
  it.each([
    ['Duration,prompt\n5,a\n', 'rows.csv', 'line 2: Duration: the service ignores this name; write duration.'],
    [
      'aspect ratio,prompt\n1:1,a\n',
      'rows.csv',
      'line 2: aspect ratio: the service ignores this name; write aspect_ratio.',
    ],
    ['{"prompt":"a","n":4}\n', 'rows.jsonl', 'line 1: n: videos.create ignores this name; write one create for each'],
    ['prompt,prompt\na,b\n', 'rows.csv', 'the column "prompt" stands twice. Leave one of them out.'],
    [
      'id;prompt\n1;a\n',
      'rows.csv',
      'the header has one column, "id;prompt". Separate columns by commas, not by semicolons.',
    ],
    ['{"prompt":"a","extraBody":{"duration":4}}\n', 'rows.jsonl', 'line 1: duration: is a documented field; pass it'],
    ['{"prompt":"a","extraBody":4}\n', 'rows.jsonl', 'line 1: extraBody must be an object.'],
  ])('%j in %s is refused before the first row', async (text, name, message) => {
    expect(await refusal(text, name)).toContain(message);
  });

  it('is sent where extraBody has it, in JSON and in a column', async () => {
    const extraBody = { shiny: 1 };
    const [row] = await readAll({ prompt: 'a', extraBody });
    expect(row).toMatchObject({ params: { prompt: 'a' }, extraBody });
    const [cell] = await read('prompt,extraBody\na,"{""shiny"":1}"\n', 'rows.csv');
    expect(cell).toMatchObject({ params: { prompt: 'a' }, extraBody });
  });

  it('is not reached where the file is not UTF-8', async () => {
    const bytes = Buffer.from('{"prompt":"\xfcber"}\n', 'latin1');
    const read = readRows({ path: 'latin.jsonl', name: 'latin.jsonl', bytes }, '');
    await expect(read).rejects.toThrow('latin.jsonl is not UTF-8. Save it as UTF-8.');
  });
});

describe('a row is', () => {
  it.each<[object, object]>([
    [{ prompt: 'a' }, { call: 'videos', params: { prompt: 'a' } }],
    [
      { call: 'video', prompt: 'a' },
      { call: 'videos', params: { prompt: 'a' } },
    ],
    [
      { call: 'image', prompt: 'a' },
      { call: 'images', params: { prompt: 'a' } },
    ],
    [
      { call: 'images', params: { prompt: 'a' } },
      { call: 'images', params: { prompt: 'a' } },
    ],
    [
      { id: 'a-B_1.c', label: 'ann', prompt: 'a' },
      { id: 'a-B_1.c', label: 'ann', call: 'videos', params: { prompt: 'a' } },
    ],
    [
      { id: 'x'.repeat(100), prompt: 'a' },
      { id: 'x'.repeat(100), call: 'videos', params: { prompt: 'a' } },
    ],
    [
      { prompt: 'a', first_frame_upload_id: 'upload_1' },
      { call: 'videos', params: { prompt: 'a', first_frame_upload_id: 'upload_1' } },
    ],
    [
      { prompt: 'http://x.test/a.png', first_frame_url: 'https://x.test/a.png' },
      { call: 'videos', params: { prompt: 'http://x.test/a.png', first_frame_url: 'https://x.test/a.png' } },
    ],
  ])('%j: %j', async (given, expected) => {
    expect(await readAll(given)).toEqual([
      { line: 1, id: undefined, label: undefined, key: expect.any(String), ...expected },
    ]);
  });

  it('read after a byte order mark, blank lines and carriage returns, with the number of its line', async () => {
    const rows = await read('\uFEFF{"prompt":"a"}\r\n\r\n  {"prompt":"b"}  \r\n');
    expect(rows.map(({ line, params }) => [line, params.prompt])).toEqual([
      [1, 'a'],
      [3, 'b'],
    ]);
  });

  it('given one source for each file, whichever row names it and however', async () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452000002000000020008060000', 'hex');
    mkdirSync(join(folder, 'shots'));
    writeFileSync(join(folder, 'shots/fox.png'), png);
    writeFileSync(join(folder, 'fox'), png);
    const rows = await readAll(
      { prompt: 'a', first_frame_upload_id: 'shots/fox.png' },
      { prompt: 'b', first_frame_upload_id: './shots/../shots/fox.png' },
      { prompt: 'c', first_frame_upload_id: 'fox' },
    );
    const [one, same, other] = rows.map(({ params }) => params.first_frame_upload_id);
    expect(typeof one).toBe('object');
    expect(same).toBe(one);
    expect(typeof other).toBe('object');
    expect(other).not.toBe(one);
  });
});

describe('a cell of CSV', () => {
  it.each<[string, string, unknown]>([
    ['duration', '5', 5],
    ['duration', ' 5 ', 5],
    ['seed', '-12', -12],
    ['generate_audio', 'true', true],
    ['generate_audio', ' false', false],
    ['generate_audio', 'TRUE', true],
    ['watermark', 'False ', false],
    ['safety_identifier', '20261123', '20261123'],
    ['safety_identifier', '["a"]', '["a"]'],
    ['aspect_ratio', 'true', 'true'],
    ['first_frame_upload_id', '4711', '4711'],
    ['character_ids', '12; 13', ['12', '13']],
    ['character_ids', '["a;b"]', ['a;b']],
    ['reference_images', 'https://x.test/a;https://x.test/b', ['https://x.test/a', 'https://x.test/b']],
    ['referenceVideoUrls', 'https://x.test/a.mp4', ['https://x.test/a.mp4']],
    ['content', '[{"type":"text","text":"b"}]', [{ type: 'text', text: 'b' }]],
    ['reference_image_urls', 'https://x.test/a ; https://x.test/b', ['https://x.test/a', 'https://x.test/b']],
    ['reference_video_upload_ids', 'upload_1', ['upload_1']],
    [
      'reference_image_urls',
      'https://x.test/a;b.png; https://x.test/c',
      ['https://x.test/a;b.png', 'https://x.test/c'],
    ],
  ])('%s with "%s" is %j', async (name, cell, value) => {
    const quoted = `"${cell.replaceAll('"', '""')}"`;
    const [row] = await read(` ${name} ,prompt\n${quoted},a\n`, 'rows.CSV');
    expect(row?.params).toEqual({ prompt: 'a', [name]: value });
  });

  it.each([
    ['duration', 'five', '"five" is not a number of up to 15 digits, such as 5.'],
    ['duration', '5 s', '"5 s" is not a number of up to 15 digits, such as 5.'],
    ['seed', '12345678901234567890', '"12345678901234567890" is not a number of up to 15 digits, such as 5.'],
    ['watermark', 'yes', '"yes" is neither true nor false.'],
    ['references', 'https://x.test/a', '"https://x.test/a" is not a list of objects. Write it in JSON: [{"type":…}].'],
  ])('%s with "%s" is refused with its line and its column', async (name, cell, problem) => {
    expect(await refusal(`prompt,${name}\na,\nb,${cell}\n`, 'rows.csv')).toBe(`rows.csv: line 3: ${name}: ${problem}`);
  });

  it('stays text in prompt, id and label, whatever it looks like, and an empty one is not given', async () => {
    const rows = await read('prompt,id,label,duration,,call\n007,12,3,,x,\n"[slow]",true,{,4,,video\n', 'rows.csv');
    expect(rows.map(({ line, id, label, call, params }) => ({ line, id, label, call, params }))).toEqual([
      { line: 2, id: '12', label: '3', call: 'videos', params: { prompt: '007' } },
      { line: 3, id: 'true', label: '{', call: 'videos', params: { prompt: '[slow]', duration: 4 } },
    ]);
  });

  it('may hold commas, quotes and line breaks; a blank line is no row', async () => {
    const rows = await read('prompt,id\n"a ""red"", fox\nat dawn",one\n\nb,two\n', 'rows.csv');
    expect(rows.map(({ id, params }) => [id, params.prompt])).toEqual([
      ['one', 'a "red", fox\nat dawn'],
      ['two', 'b'],
    ]);
  });
});

describe('the key of a row', () => {
  const keys = async (rows: readonly object[], name = 'rows.jsonl', run = '') =>
    (await read(rows.map((row) => JSON.stringify(row)).join('\n'), name, run)).map(({ key }) => key);
  const fox = { id: 'fox', prompt: 'a', duration: 4 };

  it('is the same in every run, wherever the row stands and in whichever order its fields are', async () => {
    const [key = ''] = await keys([fox]);
    expect(key).toMatch(/^batch-rows\.jsonl-/);
    expect(await keys([{ prompt: 'b' }, { duration: 4, id: 'fox', prompt: 'a' }])).toContain(key);
    expect(await keys([{ params: { duration: 4, prompt: 'a' }, call: 'videos', id: 'fox', label: 'ann' }])).toEqual([
      key,
    ]);
    const nested = (field: object) => keys([{ prompt: 'a', content: [{ type: 'text', ...field }] }]);
    expect(await nested({ text: 'b', role: 'x' })).toEqual(await nested({ role: 'x', text: 'b' }));
  });

  it('changes with the file, the run, the call, the id, the params and the count of equal rows', async () => {
    const plain = { prompt: 'a' };
    const all = [
      await keys([plain, plain, plain]),
      await keys([plain], 'other.jsonl'),
      await keys([plain], 'rows.jsonl', 'second'),
      await keys([{ ...plain, call: 'images' }]),
      await keys([{ ...plain, id: 'fox' }]),
      await keys([{ prompt: 'b' }]),
    ].flat();
    expect(new Set(all).size).toBe(8);
    expect(await keys([plain])).toEqual(all.slice(0, 1));
  });

  it('changes with the content of a file and not with its name', async () => {
    const png = (last: string) => Buffer.from(`89504e470d0a1a0a0000000d494844520000020000000200080600${last}`, 'hex');
    const keyOf = async (name: string, last: string) => {
      writeFileSync(join(folder, name), png(last));
      return (await keys([{ prompt: 'a', first_frame_upload_id: name }]))[0];
    };
    const key = await keyOf('fox.png', '00');
    expect(await keyOf('owl.png', '00')).toBe(key);
    expect(await keyOf('fox.png', '01')).not.toBe(key);
  });

  it('is the one that the row gives, which is no longer in what is sent', async () => {
    const [row] = await readAll({ prompt: 'a', idempotency_key: 'order-1' });
    expect(row).toMatchObject({ key: 'order-1', params: { prompt: 'a' } });
    expect(Object.keys(row?.params ?? {})).toEqual(['prompt']);
  });
});
