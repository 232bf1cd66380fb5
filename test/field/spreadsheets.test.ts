// Prompts files from spreadsheets, editors, and scripts, passed to `gen-client batch`.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cliOnSandbox } from '../cli/cli-on-sandbox.js';

const place = cliOnSandbox();
const { sandbox } = place;

interface Sheet {
  readonly source: string;
  readonly name: string;
  readonly text: string;
  /** The jobs' prompts, or the message of a file that is rejected before anything is paid. */
  readonly right: readonly string[] | string;
}

const SHEETS: readonly Sheet[] = [
  {
    source: 'Excel: rows of separators after the last row',
    name: 'a.csv',
    text: 'call,prompt\r\nimages,a fox\r\n,\r\n,\r\n',
    right: ['a fox'],
  },
  {
    source: 'Excel on a German system: sep= and semicolons',
    name: 'b.csv',
    text: 'sep=;\r\ncall;prompt\r\nimages;a fox, red\r\n',
    right: ['a fox, red'],
  },
  { source: 'sep= with a comma', name: 'c.csv', text: 'sep=,\ncall,prompt\nimages,a fox\n', right: ['a fox'] },
  {
    source: 'tabs from a pasted sheet',
    name: 'd.csv',
    text: 'call\tprompt\nimages\ta fox, red\n',
    right: ['a fox, red'],
  },
  { source: 'a .tsv file', name: 'e.tsv', text: 'call\tprompt\nimages\ta fox\n', right: ['a fox'] },
  {
    source: 'a failed Excel formula',
    name: 'f.csv',
    text: 'call,prompt\nimages,#NAME?\nimages,a fox\n',
    right: 'line 2: prompt: "#NAME?" is the error value of a spreadsheet',
  },
  {
    source: 'a failed LibreOffice formula',
    name: 'g.csv',
    text: 'call,prompt\nimages,Err:508\n',
    right: '"Err:508" is the error value',
  },
  {
    source: 'a broken reference in another column',
    name: 'h.csv',
    text: 'call,prompt,label\nimages,a fox,#REF!\n',
    right: 'label: "#REF!" is the error value',
  },
  {
    source: 'padded cells, except the prompt, whose spaces are retained',
    name: 'i.csv',
    text: 'call , prompt, model \n images ,  a fox , svc-image-fast \n',
    right: ['  a fox '],
  },
  {
    source: 'a duplicate key',
    name: 'j.jsonl',
    text: '{"call":"images","params":{"prompt":"a fox","prompt":"b fox"}}\n',
    right: 'line 1: "prompt" appears twice',
  },
  {
    source: 'valid JSON: a value equal to a key, and one key in two objects',
    name: 'k.jsonl',
    text: '{"call":"images","label":"prompt\\":","params":{"prompt":"a \\"label\\": fox"}}\n',
    right: ['a "label": fox'],
  },
  {
    source: 'a sign-in page saved instead of the sheet',
    name: 'l.csv',
    text: '<!DOCTYPE html>\n<html><body>Sign in</body></html>\n',
    right: 'is a web page or XML, not rows',
  },
  {
    source: 'semicolons without sep=, which are rejected',
    name: 'm.csv',
    text: 'call;prompt\nimages;a fox\n',
    right: 'Separate columns with commas, not semicolons',
  },
];

it.each(SHEETS)('$source', async ({ name, text, right }) => {
  writeFileSync(join(place.folder, name), text);
  const { code, stderr } = await place.cli('batch', name, '--out', 'out/', '--poll', '100ms');
  if (typeof right === 'string') {
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(right) });
    expect(sandbox.requests).toEqual([]);
  } else {
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(sandbox.jobs.map(({ prompt }) => prompt)).toEqual(right);
  }
});
