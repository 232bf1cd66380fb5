// A file store that two processes share, and a lease that ends with its process. `fork` starts this scenario as the second
// process or thread. Plain JavaScript for Node, Bun, and Deno.
const INCREMENTS = 40;

export async function storeScenario({ fileStore, path, role, fork }) {
  const warnings = [];
  process.on('warning', ({ message }) => warnings.push(message));
  const store = fileStore(path);
  const leases = store[Symbol.for('gen-client.leases')];
  if (role === 'second') {
    const lease = leases.own();
    await increment(store);
    return { lease };
  }
  const steps = [];
  const second = await fork();
  await step(steps, 'no increment of two processes is lost', async () => {
    await increment(store);
    await until(async () => (await store.read('g', ['n'])).values.n === String(2 * INCREMENTS));
  });
  await step(steps, 'a running process holds its lease', async () => {
    if (!leases.isHeld(await second.lease)) throw new Error('the lease is free');
  });
  await step(steps, 'a killed process releases its lease immediately', async () => {
    await second.kill();
    if (leases.isHeld(await second.lease)) throw new Error('the lease is held');
  });
  await step(steps, 'a closed store opens again', async () => {
    await store.close();
    const { values } = await store.read('g', ['n']);
    if (values.n !== String(2 * INCREMENTS)) throw new Error(`n is ${values.n}`);
  });
  await step(steps, 'the runtime prints no warning', async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (warnings.length > 0) throw new Error(warnings.join(' '));
  });
  await store.close();
  return steps;
}

/** Increments a value with optimistic concurrency. */
async function increment(store) {
  for (let times = 0; times < INCREMENTS; ) {
    const { version, values } = await store.read('g', ['n']);
    const n = { value: String(Number(values.n ?? 0) + 1), ttlMs: 3_600_000 };
    if (await store.write('g', version, { n })) times += 1;
  }
}

async function until(isTrue) {
  for (let checks = 0; !(await isTrue()); checks++) {
    if (checks > 2_000) throw new Error('timed out');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function step(steps, name, run) {
  try {
    await run();
    steps.push({ name });
  } catch (error) {
    steps.push({ name, error: String(error) });
  }
}
