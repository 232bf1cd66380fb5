import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ENTRY_POINTS, sourceOf } from '../scripts/entry-points.js';
import { exportsAreDocumented } from './architecture/documented.js';
import { isKnown } from './architecture/exceptions.js';
import { arrowsPointDown, insidesStayInside, noCircles, resourcesSeeThePortOnly } from './architecture/floors.js';
import * as importers from './architecture/importers.js';
import { exportedByTwoFiles, namesWithTwoMeanings } from './architecture/names.js';
import * as rules from './architecture/rules.js';
import { filesAreShort, functionsAreShort } from './architecture/shape.js';
import type { Law } from './architecture/source.js';
import { sourcesBelow, told } from './architecture/source.js';
import * as words from './architecture/words.js';
import { ROOT } from './support/build.js';

const source = sourcesBelow('src');
const tests = sourcesBelow('test');
const others = ['examples', 'bench', 'scripts'].filter((folder) => existsSync(ROOT + folder)).flatMap(sourcesBelow);

const laws: Record<string, Law> = {
  'there are no import cycles, type imports included': noCircles,
  'an import points to a lower floor': arrowsPointDown,
  'only entry points import the client, and resources never import each other': insidesStayInside,
  'resources use the transport by its port': resourcesSeeThePortOnly,
  'a port is imported as types': words.typesAreImportedAsTypes,
  'each package has one importer, and Node its places': importers.packagesHaveOneImporter,
  'the environment has one reader': importers.environmentHasOneReader,
  "Node's globals stay out of what runs on the edge": importers.nodeGlobalsStayOut,
  'rules are pure': rules.rulesArePure,
  'a status is compared in rules/ only': rules.statusesAreComparedInRules,
  'a documented number is in rules/ only': rules.documentedNumbersAreInRules,
  'time comes from a clock that a test can hold': importers.timeHasAClock,
  'randomness comes from runtime/clock': importers.chanceHasASource,
  'a file has at most 350 lines': filesAreShort,
  'a function has at most 60 lines': functionsAreShort,
  'no word hides something from the compiler': words.wordsAreHonest,
  'nothing prints by itself': words.nothingPrints,
  'no comment switches a check off or puts work off': words.commentsHideNothing,
  'no module holds state that changes': words.modulesHoldNoState,
  'files are named for what they do': words.filesAreNamedForWhatTheyDo,
  'every exported name has a doc comment': exportsAreDocumented,
};

test.each(Object.entries(laws))('%s', (name, law) => {
  expect(told(law(source).filter(({ path }) => !isKnown(name, path)))).toEqual([]);
});

test('tests, examples and benchmarks are short and named for what they do, too', () => {
  const all = [...tests, ...others];
  expect(told(filesAreShort(all))).toEqual([]);
  expect(told(words.filesAreNamedForWhatTheyDo(all))).toEqual([]);
});

test('an exported name means one thing', () => {
  expect([...exportedByTwoFiles(source)]).toEqual([]);
});

test('no two entry points export one name with two meanings', () => {
  expect(namesWithTwoMeanings(ENTRY_POINTS.map(sourceOf))).toEqual([]);
});
