// A file store shared by two processes of one runtime, and a lease that ends with its process. Plain JavaScript that runs in
// Node, Bun, and Deno. `fork` starts this scenario again, as the second process or thread.
const EACH = 40;

export async function storeScenario({ fileStore, path, role, fork }) {
  const warnings = [];
  process.on('warning', ({ message }) => warnings.push(message));
  const store = fileStore(path);
  const leases = store[Symbol.for('gen-client.leases')];
  if (role === 'second') {
    const own = leases.own();
    await count(store);
    return { own };
  }
  const steps = [];
  const second = await fork();
  await step(steps, 'both count', async () => {
    await count(store);
    await until(async () => (await store.read('g', ['n'])).values.n === String(2 * EACH));
  });
  await step(steps, 'the lease of a running process is held', async () => {
    if (!leases.isHeld(await second.own)) throw new Error('free');
  });
  await step(steps, "a killed process's lease is free immediately", async () => {
    await second.kill();
    if (leases.isHeld(await second.own)) throw new Error('held');
  });
  await step(steps, 'the store closes and opens again', async () => {
    await store.close();
    const { values } = await store.read('g', ['n']);
    if (values.n !== String(2 * EACH)) throw new Error(values.n);
  });
  await step(steps, 'nothing warns', async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (warnings.length > 0) throw new Error(warnings.join(' '));
  });
  await store.close();
  return steps;
}

async function count(store) {
  for (let added = 0; added < EACH; ) {
    const { version, values } = await store.read('g', ['n']);
    const n = { value: String(Number(values.n ?? 0) + 1), ttlMs: 3_600_000 };
    if (await store.write('g', version, { n })) added += 1;
  }
}

async function until(holds) {
  for (let times = 0; !(await holds()); times++) {
    if (times > 2_000) throw new Error('never');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function step(steps, name, work) {
  try {
    await work();
    steps.push({ name });
  } catch (error) {
    steps.push({ name, error: String(error) });
  }
}
