import { relative } from 'node:path';
import type { Reporter, Vitest } from 'vitest/node';
import { CLAIMS, type Claim, titleMatches } from '../claims.js';
import { ROOT } from './build.js';

/** The part of a test file's result that the reporter uses. */
interface RunFile {
  readonly moduleId: string;
  readonly children: { allTests(): Iterable<{ readonly name: string; result(): { readonly state: string } }> };
}

/** Returns the claims whose test didn't pass although its file ran. */
export function unprovenClaims(claims: readonly Claim[], files: readonly RunFile[]): string[] {
  return claims.flatMap(([sentence, provenBy, title = '']) => {
    const file = files.find(({ moduleId }) => relative(ROOT, moduleId).replaceAll('\\', '/') === provenBy);
    if (file === undefined) return [];
    const matching = [...file.children.allTests()].filter(({ name }) => titleMatches(title, name));
    const isProven = matching.some((test) => test.result().state === 'passed');
    return isProven ? [] : [`"${sentence}" is not proven: ${provenBy}: ${title}`];
  });
}

/** Fails a CI run in which a claim's test was skipped. Elsewhere, the software that a test needs may be missing. */
export class ClaimReporter implements Reporter {
  #isFullRun = false;

  onInit({ config }: Vitest): void {
    this.#isFullRun = config.testNamePattern === undefined && process.env.CI !== undefined;
  }

  onTestRunEnd(files: readonly RunFile[]): void {
    const missing = this.#isFullRun ? unprovenClaims(Object.values(CLAIMS).flat(), files) : [];
    if (missing.length === 0) return;
    console.error(missing.join('\n'));
    process.exitCode = 1;
  }
}
