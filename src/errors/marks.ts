// What the package notes about an error beside its fields. Copies of the package in one process read each other's marks.

/** An earlier attempt of the call may have reached the service. */
const MAY_HAVE_ARRIVED = Symbol.for('gen-client.may-have-arrived');
/** What went wrong may be over the next time, though the error is about the setup: a key function or a limiter that failed. */
const MAY_PASS = Symbol.for('gen-client.may-pass');

const mark = (error: Error, symbol: symbol): void => {
  Object.defineProperty(error, symbol, { value: true, configurable: true });
};

/** Marks the error of a call of which an earlier attempt may have reached the service. */
export const markArrived = (error: Error): void => mark(error, MAY_HAVE_ARRIVED);

/** Whether an earlier attempt of the call may have reached the service, so that the error does not say what became of it. */
export const mayHaveArrived = (error: Error): boolean => MAY_HAVE_ARRIVED in error;

/** Marks an error that another try may not meet. */
export const markPassing = (error: Error): void => mark(error, MAY_PASS);

/** Whether another try may not meet the error. */
export const isPassing = (error: Error): boolean => MAY_PASS in error;
