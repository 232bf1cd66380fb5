/**
 * Files that still break a law, by the law's name and by area. The list only becomes shorter: an entry goes when its files
 * keep the law.
 */
const KNOWN: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  'there are no import cycles, type imports included': { simulation: /^src\/sandbox\/simulate\// },
  'an import points to a lower floor': { shared: /^src\/(shared|limits)\// },
  'a status is compared in rules/ only': {
    queue: /^src\/(bullmq|durable)\//,
    // The doctor reports what an answer shows, also one that the service's document does not describe.
    doctor: /^src\/cli\/doctor\/(checks|open-points)\.ts$/,
    core: /^src\/(resources|transport)\//,
    // A page part contains no other code of the package.
    page: /^src\/page\//,
  },
  'a documented number is in rules/ only': { queue: /^src\/(bullmq|durable)\// },
  'time comes from a clock that a test can hold': {
    // Its option `now` is the clock. The runtime's would be 7 % of the 2.5 kB that checking a webhook may take.
    webhooks: /^src\/webhooks\/verify\.ts$/,
    simulation: /^src\/sandbox\/simulate\//,
  },
  'randomness comes from runtime/random': {
    queue: /^src\/(bullmq|ai-sdk)\//,
    shared: /^src\/(shared|limits|redis|cloudflare)\//,
    waiting: /^src\/waiting\//,
    sandbox: /^src\/sandbox\//,
    // The nonce of a cipher is not chance that a simulation may choose.
    tickets: /^src\/proxy\/tickets\.ts$/,
  },
  'a file has at most 350 lines': {
    budget: /^src\/rules\/budget\.ts$/,
    queue: /^src\/bullmq\//,
    shared: /^src\/(rules\/lane|shared\/shared-lane)\.ts$/,
  },
  'no module holds state that changes': { shared: /^src\/limits\// },
  'a function has at most 60 lines': {
    queue: /^src\/bullmq\//,
    core: /^src\/transport\/job-teller\.ts$/,
    page: /^src\/page\/create-page\.ts$/,
  },
};

/** Whether it is known that the file breaks the law. */
export function isKnown(law: string, path: string): boolean {
  return Object.values(KNOWN[law] ?? {}).some((pattern) => pattern.test(path));
}
