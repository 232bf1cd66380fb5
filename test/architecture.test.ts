import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { exportsAreDocumented } from './architecture/documented.js';
import { arrowsPointDown, insidesStayInside, noCircles, resourcesSeeThePortOnly } from './architecture/floors.js';
import {
  environmentHasOneReader,
  nodeGlobalsStayOut,
  packagesHaveOneImporter,
  timeHasAClock,
} from './architecture/importers.js';
import { filesAreShort, functionsAreShort, parametersAreFew } from './architecture/shape.js';
import type { Law } from './architecture/source.js';
import { sourcesBelow, told } from './architecture/source.js';
import * as words from './architecture/words.js';
import { ROOT } from './support/build.js';

const source = sourcesBelow('src');
const tests = sourcesBelow('test');
const others = ['examples', 'bench', 'scripts'].filter((folder) => existsSync(ROOT + folder)).flatMap(sourcesBelow);

const laws: Record<string, Law> = {
  'there are no import circles, type imports included': noCircles,
  'an import points to a lower floor': arrowsPointDown,
  'only the doors see the client, and resources never see each other': insidesStayInside,
  'resources see the transport by its port': resourcesSeeThePortOnly,
  'a port is imported as types': words.typesAreImportedAsTypes,
  'each package has one importer, and Node its places': packagesHaveOneImporter,
  'the environment has one reader': environmentHasOneReader,
  "Node's globals stay out of what runs on the edge": nodeGlobalsStayOut,
  'time comes from a clock that a test can hold': timeHasAClock,
  'a file has at most 350 lines': filesAreShort,
  'a function has at most 60 lines': functionsAreShort,
  'a function takes at most three parameters': parametersAreFew,
  'no word hides something from the compiler': words.wordsAreHonest,
  'nothing prints by itself': words.nothingPrints,
  'no comment switches a check off or puts work off': words.commentsHideNothing,
  'no module holds state that changes': words.modulesHoldNoState,
  'files are named for what they do': words.filesAreNamedForWhatTheyDo,
  'every exported name has a doc comment': exportsAreDocumented,
};

test.each(Object.entries(laws))('%s', (_name, law) => {
  expect(told(law(source))).toEqual([]);
});

test('tests, examples and benchmarks are short and honest too', () => {
  const all = [...tests, ...others];
  expect(told(filesAreShort(all))).toEqual([]);
  expect(told(words.filesAreNamedForWhatTheyDo(all))).toEqual([]);
});
