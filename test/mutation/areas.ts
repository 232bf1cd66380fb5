// What is mutated, and the tests that must notice. Tests that start other processes are left out: they run the built package,
// in which nothing is broken.

interface Area {
  readonly files: readonly string[];
  readonly tests: readonly string[];
}

const folder = (
  name: string,
  tests: readonly string[],
  files: readonly string[] = [`src/${name}/**/*.ts`, `!src/${name}/index.ts`],
): Area => ({ files, tests });
const inFolders = (...names: readonly string[]) => names.map((name) => `test/${name}/**/*.test.ts`);

/** The areas, the most valuable first. */
export const AREAS: Readonly<Record<string, Area>> = {
  rules: folder('rules', [
    ...inFolders('rules', 'limits', 'catalog'),
    'test/budget/!(store|invariant).test.ts',
    'test/files/one-upload.test.ts',
    'test/shared/facts.test.ts',
    'test/waiting/{next-step,run-rules}.test.ts',
    'test/journal/journal.test.ts',
  ]),
  budget: folder('budget', inFolders('budget')),
  proxy: folder('proxy', inFolders('proxy')),
  page: folder('page', inFolders('page')),
  store: folder('shared', ['test/shared/!(stores).test.ts', ...inFolders('limits', 'journal')]),
  limits: folder('limits', [...inFolders('limits'), 'test/shared/!(stores).test.ts']),
  webhooks: folder('webhooks', inFolders('webhooks')),
  uploading: folder('uploading', [
    ...inFolders('files'),
    'test/journal/journal.test.ts',
    'test/errors/wrong-calls.test.ts',
    'test/catalog/preflight.test.ts',
  ]),
  transport: folder('transport', [
    ...inFolders('transport', 'errors', 'journal', 'limits'),
    'test/events/{callers-functions,channels}.test.ts',
    'test/budget/{budget,trouble,answers,time,doors}.test.ts',
    'test/shared/{journal,named-account}.test.ts',
    'test/files/{by-value,left-uploads,one-upload,upload-answers,output-answers}.test.ts',
    'test/catalog/{answers,preflight,raw-requests,create-options,create-and-wait}.test.ts',
    'test/waiting/{wait-for-job,create-and-wait,traces,webhooks,failing-reads}.test.ts',
    'test/durable/activities.test.ts',
  ]),
  resources: folder('resources', [
    ...inFolders('files', 'catalog', 'errors'),
    'test/transport/{answers,streams,idempotency,reused-keys,keys-lanes-and-sizes}.test.ts',
    'test/storage/{copy-output,output-handler,output-response,byte-ranges}.test.ts',
    'test/waiting/{create-and-wait,trouble}.test.ts',
    'test/events/channels.test.ts',
    'test/journal/journal.test.ts',
  ]),
  'cli/batch': folder(
    'cli/batch',
    [
      'test/cli/{batch,batch-left-rows,batch-money,batch-places,batch-rows,batch-store,journal,progress,standing}.test.ts',
    ],
    ['src/cli/batch/**/*.ts'],
  ),
  storage: folder('storage', inFolders('storage')),
  waiting: folder('waiting', [
    ...inFolders('waiting', 'journal'),
    'test/events/{callers-functions,channels}.test.ts',
    'test/errors/{wrong-calls,keys-of-errors}.test.ts',
    'test/catalog/create-and-wait.test.ts',
    'test/webhooks/client-side.test.ts',
    'test/shared/facts.test.ts',
  ]),
  events: folder(
    'events',
    [
      ...inFolders('events', 'otel', 'journal'),
      'test/transport/{observing,idempotency}.test.ts',
      'test/budget/{answers,budget,trouble}.test.ts',
      'test/shared/{facts,journal}.test.ts',
      'test/waiting/{webhooks,create-and-wait,traces}.test.ts',
      'test/catalog/preflight.test.ts',
    ],
    [
      'src/transport/events.ts',
      'src/transport/hooks.ts',
      'src/transport/job-log.ts',
      'src/transport/layers/{events,jobs}.ts',
    ],
  ),
  durable: folder('durable', inFolders('durable')),
  cloudflare: folder('cloudflare', ['test/cloudflare/gen-account.test.ts']),
  redis: folder('redis', ['test/redis/{clients,redis-store}.test.ts']),
  bullmq: folder('bullmq', inFolders('bullmq')),
};

/** Tests that start a process, a browser or workerd, need packages of their own, or take long. */
export const LEFT_OUT = [
  '**/node_modules/**',
  'test/**/*{campaign,crashes,stack,receiver-crash,many-processes,installed,chromium,browser,runtimes,recipes}*.test.ts',
  'test/**/*{azurite,example,edge-process,frameworks,receivers,stripe-peer,types}*.test.ts',
  'test/cloudflare/{one-account,overlap}.test.ts',
  'test/budget/{redis,stores}.test.ts',
  'test/storage/limits.test.ts',
  'test/bullmq/many-creates.test.ts',
  'test/files/still-bytes.test.ts',
  'test/redis/share-limits.test.ts',
  'test/waiting/naive-code.test.ts',
  'test/otel/three-processes.test.ts',
  'test/waiting/scale.test.ts',
  // Needs a module of its own, and these tests share one process.
  'test/journal/file-journal.test.ts',
];
