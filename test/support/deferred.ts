/** Creates a promise that a test settles. Like `Promise.withResolvers`, which Node 20 lacks. */
export function deferred<T = void>() {
  let resolve = (_value: T | PromiseLike<T>) => {};
  let reject = (_reason: unknown) => {};
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
