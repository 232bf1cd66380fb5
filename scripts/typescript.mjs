// Lets Node run this repository's TypeScript directly: `node --import ./scripts/typescript.mjs <file>`.
// Node strips the types itself, but doesn't resolve the specifier `./x.js` to the file `./x.ts`.
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (/^\.\.?\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
      const typed = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
      if (existsSync(fileURLToPath(typed))) return nextResolve(typed.href, context);
    }
    return nextResolve(specifier, context);
  },
});
