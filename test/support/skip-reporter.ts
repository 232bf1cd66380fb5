import type { Reporter } from 'vitest/node';

/** The part of a test file's result that the reporter uses. */
interface RunFile {
  readonly id: string;
  readonly children: { allTests(state: 'skipped'): Iterable<unknown> };
}

/** Matches the message for missing software: `skipped: redis-server is not installed (apt-get …)`. */
const REASON = /^skipped: ([^(\n]+)/gim;

/** Prints how many tests were skipped because software is missing, by reason. */
export class SkipReporter implements Reporter {
  readonly #reasons = new Map<string, Set<string>>();

  onUserConsoleLog({ content, taskId = '' }: { readonly content: string; readonly taskId?: string }): void {
    for (const [, reason = ''] of content.matchAll(REASON)) {
      // A task's ID starts with its file's ID.
      const file = taskId.split('_', 1).join('');
      this.#reasons.set(file, (this.#reasons.get(file) ?? new Set()).add(reason.trim().replace(/[.:]$/, '')));
    }
  }

  onTestRunEnd(modules: readonly RunFile[]): void {
    const counts = new Map<string, number>();
    for (const module of modules) {
      const reasons = this.#reasons.get(module.id);
      const skipped = [...module.children.allTests('skipped')].length;
      if (reasons === undefined || skipped === 0) continue;
      const reason = [...reasons].sort().join(', ');
      counts.set(reason, (counts.get(reason) ?? 0) + skipped);
    }
    if (counts.size === 0) return;
    const rows = [...counts].sort(([, first], [, second]) => second - first);
    const total = rows.reduce((sum, [, count]) => sum + count, 0);
    console.log(`Skipped: ${total} tests.\n${rows.map(([reason, count]) => `  ${count}: ${reason}`).join('\n')}`);
  }
}
