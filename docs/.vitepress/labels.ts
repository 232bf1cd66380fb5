// Adds the column's name to each table cell. Narrow screens show it instead of the table's head.
import type { MarkdownRenderer } from 'vitepress';

export function labelCells(md: MarkdownRenderer): void {
  md.core.ruler.push('labels', ({ tokens }) => {
    let labels: string[] = [];
    let column = 0;
    for (const [at, token] of tokens.entries()) {
      if (token.type === 'thead_open') labels = [];
      else if (token.type === 'th_open') labels.push(tokens[at + 1]?.content.replace(/[`*]/g, '') ?? '');
      else if (token.type === 'tr_open') column = 0;
      else if (token.type === 'td_open') {
        const label = labels[column++];
        if (label) token.attrSet('data-label', label);
      }
    }
  });
}
