import fields from '../fixtures/fields.json' with { type: 'json' };
import type { Editor } from '../support/editor.js';
import { callWith, type Field, sampleOf } from './per-row.js';

/** The documented fields of each create and createAndWait. */
const CALLS = Object.entries(fields).flatMap(([call, rows]) => {
  const documented = (rows as readonly Field[]).filter(
    ({ name, edit }) => edit !== true && !(call === 'characters.register' && name === 'mode'),
  );
  const hasWait = /^(images|videos|videoEdits|characters)\.create$/.test(call);
  return [call, ...(hasWait ? [`${call}AndWait`] : [])].map((method) => ({ call, method, documented }));
});

/** Returns the fields of calls that an editor's completions or hovers don't document. */
export function undocumentedFields(editor: Editor): string[] {
  const missing: string[] = [];
  for (const { call, method, documented } of CALLS) {
    const aliasOf = (row: Field) => (row.aliasOf === undefined ? '' : `Alias of \`${row.aliasOf}\`.`);
    const suggestions = editor.complete(`client.${method}({ | })`);
    for (const row of documented) {
      if (!suggestions.names.includes(row.name)) missing.push(`${method} does not suggest ${row.name}`);
      const text = suggestions.docOf(row.name);
      if (text === '' || !text.includes(aliasOf(row))) missing.push(`${method} suggests ${row.name} with “${text}”`);
    }
    for (const row of documented) {
      const [head = '', tail = ''] = callWith(call, row, sampleOf(row)).replace(call, method).split(` ${row.name}: `);
      const { documentation: text } = editor.hover(`${head} |${row.name}: ${tail}`);
      if (text === '' || !text.includes(aliasOf(row))) missing.push(`${method} shows “${text}” for ${row.name}`);
    }
  }
  return missing;
}
