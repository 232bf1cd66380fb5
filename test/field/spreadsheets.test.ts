// Prompts files from spreadsheets, editors, and scripts, passed to `gen-client batch`.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cliOnSandbox } from '../cli/cli-on-sandbox.js';

const cli = cliOnSandbox();
const { sandbox } = cli;

/** Each row: the file's source, its text, and its prompts, or the message if the file is rejected before any create. */
it.each<[source: string, text: string, expected: readonly string[] | string, extension?: string]>([
  ['Excel: rows of separators after the last row', 'call,prompt\r\nimages,a fox\r\n,\r\n,\r\n', ['a fox']],
  ['Excel on a German system: sep= and semicolons', 'sep=;\r\ncall;prompt\r\nimages;a fox, red\r\n', ['a fox, red']],
  ['sep= with a comma', 'sep=,\ncall,prompt\nimages,a fox\n', ['a fox']],
  ['tabs from a pasted sheet', 'call\tprompt\nimages\ta fox, red\n', ['a fox, red']],
  ['a .tsv file', 'call\tprompt\nimages\ta fox\n', ['a fox'], 'tsv'],
  [
    'a failed Excel formula',
    'call,prompt\nimages,#NAME?\nimages,a fox\n',
    'line 2: prompt: "#NAME?" is the error value of a spreadsheet',
  ],
  ['a failed LibreOffice formula', 'call,prompt\nimages,Err:508\n', '"Err:508" is the error value'],
  [
    'a broken reference in another column',
    'call,prompt,label\nimages,a fox,#REF!\n',
    'label: "#REF!" is the error value',
  ],
  [
    'padded cells, except the prompt, whose spaces are retained',
    'call , prompt, model \n images ,  a fox , svc-image-fast \n',
    ['  a fox '],
  ],
  [
    'a duplicate key',
    '{"call":"images","params":{"prompt":"a fox","prompt":"b fox"}}\n',
    'line 1: "prompt" appears twice',
    'jsonl',
  ],
  [
    'valid JSON: a value equal to a key, and one key in two objects',
    '{"call":"images","label":"prompt\\":","params":{"prompt":"a \\"label\\": fox"}}\n',
    ['a "label": fox'],
    'jsonl',
  ],
  [
    'a sign-in page saved instead of the sheet',
    '<!DOCTYPE html>\n<html><body>Sign in</body></html>\n',
    'is a web page or XML, not rows',
  ],
  [
    'semicolons without sep=, which are rejected',
    'call;prompt\nimages;a fox\n',
    'Separate columns with commas, not semicolons',
  ],
])('%s', async (_source, text, expected, extension = 'csv') => {
  const name = `prompts.${extension}`;
  writeFileSync(join(cli.folder, name), text);
  const { code, stderr } = await cli.cli('batch', name, '--out', 'out/', '--poll', '100ms');
  if (typeof expected === 'string') {
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(expected) });
    expect(sandbox.requests).toEqual([]);
  } else {
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(sandbox.jobs.map(({ prompt }) => prompt)).toEqual(expected);
  }
});
