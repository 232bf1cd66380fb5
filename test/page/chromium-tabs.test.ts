// The page entry point in Chromium with several tabs and users, navigation, and network failures.
import { describe, expect, it } from 'vitest';
import { hasChromium } from '../support/browser.js';
import { deferred } from '../support/deferred.js';
import { DONE, inChromium, outcomeOf, PING, storedKeys, until, untilTrue, untilWaiting } from './in-chromium.js';

const CREATE = `gen.videos.create({ prompt: 'a fox' })`;

describe.skipIf(!hasChromium)('a tab in Chromium', () => {
  const open = inChromium();

  it.each([
    ['waiting', 'a fox [stall]', 'not_found'],
    ['creating', 'a fox', 'other_user'],
  ])('neither shows a run that is %s to the next user nor creates a job', async (phase, prompt, code) => {
    const { app, tab } = await open({ jobMs: 200, speed: 10 });
    if (phase === 'creating') app.creates = new Promise(() => {});
    const condition = `run.get().phase === '${phase}' && !run.get().isCancelable`;
    await tab.evaluate(untilTrue(`gen.videos.create({ prompt: '${prompt}' })`, condition));
    expect(await storedKeys(tab)).toHaveLength(1);
    await until(() => expect(app.sandbox.jobs).toHaveLength(1));
    await tab.goto('about:blank');
    app.creates = Promise.resolve();
    await tab.goto(`${app.url}?as=ben`);
    expect(await tab.evaluate(outcomeOf('runs[0]'))).toEqual(['failed', code, []]);
    expect(await storedKeys(tab)).toEqual([]);
    // Ben can create a job.
    expect(await tab.evaluate(outcomeOf(`gen.videos.create({ prompt: 'a crow' })`))).toEqual(DONE);
    expect(app.sandbox.jobs).toHaveLength(2);
  });

  it("creates no job for a user who signed out in another tab, and removes that user's runs", async () => {
    const { app, context, tab } = await open({ jobMs: 200, speed: 10 });
    await tab.evaluate(untilWaiting(`window.run = gen.videos.create({ prompt: 'a fox [slow:60s]' })`));
    const other = await context.newPage();
    await other.goto(`${app.url}?as=ben`);
    const rejected = ['failed', 'other_user', []];
    expect(await tab.evaluate(outcomeOf('gen.videos.create({ prompt: "a click of ann" })'))).toEqual(rejected);
    expect(await tab.evaluate(outcomeOf('window.run'))).toEqual(['failed', 'not_found', expect.any(Array)]);
    expect(await storedKeys(tab)).toEqual([]);
    expect(app.sandbox.jobs).toHaveLength(1);
    expect(await other.evaluate(outcomeOf('gen.videos.create({ prompt: "a click of ben" })'))).toEqual(DONE);
    // Ben's tab stores his run, and the first tab doesn't show it after a reload.
    await tab.goto(app.url);
    expect([await tab.evaluate('runs.length'), (await storedKeys(other)).length]).toEqual([0, 1]);
    expect(app.sandbox.jobs).toHaveLength(2);
  });

  it('fails a create immediately after a sign-out, and follows its run again after the next sign-in', async () => {
    const { app, context, tab, posts } = await open({ jobMs: 200, speed: 10 });
    await tab.evaluate(untilWaiting(`window.run = gen.videos.create({ prompt: 'a fox [slow:8s]' })`));
    await context.clearCookies();
    const failed = ['failed', 'unauthorized', []];
    expect(await tab.evaluate(outcomeOf('gen.videos.create({ prompt: "signed out" })'))).toEqual(failed);
    expect([posts('videos'), app.sandbox.jobs.length]).toEqual([2, 1]);
    await tab.goto(app.url);
    expect(await tab.evaluate(`runs.length`)).toBe(2);
    expect(await tab.evaluate(outcomeOf(`runs[0]`))).toEqual(DONE);
  });

  it('shares its runs with a duplicated tab, which repeats no create and holds one request', async () => {
    const { app, context, tab } = await open({ jobMs: 60_000, speed: 1 });
    const createThree = `Promise.all(['a', 'b', 'c'].map((prompt) => ${untilWaiting('gen.videos.create({ prompt })')}))`;
    await tab.evaluate(createThree);
    const newPage = context.waitForEvent('page');
    await tab.evaluate('void window.open(location.href)');
    const copy = await newPage;
    await until(async () => expect(await copy.evaluate('window.runs?.length')).toBe(3));
    await copy.evaluate(createThree.replaceAll(/'(.)'/g, "'$1 of the copy'"));
    await until(() => expect(app.openRequests()).toBeLessThanOrEqual(2));
    for (const page of [tab, copy]) expect(await page.evaluate<number>(PING)).toBeLessThan(1_000);
    for (const { id } of app.sandbox.jobs) app.sandbox.finish(id);
    const runs = [await tab.evaluate(`gen.resume().length`), await copy.evaluate(`gen.resume().length`)];
    expect([...runs, app.sandbox.jobs.length]).toEqual([3, 6, 6]);
    for (const page of [tab, copy]) expect(await page.evaluate(outcomeOf('gen.resume()[0]'))).toEqual(DONE);
  });

  it.each([
    ['from the back/forward cache', { 'cache-control': 'max-age=0' }],
    ['with a new page load', { 'cache-control': 'no-store' }],
  ])('follows its run after the user navigates away and back, %s', async (source, headers) => {
    const { app, tab } = await open({ jobMs: 2_500, speed: 1, headers });
    await tab.evaluate(`onpageshow = (event) => { window.isRestored = event.persisted; }`);
    await tab.evaluate(untilWaiting(CREATE));
    await tab.goto(`${app.url}plain`);
    await until(() => expect(app.openRequests()).toBe(0));
    await tab.evaluate('history.back()');
    const isRestored = source.includes('cache');
    await until(async () => expect(await tab.evaluate('window.gen && (window.isRestored ?? false)')).toBe(isRestored));
    expect(await tab.evaluate(outcomeOf('gen.resume()[0]'))).toEqual(DONE);
    expect(app.sandbox.jobs).toHaveLength(1);
  });

  it('continues to wait and to create after a network failure', async () => {
    const { app, context, tab } = await open({ jobMs: 600, speed: 1 });
    await tab.evaluate(untilWaiting(`window.first = ${CREATE}`));
    await context.setOffline(true);
    await tab.evaluate(
      `window.second = gen.videos.create({ prompt: 'offline' }); new Promise((resolve) => setTimeout(resolve, 1_200))`,
    );
    expect(await tab.evaluate('[first, second].map((run) => run.get().phase)')).toEqual(['waiting', 'creating']);
    await context.setOffline(false);
    for (const run of ['first', 'second']) expect(await tab.evaluate(outcomeOf(run))).toEqual(DONE);
    expect(app.sandbox.jobs).toHaveLength(2);
  });

  it('finds the job if the tab is closed during the create', async () => {
    const { app, tab, posts } = await open({ jobMs: 200, speed: 10 });
    const { promise, resolve: respond } = deferred();
    app.creates = promise;
    await tab.evaluate(untilTrue(CREATE, '!run.get().isCancelable'));
    await until(() => expect(app.sandbox.jobs).toHaveLength(1));
    await tab.goto('about:blank');
    respond();
    await tab.goto(app.url);
    expect(await tab.evaluate(outcomeOf('runs[0]'))).toEqual(DONE);
    expect([app.sandbox.jobs.length, posts('videos')]).toEqual([1, 2]);
  });
});
