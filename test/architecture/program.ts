import ts from 'typescript';
import { ROOT } from '../support/build.js';

/** These files of the repository, with what they import, as the compiler sees them under Node. */
export function programOf(files: readonly string[]): ts.Program {
  const { options } = ts.parseJsonConfigFileContent(
    {
      compilerOptions: {
        module: 'nodenext',
        target: 'es2022',
        lib: ['es2023', 'dom', 'dom.iterable'],
        types: ['node'],
      },
    },
    ts.sys,
    ROOT,
  );
  return ts.createProgram(
    files.map((file) => ROOT + file),
    { ...options, noEmit: true, skipLibCheck: true },
  );
}
