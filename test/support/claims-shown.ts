import { relative } from 'node:path';
import type { Reporter, Vitest } from 'vitest/node';
import { CLAIMS, type Claim, hasTitle } from '../claims.js';
import { ROOT } from './build.js';

/** The used part of a test file's result. */
interface RunFile {
  readonly moduleId: string;
  readonly children: { allTests(): Iterable<{ readonly name: string; result(): { readonly state: string } }> };
}

/** Returns the claims whose test didn't pass although its file ran. */
export function notShown(claims: readonly Claim[], files: readonly RunFile[]): string[] {
  return claims.flatMap(([sentence, shownBy, title = '']) => {
    const file = files.find(({ moduleId }) => relative(ROOT, moduleId).replaceAll('\\', '/') === shownBy);
    if (file === undefined) return [];
    const own = [...file.children.allTests()].filter(({ name }) => hasTitle(title, name));
    const isShown = own.some((test) => test.result().state === 'passed');
    return isShown ? [] : [`"${sentence}" is not shown: ${shownBy}: ${title}`];
  });
}

/** Fails a CI run in which a claim's test was skipped. Elsewhere, the machine may lack what the test needs. */
export class ClaimsShown implements Reporter {
  #isWhole = false;

  onInit({ config }: Vitest): void {
    this.#isWhole = config.testNamePattern === undefined && process.env.CI !== undefined;
  }

  onTestRunEnd(files: readonly RunFile[]): void {
    const missing = this.#isWhole ? notShown(Object.values(CLAIMS).flat(), files) : [];
    if (missing.length === 0) return;
    console.error(missing.join('\n'));
    process.exitCode = 1;
  }
}
