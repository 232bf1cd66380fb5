// Lets Node run this repository's TypeScript as it stands: `node --import ./scripts/typescript.mjs <file>`.
// Node strips the types itself; what it lacks is that the specifier `./x.js` may stand for the file `./x.ts`.
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
